"""Marks in a campaign: asked for in new datasets, and brought to those that are there by a new version only."""

import uuid

import pytest

from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import plan_campaign, set_up
from annotation.client import Argilla
from annotation.marks import marked_words, shown_text
from annotation.push.push import push_records
from annotation.wording import read_wording
from pipeline.errors import ArgillaError
from pipeline.records import Passage, QueryResponse, join_context
from tests.support.setup_bench import campaign, make

pytestmark = pytest.mark.server

PASSAGES = (
    Passage(chunk_id="d#4", doc_id="d", chunk_rank=2, text="Ends with 😀😀"),
    Passage(chunk_id="e#0", doc_id="e", chunk_rank=5, text="Nobody <i>did</i>."),
)
ANSWER = QueryResponse(
    record_uuid="r1", query="Who?", answer="Nobody.", chunks=PASSAGES, context_set=join_context(PASSAGES)
)


@pytest.fixture
def workspace() -> str:
    return f"e-{uuid.uuid4().hex[:10]}"


def test_marks_come_to_datasets_that_are_there_with_a_new_version_only(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER])
    with pytest.raises(ArgillaError, match=r"no marks, and now optional marks.*--new-version grounding"):
        plan_campaign(owner, campaign(workspace, evidence="optional"), workspace)
    optional = make(owner, workspace, campaign(workspace, evidence="optional"), "grounding")
    (step,) = (step for step in optional.steps if step.name == "2-grounding-en-v2")
    assert step.note == "records carried over from 2-grounding-en; asks for marks on the context"
    dataset = find_datasets(owner, workspace)["grounding"]
    assert dataset.evidence == "optional"
    ((_, (carried,)),) = owner.record_pages(dataset.id)
    shown = shown_text(carried)
    end = len(shown.encode("utf-16-le")) // 2
    (mark,) = marked_words(carried, [(0, end)])
    assert [(each.passage, each.text) for each in mark.parts] == [
        ((each.chunk_id, each.doc_id, each.chunk_rank, each.text), each.text) for each in PASSAGES
    ]
    assert end <= len(carried["fields"]["context"])
    report = push_records(owner, workspace, [ANSWER])
    assert report.tasks["grounding"].unchanged == 1
    with pytest.raises(ArgillaError, match=r"optional marks, and now required marks.*--new-version grounding"):
        plan_campaign(owner, campaign(workspace, evidence="required"), workspace)
    required = make(owner, workspace, campaign(workspace, evidence="required"), "grounding")
    assert "stock Argilla takes answers without them" in "".join(step.note for step in required.steps)
    assert not make(owner, workspace, campaign(workspace, evidence="required")).changed


def test_without_a_campaign_a_dataset_stays_as_it_was_made(owner: Argilla, workspace: str) -> None:
    set_up(owner, workspace, evidence="required")
    assert not set_up(owner, workspace).changed
    assert find_datasets(owner, workspace)["grounding"].evidence == "required"
    question = owner.request("GET", f"/datasets/{find_datasets(owner, workspace)['grounding'].id}/questions")["items"]
    evidence = next(each for each in question if each["name"] == "evidence")
    owner.request("PATCH", f"/questions/{evidence['id']}", json={"title": "Old title"})
    assert set_up(owner, workspace).changed
    items = owner.request("GET", f"/datasets/{find_datasets(owner, workspace)['grounding'].id}/questions")["items"]
    titles = {each["name"]: each["title"] for each in items}
    assert titles["evidence"] == read_wording("en").marks.titles["required"]


def test_a_push_leaves_the_words_under_marks_where_they_are(owner: Argilla, workspace: str) -> None:
    set_up(owner, workspace, evidence="optional")
    push_records(owner, workspace, [ANSWER])
    dataset = find_datasets(owner, workspace)["grounding"]
    ((_, (before,)),) = owner.record_pages(dataset.id)
    assert push_records(owner, workspace, [ANSWER]).tasks["grounding"].unchanged == 1
    older = {**before["fields"], "context": before["fields"]["context"].replace("━━ Passage 2", "━━ Text 2")}
    owner.request("PATCH", f"/records/{before['id']}", json={"fields": older})
    body = {"status": "draft", "values": {"evidence": {"value": [{"label": "supports", "start": 40, "end": 44}]}}}
    owner.request("POST", f"/records/{before['id']}/responses", json=body)
    assert push_records(owner, workspace, [ANSWER]).tasks["grounding"].unchanged == 1
    ((_, (after,)),) = owner.record_pages(dataset.id)
    assert after["fields"] == older
