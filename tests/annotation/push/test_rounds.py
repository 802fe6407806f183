"""Rounds of annotation: each has datasets of its own, in one workspace, and production is what it always was."""

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS
from annotation.argilla.tasks import define_dataset, round_of
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.cli import annotation
from annotation.push.push import push_records
from pipeline.core.errors import InputError, NotFoundError
from pipeline.records.schema import QueryResponse

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

ANSWER = QueryResponse(record_uuid="r1", query="Who?", answer="Nobody.", language="en")


def test_names_of_datasets_carry_every_round_but_production() -> None:
    wording = read_wording("ja")
    assert define_dataset("retrieval", wording).name == "1-retrieval-ja"
    names = [define_dataset(task, wording, round_name="calibration").name for task in TASKS]
    assert names == ["calibration-1-retrieval-ja", "calibration-2-grounding-ja", "calibration-3-generation-ja"]


def test_a_dataset_without_a_round_is_of_production() -> None:
    assert [round_of({"metadata": metadata}) for metadata in (None, {}, {"round": None})] == ["production"] * 3
    assert round_of(define_dataset("grounding", read_wording("en"), round_name="round-2").body) == "round-2"


@pytest.mark.parametrize("name", ["", "Pilot", "-a", "runde zwei", "a/b", "größe", "a" * 41, "a\n"])
def test_a_name_that_no_round_can_have_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="A round cannot be named"):
        define_dataset("grounding", read_wording("en"), round_name=name)


@pytest.mark.server
def test_records_go_into_the_datasets_of_their_round_only(owner: Argilla, workspace: str) -> None:
    set_up(owner, workspace)
    set_up(owner, workspace, round_name="calibration")
    push_records(owner, workspace, [ANSWER], round_name="calibration")
    held = {
        name: next(owner.record_pages(find_datasets(owner, workspace, round_name=name)["generation"].id))[0]
        for name in ("production", "calibration")
    }
    assert held == {"production": 0, "calibration": 1}


@pytest.mark.server
def test_languages_of_two_rounds_are_no_ambiguity(owner: Argilla, workspace: str) -> None:
    set_up(owner, workspace, "de")
    set_up(owner, workspace, "en", round_name="calibration")
    assert {dataset.locale for dataset in find_datasets(owner, workspace).values()} == {"de"}


@pytest.mark.server
def test_a_round_that_is_not_there_is_an_error_that_names_those_that_are(owner: Argilla, workspace: str) -> None:
    set_up(owner, workspace)
    with pytest.raises(NotFoundError, match=r"has the rounds: production\. .*setup --round pilot`"):
        push_records(owner, workspace, [ANSWER], round_name="pilot")


@pytest.mark.server
def test_the_commands_set_up_and_name_a_round(
    argilla_server: "ServerHandle", owner: Argilla, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)

    def run(*words: str) -> Result:
        options = ["--round", "pilot", "--workspace", workspace, "--api-url", argilla_server.url]
        return CliRunner().invoke(annotation, [*words, *options], catch_exceptions=False)

    done = run("setup")
    assert "pilot-1-retrieval-en" in done.stdout
    assert f"push RECORDS.jsonl --workspace {workspace} --round pilot" in done.stderr
    assert set(find_datasets(owner, workspace, round_name="pilot")) == set(TASKS)
