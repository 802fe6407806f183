"""The records of a study as narratives, how much of each is to be judged, and which narratives are drawn.

Source: annotation/contracts/planning.md#sample.
"""

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import variance
from typing import NamedTuple

from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.tasks import lot
from annotation.argilla.units import CHARACTERS_A_MINUTE, CHARACTERS_A_MINUTE_OF_ALPHABETS
from pipeline.records.schema import QueryResponse

_SEARCH_SPEED = 2.0  # how many times faster a context is searched for what backs an answer than a text is read
_QUESTION_SECONDS = 3.0  # answering a question on what was read
_JAPANESE = re.compile(r"[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]")


class Load(NamedTuple):
    units: int = 0  # records of Argilla: passages in retrieval, one or none in the other tasks
    seconds: float = 0.0


class PlannedRecord(NamedTuple):
    record_uuid: str
    provider: str
    locale: str
    loads: Mapping[TaskName, Load]


class PlannedNarrative(NamedTuple):
    key: str  # what tells it from all others, the same whatever else is planned: its id or its query
    narrative_id: str
    language: str
    kind: str
    records: tuple[PlannedRecord, ...]


class Population(NamedTuple):
    narratives: tuple[PlannedNarrative, ...]
    repeated: int  # records that stood in the sources more than once and count once
    nameless: int  # narratives known by their query alone

    @property
    def records(self) -> list[PlannedRecord]:
        return [record for narrative in self.narratives for record in narrative.records]


class _Read(NamedTuple):
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
    narrative whose id has that query. Of a record that comes twice the one with more passages counts. `locale_of` gives
    the language of the questions, by the record's; `progress` hears how many records have been read.
    """
    found: dict[str, _Read] = {}
    repeated = 0
    for done, each in enumerate(records, start=1):
        progress(done)
        read = _read(each, locale_of)
        earlier = found.get(each.record_uuid)
        repeated += earlier is not None
        if earlier is None or read.record.loads["retrieval"].units > earlier.record.loads["retrieval"].units:
            found[each.record_uuid] = read
    ids = {read.query: read.narrative_id for read in sorted(found.values()) if read.narrative_id}
    together: dict[str, list[_Read]] = {}
    for read in found.values():
        together.setdefault(read.narrative_id or ids.get(read.query) or read.query, []).append(read)
    narratives = tuple(
        PlannedNarrative(
            key,
            next((each.narrative_id for each in members if each.narrative_id), ""),
            _most(each.language for each in members if each.language != "und") or "und",
            _most(each.kind for each in members if each.kind),
            tuple(sorted((each.record for each in members), key=lambda record: record.record_uuid)),
        )
        for key, members in sorted(together.items())
    )
    return Population(narratives, repeated, sum(not each.narrative_id for each in narratives))


def _read(record: QueryResponse, locale_of: Callable[[str], str]) -> _Read:
    query, answer = _reading_seconds(record.query), _reading_seconds(record.answer)
    passages = [_reading_seconds(chunk.text) for chunk in record.chunks]
    seconds = {
        "retrieval": sum(query + each for each in passages),
        "grounding": query + answer + sum(passages) / _SEARCH_SPEED,
        "generation": query + answer,
    }
    counts = {"retrieval": len(passages), "grounding": min(1, len(passages)), "generation": 1}
    loads = dict.fromkeys(TASKS, Load())
    for task in (task for task in TASKS if counts[task]):
        answering = counts[task] * len(LABELS[task]) * _QUESTION_SECONDS
        loads[task] = Load(counts[task], seconds[task] + answering)
    told = record.provenance
    planned = PlannedRecord(record.record_uuid, told.model_name, locale_of(record.language), loads)
    return _Read(told.narrative_id, record.query, told.narrative_type, record.language, planned)


def _reading_seconds(text: str) -> float:
    """How long an adult reads a text with care, by its scripts: its language may be unknown, or several."""
    japanese = len(_JAPANESE.findall(text))
    others = len(text) - japanese
    return japanese * 60 / CHARACTERS_A_MINUTE["ja"] + others * 60 / CHARACTERS_A_MINUTE_OF_ALPHABETS


def _most(values: Iterable[str]) -> str:
    """The most frequent value, of several the first in the alphabet; empty where there is none."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value), default="")


ALL = "all"  # the one stratum of narratives that are not divided
_SURE = 1.2816  # normal quantile: nine of ten samples take no longer
_SAFE, _LEAST, _MOST = 0.8, 0.6, 1.2
"""Shares of the hours: so much may always be used; that is the least; that the most, where one narrative more would
otherwise leave nearly half of them unused."""


class Stratification(NamedTuple):
    members: Mapping[str, Sequence[PlannedNarrative]]
    """The narratives of each stratum, those that are drawn first in front."""
    turns: tuple[str, ...]
    """The stratum of each place: a sample of n has the first n of them, so that a larger one holds the smaller."""

    def sizes(self, narratives: int) -> dict[str, int]:
        counts = Counter(self.turns[:narratives])
        return {stratum: counts[stratum] for stratum in self.members}


class Draw(NamedTuple):
    narrative: PlannedNarrative
    stratum: str
    probability: float  # how likely it was to be drawn, over all seeds


def stratifications(narratives: Sequence[PlannedNarrative], seed: int) -> Iterator[Stratification]:
    """Ways to divide the narratives, the finest first: by language and type, by language, not at all."""
    yield _stratified(narratives, seed, lambda each: f"{each.language}/{each.kind}" if each.kind else each.language)
    yield _stratified(narratives, seed, lambda each: each.language)
    yield _stratified(narratives, seed, lambda each: ALL)


def _stratified(
    narratives: Sequence[PlannedNarrative], seed: int, stratum_of: Callable[[PlannedNarrative], str]
) -> Stratification:
    """In an order that only seed and narrative decide.

    Each stratum gets a narrative; then whichever is furthest from its share does (Webster's divisor method).
    """
    members: defaultdict[str, list[PlannedNarrative]] = defaultdict(list)
    for each in sorted(narratives, key=lambda each: (lot(f"sample {seed} {each.key}"), each.key)):
        members[stratum_of(each)].append(each)
    turns = sorted(members)
    waiting = [(1.5 / len(own), stratum, 1) for stratum, own in members.items() if len(own) > 1]
    heapq.heapify(waiting)
    while waiting:
        _, stratum, given = heapq.heappop(waiting)
        turns.append(stratum)
        if given + 1 < len(members[stratum]):
            heapq.heappush(waiting, ((given + 1.5) / len(members[stratum]), stratum, given + 1))
    return Stratification({stratum: members[stratum] for stratum in sorted(members)}, tuple(turns))


def draw(strata: Stratification, narratives: int) -> list[Draw]:
    return [
        Draw(each, stratum, count / len(strata.members[stratum]))
        for stratum, count in strata.sizes(narratives).items()
        for each in sorted(strata.members[stratum][:count], key=lambda each: each.key)
    ]


def narratives_within(strata: Stratification, hours: float, costs: Mapping[str, float]) -> int:
    """How many narratives fit into the hours, where each costs as many as `costs` says by its key.

    The number does not depend on which narratives are drawn, so that every narrative keeps its probability. Nine of
    ten samples of that number take no longer than the hours, unless a fifth of these would stay unused.
    """
    hours_of = {name: [costs[each.key] for each in own] for name, own in strata.members.items()}
    spread = {name: (sum(own) / len(own), variance(own) if len(own) > 1 else 0.0) for name, own in hours_of.items()}
    counts = dict.fromkeys(strata.members, 0)
    expected = squares = 0.0
    fits, spent, after = 0, 0.0, (0.0, 0)
    for number, stratum in enumerate(strata.turns, start=1):
        mean, deviation = spread[stratum]
        size = len(strata.members[stratum])
        squares -= _sum_variance(counts[stratum], size, deviation)
        counts[stratum] += 1
        squares += _sum_variance(counts[stratum], size, deviation)
        expected += mean
        if expected + _SURE * math.sqrt(max(0.0, squares)) <= hours or expected <= _SAFE * hours:
            fits, spent = number, expected
        elif number == fits + 1:
            after = (expected, number)
        if expected > hours:
            break
    if 0 < spent < _LEAST * hours and after[1] == fits + 1 and after[0] <= _MOST * hours:
        return after[1]
    return fits


def _sum_variance(drawn: int, size: int, deviation: float) -> float:
    """The variance of the sum of so many, drawn without replacement."""
    return drawn * (1 - drawn / size) * deviation
