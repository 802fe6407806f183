"""Rounds of annotation: each has datasets of its own, in one workspace, and production is what it always was."""

import pytest

from annotation.argilla.labels import TASKS
from annotation.argilla.tasks import define_dataset, round_of
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from pipeline.core.errors import InputError, NotFoundError
from tests.support.setup_bench import ANSWER, held


def test_names_and_metadata_of_datasets_carry_the_round_and_without_one_it_is_production() -> None:
    wording = read_wording("ja")
    assert define_dataset("retrieval", wording).name == "1-retrieval-ja"
    names = [define_dataset(task, wording, round_name="calibration").name for task in TASKS]
    assert names == ["calibration-1-retrieval-ja", "calibration-2-grounding-ja", "calibration-3-generation-ja"]
    assert [round_of({"metadata": metadata}) for metadata in (None, {}, {"round": None})] == ["production"] * 3
    assert round_of(define_dataset("grounding", wording, round_name="round-2").body) == "round-2"


@pytest.mark.parametrize("name", ["", "Pilot", "-a", "runde zwei", "a/b", "größe", "a" * 41, "a\n"])
def test_a_name_that_no_round_can_have_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="A round cannot be named"):
        define_dataset("grounding", read_wording("en"), round_name=name)


@pytest.mark.server
def test_records_go_into_the_datasets_of_their_round_only_which_the_command_sets_up(owner, workspace, command) -> None:
    set_up(owner, workspace, "de")
    set_up(owner, workspace, round_name="calibration")
    push_records(owner, workspace, [ANSWER], round_name="calibration")
    assert (len(held(owner, workspace)), len(held(owner, workspace, "generation", "en", "calibration"))) == (0, 1)
    # Languages of two rounds are no ambiguity.
    assert {dataset.locale for dataset in find_datasets(owner, workspace).values()} == {"de"}
    with pytest.raises(NotFoundError, match=r"has the rounds: calibration, production\. .*setup --round pilot`"):
        push_records(owner, workspace, [ANSWER], round_name="pilot")
    done = command("annotation", "setup", "--round", "pilot", "--workspace", workspace)
    assert "pilot-1-retrieval-en" in done.stdout
    assert f"push RECORDS.jsonl --workspace {workspace} --round pilot" in done.stderr
    assert set(find_datasets(owner, workspace, round_name="pilot")) == set(TASKS)
