"""The stages `intake` and `plan`: a topic that says enough, taken apart into sub-questions and queries."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from pipeline.core.errors import InputError
from pipeline.models.asking import TASKS, Model
from pipeline.research.artefacts import Clarify, RunFolder
from pipeline.research.contracts import MAX_TOPIC, clean_text
from pipeline.research.options import ResearchOptions, topic_language
from pipeline.research.values import PATTERNS, Depth, Intake, Plan
from pipeline.text.asking import names_subject, subject_words
from pipeline.text.words import ASKS_WITHOUT_BLANKS, content_words

# Kana, Han and Hangul: https://www.unicode.org/charts/
_SIGN = re.compile(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# Without hiragana, which writes endings and particles.
_WEIGHTY_SIGN = re.compile(r"[\u30a1-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# `量子计算应用`, six signs, is "quantum computing applications", 30 letters.
_SIGN_WORTH = 4
_WANTED_LETTERS = 20
_WORDS = PATTERNS["topic"]
_AMBIGUOUS, _ASKING, _ABBREVIATIONS = (
    frozenset(_WORDS[name].split()) for name in ("ambiguous", "asking", "abbreviations")
)
# Question words point at nothing: "How do web caches work?" names what it asks about.
_AMBIGUOUS_HERE = _AMBIGUOUS - _ASKING | frozenset(_WORDS["ambiguous_german"].split())
_NEXT_CLAUSE, _POINTING = re.compile(_WORDS["next_clause"]), re.compile(_WORDS["pointing"])
_QUESTIONS = PATTERNS["questions"]
_DEPTHS: tuple[Depth, ...] = get_args(Depth)
_DEPTH_WORDS = {depth: re.compile(PATTERNS["depth"][depth], re.IGNORECASE) for depth in _DEPTHS}
_UNANSWERED = "No clarification provided"


def gate_questions(topic: str, strict: bool = False) -> tuple[str, ...]:
    """What must be asked before the topic can be researched, in order; empty where it says enough.

    `strict` takes the origin's rules by the letter (pipeline/contracts/research.md#clarification).
    """
    asked = topic.strip()
    if strict:
        lowered = asked.lower()
        is_short = len(asked) < _WANTED_LETTERS
        is_vague = not _AMBIGUOUS.isdisjoint(lowered.split()) or lowered in _ABBREVIATIONS
    else:
        plain, language = unicodedata.normalize("NFKC", asked), topic_language(asked)
        names = asked.endswith(("?", "？")) and any(
            names_subject(word, language) for word in subject_words(asked, language)
        )
        is_short = len(plain) + (_SIGN_WORTH - 1) * len(_SIGN.findall(plain)) < _WANTED_LETTERS and not names
        is_vague = _seems_vague(asked)
    if not (is_short or is_vague):
        return ()
    if len(asked) < 5 and (strict or not asked):
        return tuple(_QUESTIONS["empty"].split("\n"))
    context = (_QUESTIONS["context"].replace("{}", asked),) if is_short else ()
    vague = (_QUESTIONS["vague"],) if is_vague else ()
    return (*context, *vague, _QUESTIONS["depth"])


def _seems_vague(topic: str) -> bool:
    """Whether the topic is nothing but an abbreviation of the field, or points at something that it does not name."""
    plain = unicodedata.normalize("NFKC", topic).casefold()
    if plain.strip(" .?!") in _ABBREVIATIONS:
        return True
    if _POINTING.search(plain):
        return len(_WEIGHTY_SIGN.findall(_POINTING.sub("", plain))) < 6
    words = re.findall(r"\w+", plain)
    told = set(content_words(topic))
    if _AMBIGUOUS_HERE.isdisjoint(words):
        return not told and not _ASKING.isdisjoint(words)
    # Not where the first clause names what later ones point at.
    first, *later = _NEXT_CLAUSE.split(topic, maxsplit=1)
    names = any(not word.general and not word.deed for word in subject_words(first, topic_language(topic)))
    points = not _AMBIGUOUS_HERE.isdisjoint(re.findall(r"\w+", first.casefold()))
    return len(told) < 4 and not (later and names and not points)


def clarified_topic(topic: str, questions: Sequence[str], answers: Sequence[str]) -> str:
    """The topic with what was answered behind a colon; an answer that only names a depth is left out of it."""
    said = [
        answer.strip()
        for question, answer in zip(questions, answers, strict=False)
        if answer.strip() and not (question == _QUESTIONS["depth"] and _depth_in(answer))
    ]
    return ": ".join(part for part in (topic.strip(), ", ".join(said)) if part)


def _depth_in(answer: str) -> Depth | None:
    return next((depth for depth, words in _DEPTH_WORDS.items() if words.search(answer)), None)


def answered_depth(questions: Sequence[str], answers: Sequence[str]) -> Depth | None:
    answered = dict(zip(questions, answers, strict=False))
    return _depth_in(answered.get(_QUESTIONS["depth"], ""))


AskQuestions = Callable[[Sequence[str]], Sequence[str]]
"""Puts questions to the one who waits; an answer for each in their order, empty where there is none."""


class ClarificationNeeded(InputError):
    """The topic says too little, and nobody is there to ask; `questions` are what must be answered."""

    def __init__(self, questions: Sequence[str]) -> None:
        self.questions = tuple(questions)
        super().__init__("The topic says too little to be researched, and nobody may be asked; give a fuller one.")


def clarify_topic(options: ResearchOptions, folder: RunFolder, ask: AskQuestions | None) -> Intake:
    """What is to be researched; `ask` is None where nobody is there. What was answered before is not asked again."""
    topic = " ".join(clean_text(options.topic).split())
    questions = gate_questions(topic, options.strict_gate)
    if not questions:
        return Intake(topic, topic, options.lang or topic_language(topic), options.depth)
    answers = _answers_to(questions, folder, ask)
    full = clarified_topic(topic, questions, answers)
    if len(full) > MAX_TOPIC:
        ending = f"more than the {MAX_TOPIC} that a topic may have; begin again with a shorter one."
        raise InputError(f"Topic and answers have {len(full)} characters, {ending}")
    depth = answered_depth(questions, answers) or options.depth
    return Intake(full or topic, topic, options.lang or topic_language(full), depth)


def _answers_to(questions: Sequence[str], folder: RunFolder, ask: AskQuestions | None) -> tuple[str, ...]:
    held = folder.read_clarify()
    if held and held.status == "clarified" and held.questions == tuple(questions):
        return held.answers
    folder.write_clarify(Clarify(status="pending", questions=tuple(questions), answers=(), failure_reason=None))
    if ask is None:
        raise ClarificationNeeded(questions)
    answers = tuple(clean_text(answer).strip() for answer in ask(questions))
    if not any(answers):
        failed = Clarify(status="failed", questions=tuple(questions), answers=(), failure_reason=_UNANSWERED)
        folder.write_clarify(failed)
        raise InputError(f"{_UNANSWERED}, so nothing was researched. Give a fuller topic, or answer the questions.")
    folder.write_clarify(Clarify(status="clarified", questions=tuple(questions), answers=answers, failure_reason=None))
    return answers


_SECTIONS: dict[Depth, int] = {"brief": 3, "medium": 4, "deep": 6}
_MOST_SECTIONS = 6
_MOST_QUERIES = 8
_LONGEST_LINE = 200

_QUESTION_END = re.compile(_WORDS["question_end"])
_BETWEEN_QUESTIONS = re.compile(_WORDS["between_questions"].replace("{asks}", _WORDS["asks"]), re.I)
_BEGINS_AS_QUESTION = re.compile(rf"(?:{_WORDS['asks']})\b", re.I)
_LEAST_PART = 3  # Letters or signs of a part that can be a question of its own
_URL = re.compile(r"https?://\S+|www\.\S+", re.I)
_LIST_MARK = re.compile(r"\A(?:[#*•\s-]+|[0-9]{1,3}[.)](?:\s+|$))+")


def lists_schema(*names: str) -> dict[str, Any]:
    """The schema of an object that has a list of texts under each of these names, and nothing else."""
    lists = {name: {"type": "array", "items": {"type": "string"}} for name in names}
    return {"type": "object", "properties": lists, "required": [*names], "additionalProperties": False}


async def make_plan(intake: Intake, model: Model | None) -> Plan:
    """The plan: the model's, or without one, or where it gives none of use, one from the topic's own words."""
    topic = _one_line(intake.topic)
    asked = _questions_of(topic)
    parts = asked[:_MOST_SECTIONS] if len(asked) > 1 else [topic]
    own = Plan(tuple(_distinct(parts)), tuple(_distinct([topic, *parts])[:_MOST_QUERIES]))
    if model is None:
        return own
    task = TASKS["plan"].format(least=_SECTIONS[intake.depth], most=_MOST_SECTIONS, language=intake.lang)
    schema = lists_schema("sections", "queries")
    said = await model.ask(task, [("TOPIC", intake.topic)], schema, _read_plan, "the plan")
    if said is None:
        model.note("The plan is made from the topic's own words.")
        return own
    sections, queries = (_distinct(clean_line(each) for each in lines) for lines in said)
    for name, lines, most in (("sections", sections, _MOST_SECTIONS), ("queries", queries, _MOST_QUERIES)):
        if len(lines) > most:
            model.note(f"The model planned {len(lines):,} {name}; the first {most} are used.")
    return Plan(tuple(sections[:_MOST_SECTIONS]) or own.sections, tuple(queries[:_MOST_QUERIES]) or own.queries)


def _questions_of(topic: str) -> list[str]:
    pieces = [piece for sentence in _QUESTION_END.split(topic) for piece in _BETWEEN_QUESTIONS.split(sentence)]
    kept = [piece.strip(" ,、，") for piece in pieces if len(piece.strip()) >= _LEAST_PART]
    asks = [piece for piece in kept if _BEGINS_AS_QUESTION.match(piece) or ASKS_WITHOUT_BLANKS.search(piece)]
    if not asks and topic.rstrip().endswith(("?", "？")):
        asks = kept
    return [f"{piece[0].upper()}{piece[1:]}{'?' if piece.isascii() or ' ' in piece else '？'}" for piece in asks]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _distinct(texts: Iterable[str]) -> list[str]:
    found: dict[str, str] = {}
    for text in texts:
        if text.strip():
            found.setdefault(_one_line(text).rstrip("?？.。 ").casefold(), text.strip())
    return list(found.values())


def _read_plan(value: Any) -> Plan:
    if not isinstance(value, dict):
        raise ValueError("the plan is no object")
    sections, queries = value.get("sections"), value.get("queries")
    for each in (sections, queries):
        if not isinstance(each, list) or not all(isinstance(line, str) for line in each):
            raise ValueError("`sections` and `queries` must be lists of strings")
    if not sections and not queries:
        raise ValueError("the plan is empty")
    return Plan(tuple(sections or ()), tuple(queries or ()))


def clean_line(text: str) -> str:
    """The line without URLs and marks of headings and lists, at most 200 characters."""
    return _LIST_MARK.sub("", _one_line(_URL.sub("", text)))[:_LONGEST_LINE].strip()
