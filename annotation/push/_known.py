"""Answers that Argilla holds already under another id: the same text of the same model to the same narrative.

Whoever asks the same again into another run folder, or reads stored payloads twice, gets records with ids of their own;
annotators would judge each answer twice without anybody's noticing.
"""

from collections.abc import Iterable

from annotation.push.diff import Stored, answer_hash
from pipeline.records import QueryResponse


class KnownAnswers:
    """The answers that are in Argilla, or came earlier in this push, by what they are."""

    def __init__(self, stored: Iterable[Stored]) -> None:
        """Start from what Argilla holds."""
        self._held: dict[str, dict[str, str]] = {}
        self._found: dict[str, str] = {}
        for unit in stored:
            if unit.answer:
                self._held.setdefault(unit.answer, {})[unit.record_uuid] = unit.run_id

    def other_id(self, record: QueryResponse) -> str:
        """The `record_uuid` under which the record's answer is there already; empty where it is not.

        What is there under its own id goes in as ever. So do two answers of one run: each was asked for, as a repeat.
        """
        told = record.provenance
        if not told.model_name or record.record_uuid in self._found:
            return self._found.get(record.record_uuid, "")
        held = self._held.setdefault(answer_hash(told.model_dump(), record.query, record.answer), {})
        if record.record_uuid in held:
            return ""
        other = next((each for each, run_id in held.items() if not run_id or run_id != told.run_id), "")
        held[record.record_uuid] = told.run_id
        if other:
            self._found[record.record_uuid] = other
        return other
