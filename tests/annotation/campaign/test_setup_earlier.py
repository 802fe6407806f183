"""Grounding datasets of earlier versions, which do not show the query: worked in as they are, and made anew with it."""

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
def earlier(owner: Argilla, workspace: str) -> str:
    """The workspace of a campaign that an earlier version set up."""
    make(owner, workspace, campaign(workspace))
    make_earlier_grounding(owner, workspace, "2-grounding-en")
    return workspace


def shown(owner: Argilla, dataset_id: str) -> dict[str, dict[str, str]]:
    """The fields of each record."""
    return {item["external_id"]: item["fields"] for _, page in owner.record_pages(dataset_id) for item in page}


def test_it_is_pushed_to_answered_and_exported_as_before(owner: Argilla, earlier: str, tmp_path: Path) -> None:
    before = described(owner, earlier, "2-grounding-en")
    plan = plan_campaign(owner, campaign(earlier), earlier)
    assert not plan.changed
    notes = [step.note for step in plan.steps if step.kind == "dataset"]
    assert notes == ["", "without `query`, which `--new-version grounding` brings", ""]
    apply_plan(owner, plan, Passwords())
    assert described(owner, earlier, "2-grounding-en") == before
    assert push_records(owner, earlier, [ANSWER, HOSTILE]).tasks["grounding"].new == 2
    old = find_datasets(owner, earlier)["grounding"]
    fields = {frozenset(fields) for fields in shown(owner, old.id).values()}
    assert fields == {frozenset({"sources", "answer", "context"})}
    submit_first(owner, old.id)
    again = push_records(owner, earlier, [ANSWER, HOSTILE])
    assert {count.unchanged for count in again.tasks.values()} == {2}
    assert again.refused == ()
    export_csv(owner, earlier, tmp_path / "out")
    assert (tmp_path / "out" / "grounding.csv").read_text(encoding="utf-8").count("\n") == 2


@pytest.mark.rare
def test_a_new_version_shows_each_query_and_refuses_no_answer(owner: Argilla, earlier: str, tmp_path: Path) -> None:
    records = [ANSWER, HOSTILE, NO_QUERY]
    push_records(owner, earlier, records)
    old = find_datasets(owner, earlier)["grounding"]
    response = submit_first(owner, old.id)
    before = shown(owner, old.id)
    make(owner, earlier, campaign(earlier), "grounding", "generation")
    datasets = find_datasets(owner, earlier)
    assert (datasets["grounding"].name, shown(owner, old.id)) == ("2-grounding-en-v2", before)
    assert [response] in [item["responses"] for _, page in owner.record_pages(old.id) for item in page]
    new, beside = (shown(owner, datasets[task].id) for task in ("grounding", "generation"))
    assert new == {name: {**fields, "query": beside[name]["query"]} for name, fields in before.items()}
    assert new["r3"]["query"] == "(no text)"
    submit_first(owner, datasets["grounding"].id)
    assert {count.unchanged for count in push_records(owner, earlier, records).tasks.values()} == {3}
    assert not plan_campaign(owner, campaign(earlier), earlier).changed
    export_csv(owner, earlier, tmp_path / "out", ExportFilters(extended=True))
    assert (tmp_path / "out" / "grounding.csv").read_text(encoding="utf-8").count("\n") == 3


@pytest.mark.rare
def test_a_record_whose_query_is_nowhere_stops_the_new_version_until_pushed_again(owner: Argilla, earlier: str) -> None:
    push_records(owner, earlier, [ANSWER, HOSTILE])
    generation = find_datasets(owner, earlier)["generation"]
    first = next(owner.record_pages(generation.id))[1][0]
    owner.request("DELETE", f"/datasets/{generation.id}/records", params={"ids": first["id"]})
    with pytest.raises(InputError, match=r"lacks the field 'query'.*Push the records again"):
        make(owner, earlier, campaign(earlier), "grounding")
    push_records(owner, earlier, [ANSWER, HOSTILE])
    make(owner, earlier, campaign(earlier), "grounding")
    found = shown(owner, find_datasets(owner, earlier)["grounding"].id)
    assert {name: "query" in fields for name, fields in found.items()} == {"r1": True, "r2": True}
    assert described(owner, earlier, "2-grounding-en-v2")["status"] == "ready"
