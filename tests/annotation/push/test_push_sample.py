"""`push --sample` and `--exclude`: only what a file names goes in, and what is left out is said."""

from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from exports.cli import main
from tests.support.planned_records import planned_study, write_planned

pytestmark = pytest.mark.server
NUMBERS = count(1)


@pytest.fixture
def workspace(owner: Argilla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name = f"sampled-{next(NUMBERS)}"
    set_up(owner, name)
    write_planned(Path("records.jsonl"), planned_study(40, ("openai", "claude"), ("en",)))
    return name


def run(argilla_server, *words: str, code: int = 0) -> Result:
    environment = {"ARGILLA_API_URL": argilla_server.url, "ARGILLA_API_KEY": argilla_server.owner_api_key}
    result = CliRunner(env=environment).invoke(main, ["annotation", *words])
    assert result.exit_code == code, result.output
    return result


def held(owner: Argilla, workspace: str) -> set[str]:
    dataset = find_datasets(owner, workspace)["generation"]
    return {item["external_id"] for _, page in owner.record_pages(dataset.id) for item in page}


def sampled(file: str = "plan/sample.csv") -> set[str]:
    return {line.split(",")[0] for line in Path(file).read_text(encoding="utf-8").splitlines()[1:]}


def test_the_plans_sample_goes_in_and_then_the_rest(argilla_server, owner: Argilla, workspace: str) -> None:
    run(argilla_server, "plan", "records.jsonl", "--out", "plan", "--hours", "1")
    first = run(argilla_server, "push", "records.jsonl", "--sample", "plan/sample.csv", "--workspace", workspace)
    assert 0 < len(sampled()) < 80
    assert held(owner, workspace) == sampled()
    assert f"{80 - len(sampled())} of 80 records are left out by `--sample`" in first.stderr
    run(argilla_server, "push", "records.jsonl", "--exclude", "plan/sample.csv", "--workspace", workspace)
    assert len(held(owner, workspace)) == 80


def test_records_of_the_sample_that_are_in_no_path_are_said(argilla_server, owner: Argilla, workspace: str) -> None:
    Path("some.csv").write_text("record_uuid,more\nN0001-openai,x\nelsewhere,y\n", encoding="utf-8")
    result = run(argilla_server, "push", "records.jsonl", "--sample", "some.csv", "--workspace", workspace)
    assert "the sample is not whole: 1 record of it in none of the paths" in result.stderr
    assert held(owner, workspace) == {"N0001-openai"}
    rest = run(argilla_server, "push", "records.jsonl", "--exclude", "some.csv", "--workspace", workspace)
    assert "Warning: 1 record of `--exclude` in none of the paths." in rest.stderr


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ("record_uuid\nelsewhere\n", "None of the 80 records in these paths is to go in"),
        ("uuid\nN0001-openai\n", "needs the column `record_uuid` once, found it 0 times"),
        ("record_uuid\n", "names no record"),
        ("record_uuid,more\nN0001-openai\n", "line 2: there is no record"),
    ],
)
def test_a_sample_that_cannot_be_used_is_refused_in_a_line(
    argilla_server, owner: Argilla, workspace: str, sample: str, said: str
) -> None:
    Path("sample.csv").write_text(sample, encoding="utf-8")
    result = run(argilla_server, "push", "records.jsonl", "--sample", "sample.csv", "--workspace", workspace, code=1)
    assert said in result.stderr
    assert held(owner, workspace) == set()


def test_a_sample_of_which_nothing_is_left_is_refused(argilla_server, owner: Argilla, workspace: str) -> None:
    Path("sample.csv").write_text("record_uuid\nN0001-openai\n", encoding="utf-8")
    words = ("--sample", "sample.csv", "--exclude", "sample.csv", "--workspace", workspace)
    assert "none is left to push" in run(argilla_server, "push", "records.jsonl", *words, code=1).stderr
