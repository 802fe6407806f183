"""The records of a study as narratives: who answered each, in which language, and how much of it is to be judged."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from annotation.labels import LABELS, TASKS, TaskName
from annotation.units import CHARACTERS_A_MINUTE, CHARACTERS_A_MINUTE_OF_ALPHABETS
from pipeline.records import QueryResponse

_SEARCH_SPEED = 2.0
"""How many times faster a context is searched for what backs an answer than a text is read."""
_QUESTION_SECONDS = 3.0
"""Answering a question on what was read."""
_JAPANESE = re.compile(r"[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]")


class Load(NamedTuple):
    """What one record brings to a task."""

    units: int = 0
    """Records of Argilla: passages in retrieval, one or none in the other tasks."""
    seconds: float = 0.0
    """How long they take one annotator together, if she reads and decides as assumed."""


class PlannedRecord(NamedTuple):
    """One answer."""

    record_uuid: str
    """Its id."""
    provider: str
    """Who answered; empty where unknown."""
    locale: str
    """Language of the questions about it."""
    loads: Mapping[TaskName, Load]
    """What it brings to each task."""


class PlannedNarrative(NamedTuple):
    """One narrative with all its answers."""

    key: str
    """What tells it from all others, the same whatever else is planned: its id or its query."""
    narrative_id: str
    """Its id; empty where unknown."""
    language: str
    """Language of most of its answers."""
    kind: str
    """Its type; empty where unknown."""
    records: tuple[PlannedRecord, ...]
    """Its answers in order of their ids."""


class Population(NamedTuple):
    """All that may be judged."""

    narratives: tuple[PlannedNarrative, ...]
    """Sorted by key."""
    repeated: int
    """Records that stood in the sources more than once and count once."""
    nameless: int
    """Narratives known by their query alone."""

    @property
    def records(self) -> list[PlannedRecord]:
        """The answers of all narratives."""
        return [record for narrative in self.narratives for record in narrative.records]


class _Read(NamedTuple):
    """What is kept of a record."""

    narrative_id: str
    query: str
    kind: str
    language: str
    record: PlannedRecord


def read_population(
    records: Iterable[QueryResponse],
    locale_of: Callable[[str], str],
    progress: Callable[[int], None] = lambda done: None,
) -> Population:
    """The records by narrative; texts are not kept.

    Answers with the same `narrative_id` belong together; without one, those to the same query do, and go to the
    narrative whose id has that query. Of a record that comes twice the one with more passages counts.

    `locale_of` gives the language of the questions about a record, by the record's language; `progress` hears how many
    records have been read.
    """
    found: dict[str, _Read] = {}
    repeated = 0
    for done, each in enumerate(records, start=1):
        progress(done)
        read = _read(each, locale_of)
        earlier = found.get(each.record_uuid)
        repeated += earlier is not None
        if earlier is None or _passages(read) > _passages(earlier):
            found[each.record_uuid] = read
    ids = {read.query: read.narrative_id for read in sorted(found.values()) if read.narrative_id}
    together: dict[str, list[_Read]] = {}
    for read in found.values():
        together.setdefault(read.narrative_id or ids.get(read.query) or read.query, []).append(read)
    narratives = tuple(_narrative(key, together[key]) for key in sorted(together))
    return Population(narratives, repeated, sum(not each.narrative_id for each in narratives))


def _read(record: QueryResponse, locale_of: Callable[[str], str]) -> _Read:
    """What is kept of it."""
    query, answer = _reading_seconds(record.query), _reading_seconds(record.answer)
    passages = [_reading_seconds(chunk.text) for chunk in record.chunks]
    seconds = {
        "retrieval": sum(query + each for each in passages),
        "grounding": query + answer + sum(passages) / _SEARCH_SPEED,
        "generation": query + answer,
    }
    units = {"retrieval": len(passages), "grounding": min(1, len(passages)), "generation": 1}
    loads = {
        task: Load(units[task], seconds[task] + units[task] * len(LABELS[task]) * _QUESTION_SECONDS)
        if units[task]
        else Load()
        for task in TASKS
    }
    told = record.provenance
    planned = PlannedRecord(record.record_uuid, told.model_name, locale_of(record.language), loads)
    return _Read(told.narrative_id, record.query, told.narrative_type, record.language, planned)


def _reading_seconds(text: str) -> float:
    """How long an adult reads a text with care, by its scripts: its language may be unknown, or several."""
    japanese = len(_JAPANESE.findall(text))
    others = len(text) - japanese
    return japanese * 60 / CHARACTERS_A_MINUTE["ja"] + others * 60 / CHARACTERS_A_MINUTE_OF_ALPHABETS


def _passages(read: _Read) -> int:
    """How many passages the record has."""
    return read.record.loads["retrieval"].units


def _narrative(key: str, members: list[_Read]) -> PlannedNarrative:
    """The narrative of these records."""
    return PlannedNarrative(
        key,
        next((each.narrative_id for each in members if each.narrative_id), ""),
        _most(each.language for each in members if each.language != "und") or "und",
        _most(each.kind for each in members if each.kind),
        tuple(sorted((each.record for each in members), key=lambda record: record.record_uuid)),
    )


def _most(values: Iterable[str]) -> str:
    """The most frequent value, of several the first in the alphabet; empty where there is none."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value), default="")
