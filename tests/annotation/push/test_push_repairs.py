"""A push tells which answers are shown as written, and shows anew what earlier versions showed otherwise."""

import json
from uuid import uuid4

import pytest
from click.testing import CliRunner

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, original_text, shown_anew
from annotation.argilla.labels import LABELS
from annotation.argilla.rendering import rendered_answer
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.cli import main
from pipeline.records.schema import QueryResponse

pytestmark = pytest.mark.server


@pytest.fixture
def ready(owner: Argilla) -> str:
    workspace = f"repairs-{uuid4().hex[:8]}"
    set_up(owner, workspace)
    return workspace


def record(answer: str) -> QueryResponse:
    return QueryResponse(record_uuid=str(uuid4()), query="q?", answer=answer, language="en")


def test_a_dry_run_lists_the_answers_shown_as_written_and_writes_all_of_them_to_a_file(
    argilla_server, ready, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    records = [record("A **plain** one."), *(record(f"{number}*3*4") for number in range(30)), record("> " * 30 + "x")]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f"{each.model_dump_json()}\n" for each in records), encoding="utf-8")
    words = ["annotation", "push", str(path), "--workspace", ready, "--dry-run", "--repairs", str(tmp_path / "out")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    told = result.stderr.splitlines()
    start = next(place for place, line in enumerate(told) if line.startswith("31 answers hold what Markdown would"))
    assert "(1 of them wholly without Markdown)" in told[start]
    assert told[start + 1].startswith(f"  {records[-1].record_uuid}: shown as written: ")
    assert told[start + 2] == f"  {records[1].record_uuid}: emphasis × 1"
    assert told[start + 21] == "  … and 11 more; `--repairs FILE` writes all of them."
    lines = [json.loads(line) for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines()]
    assert [line["record_uuid"] for line in lines] == [each.record_uuid for each in records[1:]]
    assert lines[0] == {"record_uuid": records[1].record_uuid, "repairs": {"emphasis": 1}, "given_up": ""}


def test_an_answered_record_that_an_earlier_version_showed_otherwise_is_shown_anew_and_keeps_its_answer(
    owner: Argilla, ready: str
) -> None:
    pushed = record("9. November **1989**\n3. Oktober 1990")
    push_records(owner, ready, [pushed])
    dataset = find_datasets(owner, ready)["generation"].id
    (stored,) = owner.request("GET", f"/datasets/{dataset}/records")["items"]
    # As the version before this one had it: the answer itself, shown by Argilla's Markdown, and kept once.
    hidden = stored["metadata"][HIDDEN] | {"originals": {}}
    earlier = {
        "external_id": stored["external_id"],
        "fields": stored["fields"] | {"answer": pushed.answer},
        "metadata": {HIDDEN: hidden},
    }
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": [earlier]})
    values = {label: {"value": "yes"} for label in LABELS["generation"]}
    body = {"status": "submitted", "values": values}
    owner.request("POST", f"/records/{stored['id']}/responses", json=body)
    report = push_records(owner, ready, [pushed])
    assert (report.refused, report.tasks["generation"].updated) == ((), 1)
    (now,) = owner.request("GET", f"/datasets/{dataset}/records", params={"include": "responses"})["items"]
    assert now["fields"]["answer"] == rendered_answer(pushed.answer).html
    assert [response["values"] for response in now["responses"]] == [values]
    assert shown_anew(earlier) == {"fields": now["fields"], "metadata": now["metadata"]}
    assert original_text(now, "generation", "answer") == pushed.answer
