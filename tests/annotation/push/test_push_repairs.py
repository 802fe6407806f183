"""A push reports which answers are shown as written, and shows anew what earlier versions showed otherwise."""

from uuid import uuid4

import pytest

from annotation.argilla.display import HIDDEN, original_text, shown_anew
from annotation.argilla.rendering import rendered_answer
from annotation.campaign.datasets import find_datasets
from annotation.push.push import push_records
from pipeline.records.schema import QueryResponse
from tests.support.setup_bench import held, submit_first, write_records

pytestmark = pytest.mark.server


def record(answer: str) -> QueryResponse:
    return QueryResponse(record_uuid=str(uuid4()), query="q?", answer=answer, language="en")


def test_a_dry_run_lists_the_answers_shown_as_written(command, ready, tmp_path) -> None:
    records = [record("A **plain** one."), *(record(f"{number}*3*4") for number in range(30)), record("> " * 30 + "x")]
    path = write_records(tmp_path / "records.jsonl", *records)
    words = ("annotation", "push", path, "--workspace", ready, "--dry-run")
    said = command(*words).stderr.splitlines()
    start = next(place for place, line in enumerate(said) if line.startswith("31 answers hold what Markdown would"))
    assert "(1 of them wholly without Markdown)" in said[start]
    assert said[start + 1].startswith(f"  {records[-1].record_uuid}: shown as written: ")
    assert said[start + 2] == f"  {records[1].record_uuid}: emphasis × 1"
    assert said[start + 21] == "  … and 11 more."


def test_an_answered_record_that_was_shown_otherwise_is_shown_anew_and_keeps_its_answer(owner, ready) -> None:
    pushed = record("9. November **1989**\n3. Oktober 1990")
    push_records(owner, ready, [pushed])
    dataset = find_datasets(owner, ready)["generation"].id
    (stored,) = held(owner, ready)
    # As the version before this one had it: the answer itself, shown by Argilla's Markdown, and kept once.
    earlier = {
        "external_id": stored["external_id"],
        "fields": stored["fields"] | {"answer": pushed.answer},
        "metadata": {HIDDEN: stored["metadata"][HIDDEN] | {"originals": {}}},
    }
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": [earlier]})
    response = submit_first(owner, dataset)
    report = push_records(owner, ready, [pushed])
    assert (report.refused, report.tasks["generation"].updated) == ((), 1)
    (now,) = held(owner, ready)
    assert (now["fields"]["answer"], now["responses"]) == (rendered_answer(pushed.answer).html, [response])
    assert shown_anew(earlier) == {"fields": now["fields"], "metadata": now["metadata"]}
    assert original_text(now, "generation", "answer") == pushed.answer
