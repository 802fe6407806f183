"""Grounding datasets of earlier versions, which do not show the query: worked in as they are, and made anew with it."""

import uuid
from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.push.push import push_records
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.core.errors import InputError
from tests.support.setup_bench import ANSWER, campaign, described, make, make_earlier_grounding, submit_first

pytestmark = pytest.mark.server
HOSTILE = ANSWER.model_copy(update={"record_uuid": "r2", "query": "<b onclick=alert(1)>Who\u202e &amp; *why*?</b>"})
NO_QUERY = ANSWER.model_copy(update={"record_uuid": "r3", "query": " "})


@pytest.fixture
def workspace(owner: Argilla) -> str:
    """One of a campaign that an earlier version set up."""
    name = f"c-{uuid.uuid4().hex[:10]}"
    make(owner, name, campaign(name))
    make_earlier_grounding(owner, name, "2-grounding-en")
    return name


def shown(owner: Argilla, dataset_id: str) -> dict[str, dict[str, str]]:
    """The fields of each record."""
    return {item["external_id"]: item["fields"] for _, page in owner.record_pages(dataset_id) for item in page}


def test_it_is_pushed_to_answered_and_exported_as_before(owner: Argilla, workspace: str, tmp_path: Path) -> None:
    assert push_records(owner, workspace, [ANSWER, HOSTILE]).tasks["grounding"].new == 2
    old = find_datasets(owner, workspace)["grounding"]
    assert {frozenset(fields) for fields in shown(owner, old.id).values()} == {
        frozenset({"sources", "answer", "context"})
    }
    submit_first(owner, old.id)
    again = push_records(owner, workspace, [ANSWER, HOSTILE])
    assert {count.unchanged for count in again.tasks.values()} == {2}
    assert again.refused == ()
    export_csv(owner, workspace, tmp_path / "out")
    assert (tmp_path / "out" / "grounding.csv").read_text(encoding="utf-8").count("\n") == 2


def test_setup_changes_nothing_there_and_says_what_a_new_version_brings(owner: Argilla, workspace: str) -> None:
    before = described(owner, workspace, "2-grounding-en")
    plan = plan_campaign(owner, campaign(workspace), workspace)
    assert not plan.changed
    notes = {step.name: step.note for step in plan.steps if step.kind == "dataset"}
    assert notes["2-grounding-en"] == "without `query`, which `--new-version grounding` brings"
    assert notes["1-retrieval-en"] == notes["3-generation-en"] == ""
    apply_plan(owner, plan, Passwords())
    assert described(owner, workspace, "2-grounding-en") == before


def test_a_new_version_shows_the_query_of_each_record_and_refuses_no_answered_one(
    owner: Argilla, workspace: str, tmp_path: Path
) -> None:
    records = [ANSWER, HOSTILE, NO_QUERY]
    push_records(owner, workspace, records)
    old = find_datasets(owner, workspace)["grounding"]
    response = submit_first(owner, old.id)
    before = shown(owner, old.id)
    make(owner, workspace, campaign(workspace), "grounding", "generation")
    datasets = find_datasets(owner, workspace)
    assert datasets["grounding"].name == "2-grounding-en-v2"
    assert shown(owner, old.id) == before
    assert [response] in [item["responses"] for _, page in owner.record_pages(old.id) for item in page]
    new, beside = (shown(owner, datasets[task].id) for task in ("grounding", "generation"))
    assert {name: fields["query"] for name, fields in new.items()} == {
        name: fields["query"] for name, fields in beside.items()
    }
    assert new["r3"]["query"] == "(no text)"
    assert {name: {key: text for key, text in fields.items() if key != "query"} for name, fields in new.items()} == (
        before
    )
    submit_first(owner, datasets["grounding"].id)
    again = push_records(owner, workspace, records)
    assert {count.unchanged for count in again.tasks.values()} == {3}
    assert not plan_campaign(owner, campaign(workspace), workspace).changed
    export_csv(owner, workspace, tmp_path / "out", ExportFilters(extended=True))
    assert (tmp_path / "out" / "grounding.csv").read_text(encoding="utf-8").count("\n") == 3


def test_a_record_whose_query_is_nowhere_stops_the_new_version_until_it_is_pushed_again(
    owner: Argilla, workspace: str
) -> None:
    push_records(owner, workspace, [ANSWER, HOSTILE])
    generation = find_datasets(owner, workspace)["generation"]
    first = next(owner.record_pages(generation.id))[1][0]
    owner.request("DELETE", f"/datasets/{generation.id}/records", params={"ids": first["id"]})
    with pytest.raises(InputError, match=r"lacks the field 'query'.*Push the records again"):
        make(owner, workspace, campaign(workspace), "grounding")
    push_records(owner, workspace, [ANSWER, HOSTILE])
    make(owner, workspace, campaign(workspace), "grounding")
    found = shown(owner, find_datasets(owner, workspace)["grounding"].id)
    assert {name: "query" in fields for name, fields in found.items()} == {"r1": True, "r2": True}
    assert described(owner, workspace, "2-grounding-en-v2")["status"] == "ready"
