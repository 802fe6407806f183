"""The records of a study as narratives, how much of each is to be judged, and which narratives are drawn.

Source: annotation/contracts/planning.md#sample.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from annotation.argilla.display import needs_passages, shown_units
from annotation.argilla.labels import LABELS, TASKS, TaskName, is_of_passages
from annotation.argilla.tasks import lot
from annotation.argilla.units import CHARACTERS_A_MINUTE, CHARACTERS_A_MINUTE_OF_ALPHABETS
from annotation.argilla.wording import FIELDS
from pipeline.core.schema import Narrative
from pipeline.records.schema import QueryResponse

_SEARCH_SPEED = 2.0  # how many times faster a context is searched for what backs an answer than a text is read
_QUESTION_SECONDS = 3.0  # answering a question on what was read
_EXPECTED_LETTERS = 1000  # of an answer that nobody has given yet, and of each passage; fewer take as long in Japanese
_JAPANESE = re.compile(r"[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]")


class Load(NamedTuple):
    units: int = 0  # records of Argilla: passages in retrieval, one or none in the other tasks
    seconds: float = 0.0


class PlannedRecord(NamedTuple):
    record_uuid: str
    provider: str
    locale: str
    loads: Mapping[TaskName, Load]
    passages: int


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
    locale_of: Callable[[QueryResponse], str],
    progress: Callable[[int], None] = lambda done: None,
) -> Population:
    """The records by narrative; texts are not kept.

    Answers with the same `narrative_id` belong together; without one, those to the same query do, and go to the
    narrative whose id has that query. Of a record that comes twice the one with more passages counts. `locale_of` gives
    the language of a record's questions, empty for one that is to be left out; `progress` hears how many were read.
    """
    found: dict[str, _Read] = {}
    repeated = 0
    for done, each in enumerate(records, start=1):
        progress(done)
        locale = locale_of(each)
        if not locale:
            continue
        read = _read(each, locale)
        earlier = found.get(each.record_uuid)
        repeated += earlier is not None
        if earlier is None or read.record.passages > earlier.record.passages:
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


def _read(record: QueryResponse, locale: str) -> _Read:
    query, answer = _reading_seconds(record.query), _reading_seconds(record.answer)
    passages = [_reading_seconds(chunk.text) for chunk in record.chunks]
    shown = shown_units(record, TASKS).items()
    loads = {task: _load(task, len(chunk_ids), query, answer, sum(passages)) for task, chunk_ids in shown}
    told = record.provenance
    planned = PlannedRecord(record.record_uuid, told.model_name, locale, loads, len(passages))
    return _Read(told.narrative_id, record.query, told.narrative_type, record.language, planned)


def _load(task: TaskName, units: int, query: float, answer: float, passages: float) -> Load:
    """Of so many units of a record; the others are seconds for reading its texts, all of its passages together."""
    reading = query * ("query" in FIELDS[task]) + answer * ("answer" in FIELDS[task])
    seconds = units * (reading + len(LABELS[task]) * _QUESTION_SECONDS)
    share = ("chunk" in FIELDS[task]) + ("context" in FIELDS[task]) / _SEARCH_SPEED
    return Load(units, seconds + passages * share) if units else Load()


def expected_population(
    narratives: Iterable[Narrative], askers: Sequence[str], passages: int, locale_of: Callable[[str, str], str]
) -> Population:
    """What is to be judged once each asker, such as a provider, has answered each narrative; lengths are assumed.

    `locale_of` gives the language of the questions by a narrative's language, empty where it has none, and its text;
    empty leaves the narrative out. A narrative whose id came before counts once.
    """
    found: dict[str, PlannedNarrative] = {}
    text = _EXPECTED_LETTERS * 60 / CHARACTERS_A_MINUTE_OF_ALPHABETS
    for each in narratives:
        if locale := locale_of(each.language, each.prompt):
            loads = {
                task: _load(
                    task,
                    passages if is_of_passages(task) else int(passages > 0 or not needs_passages(task)),
                    *(_reading_seconds(each.prompt), text, text * passages),
                )
                for task in TASKS
            }
            records = tuple(PlannedRecord(f"{each.narrative_id} {who}", who, locale, loads, passages) for who in askers)
            found[each.narrative_id] = PlannedNarrative(
                each.narrative_id, each.narrative_id, locale, each.narrative_type, records
            )
    return Population(tuple(found.values()), 0, 0)


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
    places = ((stratum, number, len(own)) for stratum, own in members.items() for number in range(len(own)))
    turns = [turn[1] for turn in sorted((number and (number + 0.5) / size, name) for name, number, size in places)]
    return Stratification({stratum: members[stratum] for stratum in sorted(members)}, tuple(turns))


def draw(strata: Stratification, narratives: int) -> list[Draw]:
    return [
        Draw(each, stratum, count / len(strata.members[stratum]))
        for stratum, count in strata.sizes(narratives).items()
        for each in sorted(strata.members[stratum][:count], key=lambda each: each.key)
    ]
