"""An annotator's marks on a context as lines of `evidence.jsonl` (exports/contracts/csv.md#marks)."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from annotation.campaign.datasets import JuryDataset
from annotation.display import hidden_metadata
from annotation.labels import EVIDENCE
from annotation.marks import marked_words
from exports.csv.tables import utc
from exports.schema import EvidenceRow

# Some readers of lines end one at these, which JSON may write as they are.
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


class ExportedMarks(NamedTuple):
    """The marks of one response."""

    rows: tuple[EvidenceRow, ...]
    """What there is to export, in order of passages, then of places."""
    cut: int
    """Marks on more than the text of one passage."""
    lost: int
    """Marks on no passage's text."""


def exported_marks(
    dataset: JuryDataset, record: Mapping[str, Any], response: Mapping[str, Any], annotator_id: str
) -> ExportedMarks:
    """The marks of one response to a record of ours."""
    given = ((response["values"] or {}).get(EVIDENCE) or {}).get("value") or []
    if not given:
        return ExportedMarks((), 0, 0)
    hidden = hidden_metadata(record)
    marks = marked_words(record, [(each["start"], each["end"]) for each in given])
    rows = [
        EvidenceRow(
            record_uuid=hidden["record_uuid"],
            annotator_id=annotator_id,
            label=each["label"],
            chunk_id=words.passage.chunk_id,
            doc_id=words.passage.doc_id,
            chunk_rank=words.passage.chunk_rank,
            start=words.start,
            end=words.end,
            text=words.text,
            cut=not mark.is_whole,
            language=hidden.get("language") or "und",
            response_status=response["status"],
            created_at=utc(response["updated_at"]).isoformat(),
            round=dataset.round,
            workspace=dataset.workspace,
        )
        for each, mark in zip(given, marks, strict=True)
        for words in mark.parts
    ]
    in_order = sorted(rows, key=lambda row: (row.chunk_rank, row.start, row.end, row.label))
    cut = sum(bool(mark.parts) and not mark.is_whole for mark in marks)
    return ExportedMarks(tuple(in_order), cut, sum(not mark.parts for mark in marks))


def evidence_line(row: EvidenceRow) -> bytes:
    """The row as one line of JSON in UTF-8."""
    return json.dumps(row.model_dump(), ensure_ascii=False).translate(_LINE_ENDS).encode("utf-8") + b"\n"
