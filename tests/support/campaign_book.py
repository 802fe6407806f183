"""The records of the campaign that tests/product/test_campaign.py acts out, and a book of what was done with them.

The book counts in plain Python, so that what the commands say can be held against it.
"""

import hashlib
from collections import Counter, defaultdict
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from annotation.argilla.display import opaque_id
from annotation.argilla.rendering import plain_text
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source, join_context

NAMESPACE = UUID("0b9d1f5a-2f6e-4f0c-8f2c-6a1f5b8d7e21")
TASKS = ("retrieval", "grounding", "generation")
LABELS = {
    "retrieval": ("topically_relevant", "evidence_sufficient", "misleading"),
    "grounding": (
        "support_present",
        "unsupported_claim_present",
        "contradicted_claim_present",
        "source_cited",
        "fabricated_source",
    ),
    "generation": ("proper_action", "response_on_topic", "helpful", "incomplete", "unsafe_content"),
}
# What the rules between labels forbid: the rule's name, a label that is yes, and another one's value beside it.
FORBIDDEN = {
    "retrieval": (
        ("evidence_requires_relevance", "evidence_sufficient", "topically_relevant", "no"),
        ("evidence_excludes_misleading", "evidence_sufficient", "misleading", "yes"),
    ),
    "grounding": (
        ("contradiction_requires_unsupported", "contradicted_claim_present", "unsupported_claim_present", "no"),
        ("fabricated_requires_cited", "fabricated_source", "source_cited", "no"),
    ),
    "generation": (),
}
SENTENCES = {
    "en": (
        "Which bridge number {n} is the longest?",
        "Bridge {n} is the longest [1].",
        "Bridge {n}: {k} metres & more.",
    ),
    "de": ("Welche Brücke Nummer {n} ist am längsten?", "Brücke {n} ist am längsten [1].", "Brücke {n}: {k} Meter."),
    "ja": ("{n}番の橋は最も長いですか。", "{n}番の橋が最も長いです[1]。", "橋{n}は{k}メートルです。"),
}


def record(number: int, language: str, passages: int = 2) -> QueryResponse:
    """A canonical record that its number alone decides."""
    query, answer, text = SENTENCES.get(language, SENTENCES["en"])
    url = f"https://bridges.example/{number}"
    chunks = tuple(
        Passage(chunk_id=f"d{number}#{k}", doc_id=f"d{number}", chunk_rank=k, text=text.format(n=number, k=k), url=url)
        for k in range(1, passages + 1)
    )
    return QueryResponse(
        record_uuid=str(uuid5(NAMESPACE, str(number))),
        query=query.format(n=number),
        answer=answer.format(n=number),
        language=language,
        sources=(Source(n=1, url=url, host="bridges.example", title=f"Bridge {number}", state="read"),),
        chunks=chunks,
        context_set=join_context(chunks),
        provenance=Provenance(model_name="grok", model_version="grok-4", narrative_id=str(number)),
    )


def units_of(each: QueryResponse) -> dict[str, list[str]]:
    passages = [opaque_id(each.record_uuid, plain_text(chunk.text)) for chunk in each.chunks]
    return {"retrieval": passages, "grounding": [each.record_uuid] * bool(passages), "generation": [each.record_uuid]}


def draw(*words: object) -> int:
    """A number that only the words decide."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, words)).encode()).digest()[:4], "big")


def answers(task: str, who: str, external_id: str) -> dict[str, str]:
    """How somebody labels a unit: yes to two of five, by who and what it is, so that rules are broken now and then."""
    return {label: "yes" if draw(who, external_id, label) % 5 < 2 else "no" for label in LABELS[task]}


class Done(NamedTuple):
    status: str
    """`submitted`, `draft` or `discarded`."""
    labels: dict[str, str]
    """Empty for a discard without any."""
    note: str
    guidelines: str
    """The edition of the guidelines that they read."""


class Shelf(NamedTuple):
    round: str
    locale: str
    task: str
    version: int

    @property
    def name(self) -> str:
        round_part = "" if self.round == "production" else f"{self.round}-"
        version_part = "" if self.version == 1 else f"-v{self.version}"
        return f"{round_part}{TASKS.index(self.task) + 1}-{self.task}-{self.locale}{version_part}"


class Book:
    """Everything that is in the campaign, and everything that was done, counted by hand."""

    def __init__(self, overlap: int) -> None:
        """An empty campaign in which each record of production waits for `overlap` annotators."""
        self.overlap = overlap
        self.closed_overlap: dict[Shelf, int] = {}
        """How many people each record of a calibration that is done had waited for."""
        self.units: dict[Shelf, dict[str, str]] = {}
        self.passages: dict[tuple[str, str], str] = {}
        """External ids of passages by `record_uuid` and `chunk_id`; they stay, whatever becomes of the texts."""
        self.done: dict[tuple[Shelf, str, str], Done] = {}
        self.members: dict[str, tuple[str, ...]] = {}
        self.newcomers: dict[Shelf, set[str]] = {}
        """Who joined after a calibration was done, and alone still gets what is in it."""

    def close_calibration(self, members: dict[str, tuple[str, ...]]) -> None:
        """Write down who the members are now: a calibration that is done waits for who has nothing in it, no others."""
        for locale, names in members.items():
            shelves = [each for each in self.units if each.round == "calibration" and each.locale == locale]
            pairs = [(shelf, unit) for shelf in shelves for unit in self.units[shelf]]
            if not pairs or not all(self.settled(*pair) >= self.min_submitted(pair[0]) for pair in pairs):
                self.closed_overlap = {each: n for each, n in self.closed_overlap.items() if each not in shelves}
                continue
            for shelf in shelves:
                self.closed_overlap[shelf] = self.min_submitted(shelf)
                begun = {who for place, _, who in self.done if place == shelf}
                self.newcomers[shelf] = {*names} - begun or self.newcomers.get(shelf, set())
        self.members = members

    def settled(self, shelf: Shelf, unit: str) -> int:
        return sum(each[:2] == (shelf, unit) and done.status != "draft" for each, done in self.done.items())

    def shelf(self, round_name: str, locale: str, task: str) -> Shelf:
        same = [each for each in self.units if each[:3] == (round_name, locale, task)]
        return max(same, key=lambda each: each.version, default=Shelf(round_name, locale, task, 1))

    def put(self, each: QueryResponse, round_name: str, locale: str) -> None:
        """Write down that the record is in the newest datasets of a round and language."""
        names = zip(each.chunks, units_of(each)["retrieval"], strict=True)
        self.passages |= {(each.record_uuid, chunk.chunk_id): name for chunk, name in names}
        for task, external_ids in units_of(each).items():
            shelf = self.units.setdefault(self.shelf(round_name, locale, task), {})
            shelf.update(dict.fromkeys(external_ids, each.record_uuid))

    def raise_version(self, task: str) -> None:
        """Write down that every dataset of a task has a new version with the same records."""
        for shelf in [each for each in self.units if each.task == task and each == self.shelf(*each[:3])]:
            self.units[shelf._replace(version=shelf.version + 1)] = dict(self.units[shelf])

    def min_submitted(self, shelf: Shelf) -> int:
        if shelf.round != "calibration":
            return self.overlap
        return self.closed_overlap.get(shelf, len(self.members.get(shelf.locale, ())))

    def of(self, shelf: Shelf, status: str, who: str | None = None) -> list[tuple[str, str, Done]]:
        """What was done there with a status, by one person where they are named: unit, person and answer."""
        return [
            (unit, person, done)
            for (place, unit, person), done in self.done.items()
            if place == shelf and done.status == status and who in (None, person)
        ]

    def submitters(self, shelf: Shelf) -> Counter[str]:
        found = Counter(dict.fromkeys(self.units[shelf], 0))
        found.update(unit for unit, _, _ in self.of(shelf, "submitted"))
        return found

    def waiting(self, shelf: Shelf, who: str) -> set[str]:
        if who not in self.members.get(shelf.locale, ()) or shelf != self.shelf(*shelf[:3]):
            return set()
        if self.newcomers.get(shelf, {who}).isdisjoint({who}):
            return set()
        return {unit for unit, lack in self.lacking(shelf).items() if lack and (shelf, unit, who) not in self.done}

    def broken(self, shelf: Shelf, who: str | None = None) -> dict[str, int]:
        """How often each rule between labels was broken there."""
        found = Counter(
            rule
            for _, _, done in self.of(shelf, "submitted", who)
            for rule, first, second, value in FORBIDDEN[shelf.task]
            if done.labels[first] == "yes" and done.labels[second] == value
        )
        return dict(sorted(found.items()))

    def status(self, shelf: Shelf) -> dict[str, Any]:
        """What `status` is to say about a dataset, by the names of its fields."""
        is_superseded = shelf != self.shelf(*shelf[:3])
        lacking = self.lacking(shelf)
        reached = sum(not lack for lack in lacking.values())
        by_record: defaultdict[str, list[bool]] = defaultdict(list)
        for unit, record_uuid in self.units[shelf].items():
            by_record[record_uuid].append(not lacking[unit])
        half = {key: sum(values) for key, values in by_record.items() if 0 < sum(values) < len(values)}
        people = {*self.members.get(shelf.locale, ()), *(who for place, _, who in self.done if place == shelf)}
        return {
            "records": len(lacking),
            "is_superseded": is_superseded,
            "min_submitted": self.min_submitted(shelf),
            "overlap_reached": reached,
            "pending": 0 if is_superseded else len(lacking) - reached,
            "needed": 0 if is_superseded else sum(lacking.values()),
            "unreachable": 0 if is_superseded else self.unreachable(shelf),
            "done": len(self.of(shelf, "submitted")),
            "drafts": len(self.of(shelf, "draft")),
            "discarded": len(self.of(shelf, "discarded")),
            "broken_rules": self.broken(shelf),
            "half_done": half if shelf.task == "retrieval" and not is_superseded else {},
            "annotators": {who: self.person(shelf, who) for who in sorted(people)},
        }

    def lacking(self, shelf: Shelf) -> dict[str, int]:
        """How many submissions each unit waits for: those of newcomers, or what its overlap wants."""
        new = self.newcomers.get(shelf)
        if not new:
            need = self.min_submitted(shelf)
            return {unit: max(0, need - count) for unit, count in self.submitters(shelf).items()}
        given = {(unit, who) for unit, who, _ in self.of(shelf, "submitted")}
        return {unit: sum((unit, who) not in given for who in new) for unit in self.units[shelf]}

    def unreachable(self, shelf: Shelf) -> int:
        """The units for which too few people are left."""
        settled: defaultdict[str, set[str]] = defaultdict(set)
        for (place, unit, who), done in self.done.items():
            if place == shelf and done.status != "draft":
                settled[unit].add(who)
        people = self.newcomers.get(shelf) or set(self.members.get(shelf.locale, ()))
        return sum(len(people - settled[unit]) < lack for unit, lack in self.lacking(shelf).items())

    def person(self, shelf: Shelf, who: str) -> dict[str, Any]:
        """What `status` is to say about one person in a dataset."""
        return {
            "is_member": who in self.members.get(shelf.locale, ()),
            "done": len(self.of(shelf, "submitted", who)),
            "pending": len(self.waiting(shelf, who)),
            "drafts": len(self.of(shelf, "draft", who)),
            "discarded": len(self.of(shelf, "discarded", who)),
            "broken_rules": self.broken(shelf, who),
            "questions": sum(
                done.note.startswith("?") for (*place, by), done in self.done.items() if (place[0], by) == (shelf, who)
            ),
        }

    def notes_to_lead(self) -> list[tuple[str, str, str]]:
        """Person, unit and text of each note that begins with a question mark, sorted."""
        return sorted((who, unit, done.note) for (_, unit, who), done in self.done.items() if done.note.startswith("?"))
