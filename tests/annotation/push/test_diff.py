"""What a push finds of records that an earlier version put in, without a server."""

import json
from tempfile import TemporaryFile
from typing import Any

import pytest

from annotation.argilla.display import HIDDEN, to_records
from annotation.argilla.tasks import PRODUCTION, short_hash
from annotation.argilla.wording import read_wording
from annotation.campaign.file import Place
from annotation.push.diff import Diff, Target, stored_unit
from annotation.push.send import Waiting
from pipeline.records.schema import Passage, QueryResponse, Source

UUID = "0b9f6d1e-2c3a-4e5f-8a7b-000000000001"


def sample(state: str, reason: str = "timeout") -> QueryResponse:
    source = Source.model_validate({"n": 1, "url": "http://a.example/", "host": "a.example", "state": state})
    source = source.model_copy(update={"reason": reason})
    passage = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Text.", title="T")
    return QueryResponse(
        record_uuid=UUID, query="Q?", answer="No [1].", sources=(source,), chunks=(passage,), context_set="Text."
    )


def pushed_earlier(answered: bool) -> dict[str, Any]:
    """The grounding record of `sample` as the version that knew `unresolved` put it in."""
    (body,) = to_records(sample("unresolved"), read_wording("en"))["grounding"]
    judged = [[[1, "", "a.example", "unresolved"]], [[1, "Text.", "T", "", None]]]
    hidden = {name: value for name, value in body["metadata"][HIDDEN].items() if "hash" not in name}
    hidden["sources"] = {"unresolved": 1}
    hidden["content_hash"] = short_hash([{"answer": "No [1].", "context_set": "Text."}, judged])
    fields = {**body["fields"], "sources": "[1] no such site (or it never answered) ┃ a.example"}
    responses = [{"status": "submitted"}] if answered else []
    return {**body, "id": "1", "fields": fields, "metadata": {HIDDEN: hidden}, "responses": responses}


@pytest.mark.parametrize(
    ("answered", "state", "change"),
    [
        (True, "unresolved", "unchanged"),
        (True, "no_such_site", "unchanged"),
        (True, "read", "refused"),
        (False, "unresolved", "updated"),
        (False, "read", "updated"),
    ],
)
def test_what_was_answered_keeps_the_states_that_it_was_judged_by(answered: bool, state: str, change: str) -> None:
    (body,) = to_records(sample(state), read_wording("en"))["grounding"]
    known = stored_unit(pushed_earlier(answered), 0)
    diff = Diff(None, {"grounding": {UUID: known}}, False, {})  # type: ignore[arg-type]
    found = "refused" if diff._answered_changes([("grounding", body)]) else diff._unit("grounding", body, "new").change
    assert found == change


def test_answers_go_in_by_lot_each_with_its_passages_in_their_order() -> None:
    names = [f"{model}{number}" for model in "ab" for number in range(50)]
    with TemporaryFile() as file:
        for name in names:
            for rank in (1, 2):
                file.write(json.dumps({"external_id": f"{name}:c{rank}"}).encode() + b"\n")
        waiting = Waiting(Target(Place("jury", "en", PRODUCTION), {}, read_wording("en")), {"retrieval": file})
        sent = [str(body["external_id"]) for body in waiting.by_lot("retrieval")]
    assert sorted(sent) == sorted(f"{name}:c{rank}" for name in names for rank in (1, 2))
    assert sent[::2] == [each.replace("c2", "c1") for each in sent[1::2]]
    assert 30 <= sum(each.startswith("a") for each in sent[:100]) <= 70
