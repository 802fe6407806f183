"""What people said of each answer, and examples of what they found: sentences of answers beside their passages."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TaskName, is_of_passages
from exports.statistics.ratings import RATINGS, label_votes
from exports.statistics.study import Study
from pipeline.citations.addresses import document_id, shown_host, url_host
from pipeline.records.run import numbered_lines
from pipeline.records.schema import CONTEXT_SEPARATOR, QueryResponse, Source, split_line
from pipeline.text.sentences import sentence_spans, trim_snippet
from pipeline.text.words import words_and_numbers

if TYPE_CHECKING:
    from exports.report.disagreement_files import UnitDetails, UnitKey

EXAMPLES = 3
_LONGEST = 400
"""So many characters of a passage, a note or the beginning of an answer are shown, up to the end of a sentence."""
_BESIDE = ("contradicted_claim_present", "unsupported_claim_present")
_CITED = "fabricated_source"
_MARK, _EMPHASIS = re.compile(r"\[(\d+)\]"), re.compile(r"\*+|__|~~|`+|^#+ ", re.MULTILINE)
"""The one form of citations, and what Markdown puts around words."""


class JudgedAnswer(NamedTuple):
    record: str
    narrative: str
    query: str  # Empty where not known
    group: str
    people: int  # Who judged it, on the question that most of them answered
    said: Mapping[str, tuple[int, int]]  # How many said so, of how many, by term of a finding

    def has(self, term: str) -> bool:
        """Whether at least half of the people say so."""
        said, of = self.said.get(term, (0, 0))
        return of > 0 and 2 * said >= of


def judged_answers(study: Study, queries: Mapping[str, str], column: str, terms: Collection[str]) -> list[JudgedAnswer]:
    """Every answer with votes, by narrative and group, the value of the column; passages and anybody's do not count."""
    said: dict[str, dict[str, tuple[int, int]]] = {}
    for ratings in study.tables:
        if ratings.measured_as == RATINGS or is_of_passages(ratings.task):
            continue
        for at, label in enumerate(ratings.labels):
            votes = label_votes(ratings, at)
            rows = zip(ratings.unit_records.tolist(), votes.zeros.tolist(), votes.ones.tolist(), strict=True)
            for record, no, yes in rows:
                of_record = said.setdefault(ratings.records[record], {})
                both = {label: (yes, yes + no), f"not {label}": (no, yes + no)}
                of_record |= {term: each for term, each in both.items() if term in terms and each[1]}
    found = [
        JudgedAnswer(
            record,
            study.narratives.get(record, record),
            queries.get(record, ""),
            study.provenance.get(record, {}).get(column, ""),
            max(of for _, of in of_record.values()),
            of_record,
        )
        for record, of_record in said.items()
        if of_record
    ]
    return sorted(found, key=lambda each: (each.narrative, each.group, each.record))


def choose_examples(answers: Iterable[JudgedAnswer], term: str) -> list[JudgedAnswer]:
    """Those of which most people say so, the most agreed first; of other groups and narratives while there are."""
    left = sorted(
        (each for each in answers if each.has(term) and 2 * each.said[term][0] > each.said[term][1]),
        key=lambda each: (-each.said[term][0] / each.said[term][1], -each.said[term][1], each.record),
    )
    chosen: list[JudgedAnswer] = []
    while left and len(chosen) < EXAMPLES:
        groups, narratives = {each.group for each in chosen}, {each.narrative for each in chosen}
        chosen.append(min(left, key=lambda each: (each.group in groups) + (each.narrative in narratives)))
        left.remove(chosen[-1])
    return chosen


class Example(NamedTuple):
    answer: JudgedAnswer
    sentence: str
    passage: str  # Beside it; empty where there is none
    site: str  # Where the passage is from, or the source that the sentence cites; empty where not known
    source: Source | None  # What the sentence cites where no passage is beside it
    notes: tuple[str, ...]


class _Passage(NamedTuple):
    text: str
    site: str
    numbers: frozenset[str]  # The answer's marks that lead to its page; empty where not known


def read_examples(
    chosen: Mapping[str, Sequence[JudgedAnswer]],
    read_details: "Callable[[Iterable[UnitKey]], Mapping[UnitKey, UnitDetails]]",
    runs: Sequence[Path],
) -> dict[str, list[Example]]:
    """The chosen answers of each term with their texts; `runs` tell which page a mark leads to."""
    tasks: dict[str, TaskName] = {term: _task_of(term) for term in chosen}
    wanted = {each.record for answers in chosen.values() for each in answers}
    units: set[UnitKey] = {(task, record, "") for record in wanted for task in ("generation", "grounding")}
    units |= {(tasks[term], each.record, "") for term, answers in chosen.items() for each in answers}
    details, records = read_details(units), _read_records(runs, wanted)
    return {
        term: [_example(each, term, details, tasks[term], records.get(each.record)) for each in answers]
        for term, answers in chosen.items()
    }


def _task_of(term: str) -> TaskName:
    return next(task for task, labels in LABELS.items() if term.removeprefix("not ") in labels)


def _read_records(runs: Sequence[Path], wanted: Collection[str]) -> dict[str, QueryResponse]:
    """Of several records of one answer the first with passages."""
    found: dict[str, QueryResponse] = {}
    named = re.compile("|".join(map(re.escape, sorted(wanted))) or "(?!)")
    for run in runs:
        path = run / "records.jsonl" if run.is_dir() else run
        for _, line in numbered_lines(path) if path.is_file() else ():
            if named.search(line) and (record := QueryResponse.model_validate_json(line)).record_uuid in wanted:
                known = found.get(record.record_uuid)
                found[record.record_uuid] = record if known is None or not known.chunks else known
    return found


def _example(
    answer: JudgedAnswer,
    term: str,
    details: "Mapping[UnitKey, UnitDetails]",
    task: TaskName,
    record: QueryResponse | None,
) -> Example:
    generation, grounding = (details[own, answer.record, ""] for own in ("generation", "grounding"))
    text = generation.texts[1] or grounding.texts[0]
    text = split_line(record)[0] if record else text
    query = answer.query or generation.texts[0]
    notes = tuple(trim(" ".join(note.split())) for note in details[task, answer.record, ""].told_notes.values())
    found = Example(answer._replace(query=query), _shown(text), "", "", None, notes)
    sentences, passages = (
        [text[start:end] for start, end in sentence_spans(text)],
        _passages(grounding.texts[1], record),
    )
    if term == _CITED:
        return _with_cited(found, sentences, record, passages)
    if term not in _BESIDE or not sentences or not passages:
        return found
    quotes = [
        quote.removeprefix("contradicts: ")
        for marks in grounding.told_marks.values()
        for quote in marks
        if quote.startswith("contradicts: ")
    ]
    sentence, passage, part = _nearest(sentences, passages, quotes, _words(" ".join(notes)))
    return found._replace(sentence=_shown(sentence), passage=part, site=passage.site)


def trim(text: str) -> str:
    shown = trim_snippet(text.strip(), _LONGEST)
    return shown if len(shown) >= len(text.strip()) else f"{shown} …"


def _shown(answer: str) -> str:
    """A part of an answer without its Markdown, on one line."""
    return trim(" ".join(_EMPHASIS.sub("", answer).split()))


def _passages(context: str, record: QueryResponse | None) -> list[_Passage]:
    if record is None or not record.chunks:
        return [_Passage(text, "", frozenset()) for text in context.split(CONTEXT_SEPARATOR) if text.strip()]
    numbers: dict[str, set[str]] = {}
    for source in record.sources:
        for url in filter(None, (source.url, source.page_url)):
            numbers.setdefault(document_id(url), set()).add(str(source.n))
    return [
        _Passage(each.text, shown_host(url_host(each.url)), frozenset(numbers.get(each.doc_id, ())))
        for each in record.chunks
    ]


def _with_cited(
    found: Example, sentences: Sequence[str], record: QueryResponse | None, passages: Sequence[_Passage]
) -> Example:
    """With a sentence that cites a source: one that people noted, of which there is no text, or that shares least."""
    sources = {str(source.n): source for source in record.sources} if record else {}
    noted = set(re.findall(r"\d+", " ".join(found.notes)))

    def rank(cited: tuple[str, str]) -> tuple[bool, bool, int]:
        sentence, number = cited
        own = [_words(each.text) for each in passages if number in each.numbers]
        is_held = number not in sources or sources[number].state in ("read", "unfetched")
        return number not in noted, is_held, max((len(_words(sentence) & words) for words in own), default=0)

    cited = [(sentence, number) for sentence in sentences for number in _numbers(sentence)]
    if not cited:
        return found
    sentence, number = min(cited, key=rank)
    source, own = sources.get(number), [each for each in passages if number in each.numbers]
    site = shown_host(url_host(source.page_url or source.url)) if source else ""
    part = _nearest([sentence], own, (), frozenset())[2] if own else ""
    return found._replace(sentence=_shown(sentence), passage=part, source=source, site=site)


def _numbers(sentence: str) -> list[str]:
    return _MARK.findall(sentence)


def _nearest(
    sentences: Sequence[str], passages: Sequence[_Passage], quotes: Sequence[str], noted: Set[str]
) -> tuple[str, _Passage, str]:
    """A sentence of the answer, the passage that it is about, and the part of the passage around what it says of it.

    The passage is one in which people marked words that contradict, else one that the sentence cites, if there is one;
    both share most words, first with what people noted, and say different numbers where they share none.
    """
    marked = [(each, quote) for quote in quotes for each in passages if quote in each.text]
    parts = marked or [(each, each.text[start:end]) for each in passages for start, end in sentence_spans(each.text)]
    told = [(passage, part, *words_and_numbers(part, "")) for passage, part in parts]

    def rank(sentence: str, passage: _Passage, words: Set[str], numbers: Set[str]) -> tuple[int, ...]:
        own, counts = words_and_numbers(sentence, "")
        shared = len(own & words) + len(counts & numbers)
        cites = shared > 0 and not passage.numbers.isdisjoint(_numbers(sentence))
        differ = shared > 1 and bool(counts - numbers and numbers - counts)
        return cites, len(noted & (own | counts)) + len(noted & (words | numbers)), differ, shared

    place, at = max(
        ((place, at) for place in range(len(sentences)) for at in range(len(told))),
        key=lambda pair: (*rank(sentences[pair[0]], told[pair[1]][0], *told[pair[1]][2:]), -pair[0], -pair[1]),
    )
    passage, part, *_ = told[at]
    return sentences[place], passage, _around(passage.text, part)


def _words(text: str) -> frozenset[str]:
    words, numbers = words_and_numbers(text, "")
    return words | numbers


def _around(passage: str, part: str) -> str:
    """The passage where it is short, else so much of it from the sentence of the part on, or from before it."""
    at = passage.find(part)
    starts = [start for start, end in sentence_spans(passage) if end <= at]
    first = starts[-1] if starts and len(passage) > _LONGEST else 0
    return ("… " if first else "") + trim(passage[first:])


def count_differing(units: "np.ndarray", codes: "np.ndarray") -> tuple[int, int]:
    """On how many units people gave different values, of how many that two or more rated."""
    rated, of_unit = np.unique(units, return_counts=True)
    values = (
        np.bincount(np.unique(np.stack([units, codes]), axis=1)[0], minlength=len(rated)) if len(units) else of_unit
    )
    return int((values > 1).sum()), int((of_unit > 1).sum())
