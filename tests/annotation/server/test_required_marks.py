"""Our server refuses an answer that lacks a mark which its dataset requires, however it is sent."""

import html
import uuid
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, Evidence
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from pipeline.core.errors import ArgillaError
from tests.support.setup_bench import ANSWER

pytestmark = pytest.mark.server

SUPPORTS = {"label": "supports", "start": 30, "end": 36}
CONTRADICTS = {"label": "contradicts", "start": 40, "end": 43}


WORKSPACES: dict[tuple[str, Evidence], str] = {}
"""By the address of the server and what is asked for as evidence."""


def record_of(owner: Argilla, evidence: Evidence) -> str:
    """A new record of grounding where evidence is asked for like this."""
    place = (owner.api_url, evidence)
    if place not in WORKSPACES:
        set_up(owner, workspace := f"m-{uuid.uuid4().hex[:10]}", evidence=evidence)
        WORKSPACES[place] = workspace
    answer = ANSWER.model_copy(update={"record_uuid": str(uuid.uuid4())})
    push_records(owner, WORKSPACES[place], [answer])
    dataset = find_datasets(owner, WORKSPACES[place])["grounding"].id
    found = (record for _, page in owner.record_pages(dataset) for record in page)
    return next(str(record["id"]) for record in found if record["external_id"] == answer.record_uuid)


def values(*marks: dict[str, Any], **labels: str) -> dict[str, Any]:
    given = dict.fromkeys(LABELS["grounding"], "no") | labels
    return {**{name: {"value": value} for name, value in given.items()}, "evidence": {"value": list(marks)}}


def submitted(owner: Argilla, record: str, *marks: dict[str, Any], **labels: str) -> dict[str, Any]:
    body = {"status": "submitted", "values": values(*marks, **labels)}
    made: dict[str, Any] = owner.request("POST", f"/records/{record}/responses", json=body)
    return made


def test_a_submission_without_a_required_mark_is_refused_where_something_rests_on_words(owner: Argilla) -> None:
    record = record_of(owner, "required")
    both = {"support_present": "yes", "contradicted_claim_present": "yes"}
    with pytest.raises(ArgillaError, match=r"422.*needs marks.*`supports`, because `support_present` is yes and one"):
        submitted(owner, record, **both)
    with pytest.raises(ArgillaError, match=r"422.*: one `contradicts`, because `contradicted_claim_present` is yes\."):
        submitted(owner, record, SUPPORTS, **both)
    item = {"record_id": record, "status": "submitted", "values": values(CONTRADICTS, **both)}
    (answer,) = owner.request("POST", "/me/responses/bulk", json={"items": [item]})["items"]
    assert answer["item"] is None
    assert "one `supports`" in answer["error"]["detail"]
    for status in ("draft", "discarded"):
        (free,) = owner.request("POST", "/me/responses/bulk", json={"items": [{**item, "status": status}]})["items"]
        assert free["item"]["status"] == status
    path = f"/responses/{free['item']['id']}"
    with pytest.raises(ArgillaError, match="422"):
        owner.request("PUT", path, json={"status": "submitted", "values": values(SUPPORTS, **both)})
    stored = owner.request("PUT", path, json={"status": "submitted", "values": values(SUPPORTS, CONTRADICTS, **both)})
    assert stored["status"] == "submitted"
    assert submitted(owner, record_of(owner, "required"), unsupported_claim_present="yes")["status"] == "submitted"
    assert submitted(owner, record_of(owner, "optional"), support_present="yes")["status"] == "submitted"


def test_notes_and_marks_have_an_end_and_a_mark_on_a_heading_is_not_the_required_one(owner: Argilla) -> None:
    # Each change of it would stay in the history, and so on the disk.
    record = record_of(owner, "optional")
    for long in ({"notes": {"value": "a" * 20_001}}, {"evidence": {"value": [SUPPORTS] * 1_001}}):
        for status in ("draft", "submitted"):
            with pytest.raises(ArgillaError, match=r"422.* at most, and this one has [12][0,1]+"):
                owner.request(
                    "POST", f"/records/{record}/responses", json={"status": status, "values": values() | long}
                )
    whole = values() | {"notes": {"value": "a" * 20_000}}
    assert owner.request("POST", f"/records/{record}/responses", json={"status": "draft", "values": whole})["id"]
    record = record_of(owner, "required")
    words = html.unescape(owner.request("GET", f"/records/{record}")["fields"]["context"]).index("Nobody")
    for start, end in ((0, words), (3, 9), (words - 3, words)):
        with pytest.raises(ArgillaError, match=r"422.*one `supports`"):
            submitted(owner, record, {"label": "supports", "start": start, "end": end}, support_present="yes")
    across = {"label": "supports", "start": words - 3, "end": words + 1}
    assert submitted(owner, record, across, support_present="yes")["status"] == "submitted"
