"""`push --sample` and `--exclude`: only what a file names goes in, and what is left out is said."""

from pathlib import Path

import pytest

from tests.support.planned_records import planned_study, write_planned
from tests.support.setup_bench import held

pytestmark = pytest.mark.server


@pytest.fixture
def push(command, ready):
    write_planned(Path("records.jsonl"), planned_study(40, ("openai", "claude"), ("en",)))
    words = ("annotation", "push", "records.jsonl", "--workspace", ready)
    return lambda *more, code=0: command(*words, *more, code=code).stderr


def ids(owner, workspace: str) -> set[str]:
    return {item["external_id"] for item in held(owner, workspace)}


@pytest.mark.rare
def test_records_of_the_sample_that_are_in_no_path_are_said(push, owner, ready) -> None:
    Path("some.csv").write_text("record_uuid,more\nN0001-openai,x\nelsewhere,y\n", encoding="utf-8")
    assert "the sample is not whole: 1 record of it in none of the paths" in push("--sample", "some.csv")
    assert ids(owner, ready) == {"N0001-openai"}
    assert "Warning: 1 record of `--exclude` in none of the paths." in push("--exclude", "some.csv")


def test_a_bad_sample_is_refused_and_the_plans_goes_in_and_then_the_rest(push, owner, ready, command) -> None:
    for sample, said in (
        ("record_uuid\nelsewhere\n", "None of the 80 records in these paths is to go in"),
        ("uuid\nN0001-openai\n", "needs the column `record_uuid` once, found it 0 times"),
        ("record_uuid\n", "names no record"),
        ("record_uuid,more\nN0001-openai\n", "line 2: there is no record"),
    ):
        Path("sample.csv").write_text(sample, encoding="utf-8")
        assert said in push("--sample", "sample.csv", code=1)
    Path("sample.csv").write_text("record_uuid\nN0001-openai\n", encoding="utf-8")
    assert "none is left to push" in push("--sample", "sample.csv", "--exclude", "sample.csv", code=1)
    assert ids(owner, ready) == set()
    command("study", "plan", "records.jsonl", "--out", "plan", "--hours", "1")
    sampled = {line.split(",")[0] for line in Path("plan/sample.csv").read_text(encoding="utf-8").splitlines()[1:]}
    assert 0 < len(sampled) < 80
    said = push("--sample", "plan/sample.csv")
    assert ids(owner, ready) == sampled
    assert f"{80 - len(sampled)} of 80 records are left out by `--sample`" in said
    push("--exclude", "plan/sample.csv")
    assert len(ids(owner, ready)) == 80
