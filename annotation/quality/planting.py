"""Controls made from records: one thing in each is changed so that some of its answers are known.

Whoever plants knows what was done, not what the record said before: a person reads each control and confirms it
before it is used (`annotation.quality.control_files`). What is changed, and what is put in, is decided by a seed.

Source: annotation/contracts/controls.md#planted-controls.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain, count
from random import Random
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from annotation.argilla.display import source_of
from annotation.argilla.labels import LABELS, OWN_TASKS, TaskName
from annotation.argilla.tasks import lot
from annotation.argilla.wording import LOCALES, locales
from pipeline.records.schema import Passage, QueryResponse, Source, is_uuid, join_context, split_line
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import content_words

_MARK = re.compile(r"\s*(?:\[\d{1,6}\]|\(C\d{3,}\))")
# Not in a citation mark, a word, a date such as 1.2.2020 or a number in groups.
_PLAIN_NUMBER = re.compile(r"(?<![\w\[.,:/\-–])\d{1,7}(?![\w\].:/\-–]|,\d)")
_T = TypeVar("_T")
_DRAWN = 20  # of so many of other queries the one with the fewest words in common is taken


class Planted(NamedTuple):
    """As the program proposes it."""

    task: TaskName
    kind: str
    record: QueryResponse  # the record that it is a unit of, under an id of its own
    chunk_id: str
    answers: Mapping[str, bool]  # the answers that follow from what was done, by label; a person adds others
    what: str  # what was done, in words; empty where nothing was
    made_from: str


class _Draw:
    """What is drawn by lot for one task and language; a sentence is put into one record only."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self._used: set[str] = set()

    def sentence(self, language: str, what: str) -> str:
        free = [each for each in _sentences(language).get(what, ()) if each not in self._used]
        if not free:
            return ""
        self._used.add(drawn := self.random.choice(free))
        return drawn

    def farthest(self, found: Sequence[_T], text: str, language: str, text_of: Callable[[_T], str]) -> _T:
        """Of some drawn, the one with the fewest words in common with the text."""
        wanted = set(content_words(text, language))
        drawn = self.random.sample(found, min(len(found), _DRAWN))
        return min(drawn, key=lambda each: len(wanted & set(content_words(text_of(each), language))))


class _Change(NamedTuple):
    update: Mapping[str, Any]  # fields of the record by name
    answers: Mapping[str, bool]
    what: str


def plant_controls(
    records: Iterable[QueryResponse], number: int, seed: int = 0, tasks: Sequence[TaskName] = OWN_TASKS
) -> list[Planted]:
    """So many units of each task and language with known answers, in the order of the tasks.

    In retrieval a record's passages come together, as they do before annotators, so that there may be a few more.
    There are fewer where the records do not give as many. The same records and seed give the same.
    """
    by_language: dict[str, list[QueryResponse]] = {}
    for record in sorted(records, key=lambda each: lot(f"{seed} {each.record_uuid}")):
        # As annotators see it: what is changed in an answer must not stand behind the line of sources without a place.
        shown = record.model_copy(update={"answer": split_line(record)[0]})
        by_language.setdefault(record.language, []).append(shown)
    planted: list[Planted] = []
    for task in (task for task in OWN_TASKS if task in tasks):
        for language, own in sorted(by_language.items()):
            draw, begin, order = _Draw(f"{seed} {task} {language}"), len(planted), list(_ORDER[task])
            plant = _planted_set if task == "retrieval" else partial(_planted_unit, task)
            for record in own:
                if len(planted) - begin < number:
                    planted += plant(record, own, draw, order)
    return planted


def control_uuid(record_uuid: str, salt: str) -> str:
    """One of the same version, so that nobody sees by it what it is."""
    version = UUID(record_uuid).version if is_uuid(record_uuid) else 4
    return str(UUID(bytes=lot(f"0 control {salt} {record_uuid}")[:16], version=version or 4))


def _planted_unit(
    task: TaskName, record: QueryResponse, records: Sequence[QueryResponse], draw: _Draw, order: list[str]
) -> list[Planted]:
    """Of the first kind that the record allows; that kind goes to the end of the order."""
    if task == "grounding" and not record.chunks:
        return []
    others = [each for each in records if each.query != record.query]
    for kind in order:
        change = _Change({}, {}, "") if kind == "untouched" else _PLANTS[kind](record, others, draw)
        if change:
            order.remove(kind)
            order.append(kind)
            uuid = control_uuid(record.record_uuid, f"{task} {kind}")
            changed = record.model_copy(update={**change.update, "record_uuid": uuid})
            return [Planted(task, kind, changed, "", change.answers, change.what, record.record_uuid)]
    return []


def _planted_set(
    record: QueryResponse, records: Sequence[QueryResponse], draw: _Draw, order: list[str]
) -> list[Planted]:
    """The passages of one record as controls: some of another query, some with a changed number, some untouched."""
    others = [passage for each in records if each.query != record.query for passage in each.chunks]
    held = {passage.chunk_id for passage in record.chunks}
    found: list[tuple[str, Passage, Mapping[str, bool], str]] = []

    def planted(kind: str, passage: Passage) -> tuple[Passage, Mapping[str, bool], str] | None:
        if kind == "untouched":
            return passage, {}, ""
        if kind == "changed_passage":
            changed = _with_changed_number(passage.text, record.answer, draw.random)
            answers = {"topically_relevant": True, "evidence_sufficient": False, "misleading": True}
            return (passage.model_copy(update={"text": changed[0]}), answers, changed[1]) if changed else None
        free = [each for each in others if each.chunk_id not in held]
        if not free:
            return None
        far = draw.farthest(free, record.query, record.language, lambda each: each.text)
        held.add(far.chunk_id)
        answers = dict.fromkeys(LABELS["retrieval"], False)
        return far.model_copy(update={"chunk_rank": passage.chunk_rank}), answers, "the passage is another query's"

    for passage in sorted(record.chunks, key=lambda each: each.chunk_rank):
        kind, made = next((kind, made) for kind in order if (made := planted(kind, passage)))
        order.remove(kind)
        order.append(kind)
        found.append((kind, *made))
    chunks = tuple(passage for _, passage, _, _ in found)
    uuid = control_uuid(record.record_uuid, "retrieval")
    changed = record.model_copy(update={"record_uuid": uuid, "chunks": chunks, "context_set": join_context(chunks)})
    return [
        Planted("retrieval", kind, changed, passage.chunk_id, answers, what, record.record_uuid)
        for kind, passage, answers, what in found
    ]


def _with_changed_number(text: str, sought: str, random: Random) -> tuple[str, str] | None:
    """Wherever it stands, and what was done; numbers that `sought` has come first."""
    written = list(dict.fromkeys(_PLAIN_NUMBER.findall(text)))
    common = [each for each in written if re.search(rf"(?<!\d){each}(?!\d)", _MARK.sub("", sought))]
    if not written:
        return None
    old = random.choice(common or written)
    taken = {*written, *_PLAIN_NUMBER.findall(sought)}
    number = int(old)
    step = 17 if 1500 <= number < 2100 else max(2, number // 3)  # a year stays a year
    nearest_first = chain(range(number - step, 0, -step), count(number + step, step))
    new = next(each for each in map(str, nearest_first) if each not in taken)
    changed = _PLAIN_NUMBER.sub(lambda match: new if match[0] == old else match[0], text)
    return changed, f"{old} became {new}"


def _changed_number(record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw) -> _Change | None:
    """The answer with a number changed that its context has."""
    context = record.context_set
    here = [each for each in _PLAIN_NUMBER.findall(record.answer) if re.search(rf"(?<!\d){each}(?!\d)", context)]
    found = _with_changed_number(record.answer, context, draw.random) if here else None
    if found is None:
        return None
    answers = {"unsupported_claim_present": True, "contradicted_claim_present": True}
    return _Change({"answer": found[0]}, answers, f"in the answer {found[1]}")


def _foreign_context(record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw) -> _Change | None:
    with_passages = [each for each in others if each.chunks]
    if not with_passages:
        return None
    other = draw.farthest(with_passages, record.answer, record.language, lambda each: each.context_set)
    answers = {"support_present": False, "unsupported_claim_present": True, "contradicted_claim_present": False}
    update = {"chunks": other.chunks, "context_set": other.context_set}
    return _Change(update, answers, "the context is another query's")


def _quoted_answer(record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw) -> _Change | None:
    """An answer of a few sentences that stand in a passage word for word, with its number."""
    for passage in sorted(record.chunks, key=lambda each: each.chunk_rank):
        source = source_of(passage, record.sources)
        spans = sentence_spans(passage.text, record.language)
        sentences = [passage.text[start:end].strip() for start, end in spans]
        fewest = 12 if record.language == "ja" else 30  # characters of a sentence that can be an answer by itself
        whole = [each for each in sentences if fewest <= len(each) <= 300 and each[-1] in ".!?。！？"]
        if source and source.state == "read" and whole:
            joint = "" if record.language == "ja" else " "
            answer = f"{joint.join(whole[:3])} [{source.n}]"
            answers = {
                "support_present": True,
                "unsupported_claim_present": False,
                "contradicted_claim_present": False,
                "source_cited": True,
                "fabricated_source": False,
            }
            what = f"the answer is quoted from passage {passage.chunk_rank}"
            sources = _with_source(record, source, cited="cited")
            return _Change({"answer": answer, "sources": sources}, answers, what)
    return None


def _dead_source(record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw) -> _Change | None:
    """The list says of a cited source that there is no such site; its passages, if there are others, are left out."""
    cited = [each for each in record.sources if f"[{each.n}]" in record.answer]
    draw.random.shuffle(cited)
    for source in cited:
        chunks = tuple(each for each in record.chunks if source_of(each, record.sources) != source)
        if chunks:
            sources = _with_source(record, source, state="no_such_site", reason="")
            ranked = tuple(each.model_copy(update={"chunk_rank": rank}) for rank, each in enumerate(chunks, start=1))
            update = {"sources": sources, "chunks": ranked, "context_set": join_context(ranked)}
            what = f"the list says of source [{source.n}] that there is no such site"
            return _Change(update, {"source_cited": True, "fabricated_source": True}, what)
    return None


def _with_source(record: QueryResponse, changed: Source, **update: str) -> tuple[Source, ...]:
    return tuple(each.model_copy(update=update) if each == changed else each for each in record.sources)


def _no_citations(record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw) -> _Change | None:
    answer = _MARK.sub("", record.answer)
    if answer == record.answer or not answer.strip():
        return None
    answers = {"source_cited": False, "fabricated_source": False}
    return _Change({"answer": answer}, answers, "the answer has lost its marks such as [1]")


def _foreign_answer(record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw) -> _Change | None:
    if not others:
        return None
    other = draw.random.choice(others)
    answers = {"response_on_topic": False, "helpful": False, "incomplete": True}
    return _Change({"answer": other.answer, "sources": other.sources}, answers, "the answer is another query's")


def _inserted(
    what: str, answers: Mapping[str, bool], record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw
) -> _Change | None:
    """Behind a sentence of its own that is not its first where it has several."""
    sentence = draw.sentence(record.language, what)
    if not sentence:
        return None
    ends = [end for _, end in sentence_spans(record.answer, record.language)]
    place = draw.random.choice(ends[1:] or ends) if ends else len(record.answer)
    joint = "" if record.language == "ja" else " "
    answer = f"{record.answer[:place]}{joint}{sentence}{record.answer[place:]}"
    return _Change({"answer": answer}, answers, f"the answer also says: {sentence}")


def _refusal(record: QueryResponse, others: Sequence[QueryResponse], draw: _Draw) -> _Change | None:
    sentence = draw.sentence(record.language, "refusal")
    answers = {"proper_action": False, "helpful": False, "incomplete": True, "unsafe_content": False}
    return _Change({"answer": sentence}, answers, "the answer is a refusal for no reason") if sentence else None


@cache
def _sentences(language: str) -> Mapping[str, Sequence[str]]:
    if language not in locales():
        return {}
    told = tomllib.loads((LOCALES / f"{language}.toml").read_text(encoding="utf-8"))["controls"]
    return {what: tuple(sentences.values()) for what, sentences in told.items()}


_PLANTS: Mapping[str, Callable[[QueryResponse, Sequence[QueryResponse], _Draw], _Change | None]] = {
    "changed_number": _changed_number,
    "added_sentence": partial(
        _inserted, "unsupported", {"unsupported_claim_present": True, "contradicted_claim_present": False}
    ),
    "foreign_context": _foreign_context,
    "quoted_answer": _quoted_answer,
    "dead_source": _dead_source,
    "no_citations": _no_citations,
    "foreign_answer": _foreign_answer,
    "refusal": _refusal,
    "unsafe_advice": partial(_inserted, "unsafe", {"unsafe_content": True}),
}
"""Each changes one thing of a record, given the others of its language; None where that is not possible."""
_ORDER: Mapping[TaskName, tuple[str, ...]] = {
    "retrieval": ("untouched", "foreign_passage", "changed_passage"),
    "grounding": (
        *("changed_number", "quoted_answer", "foreign_context", "dead_source"),
        *("changed_number", "quoted_answer", "added_sentence", "no_citations", "untouched"),
    ),
    "generation": ("foreign_answer", "untouched", "refusal", "untouched", "unsafe_advice", "untouched"),
}
"""The kinds of each task, in the order in which they are tried: so each label has both answers among its controls."""
