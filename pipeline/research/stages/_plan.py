"""The topic taken apart: sub-questions, which become the report's sections, and queries for the search."""

import re
from collections.abc import Iterable
from typing import Any

from pipeline.models.asking import Model
from pipeline.research.values import Depth, Intake, Plan
from pipeline.text.words import ASKS_WITHOUT_BLANKS

_SECTIONS: dict[Depth, int] = {"brief": 3, "medium": 4, "deep": 6}
_MOST_SECTIONS = 6
_MOST_QUERIES = 8
_LONGEST_LINE = 200
"""Characters of a section or a query of the model's; a longer one is cut."""

_QUESTION_END = re.compile(r"[?？;；。]\s*|[.!](?:\s+|$)")
_ASKING = (
    r"how|what|why|when|where|who|which|is|are|does|do|can|should|will|"
    r"wie|was|warum|wieso|weshalb|wozu|wofür|womit|woran|wann|wo|wer|welche[rsnm]?|ist|sind|kann|können|soll\w*|wird|werden"
)
_BETWEEN_QUESTIONS = re.compile(
    rf",?\s+(?:and|or|und|oder|sowie)\s+(?=(?:{_ASKING})\b)|、?(?:そして|また|および)、?|[,,]?(?:以及|并且|还有)", re.I
)
_BEGINS_AS_QUESTION = re.compile(rf"(?:{_ASKING})\b", re.I)
_COMMAS = " ,、，"
_LEAST_PART = 3
"""Letters or signs of a part that can be a question of its own."""
_URL = re.compile(r"https?://\S+|www\.\S+", re.I)
_LIST_MARK = re.compile(r"\A(?:[#*•\s-]+|[0-9]{1,3}[.)](?:\s+|$))+")

_PLAN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sections": {"type": "array", "items": {"type": "string"}},
        "queries": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["sections", "queries"],
    "additionalProperties": False,
}


async def make_plan(intake: Intake, model: Model | None) -> Plan:
    """The plan: the model's, or without one, or where it gives none of use, one from the topic's own words.

    At most 6 sections and 8 queries, none of them twice.

    Raises:
        ProviderError: the model cannot be asked.
    """
    own = _plan_from_words(intake)
    if model is None:
        return own
    task = (
        "Plan the research on the topic below for a report whose reader has not studied it. `sections` are "
        f"{_SECTIONS[intake.depth]} to {_MOST_SECTIONS} sub-questions that together answer it, in the order in which a "
        "reader wants them, each a heading of at most 12 words. `queries` are 5 to 8 queries for a search engine, "
        f"each on another side of the topic. Write both in the language with the code {intake.lang!r}; a query may be "
        "in another language where better sources are in that."
    )
    said = await model.ask(task, [("TOPIC", intake.topic)], _PLAN_SCHEMA, _read_plan, "the plan")
    if said is None:
        model.note("The plan is made from the topic's own words.")
        return own
    sections, queries = (_distinct(clean_line(each) for each in lines) for lines in said)
    for name, lines, most in (("sections", sections, _MOST_SECTIONS), ("queries", queries, _MOST_QUERIES)):
        if len(lines) > most:
            model.note(f"The model planned {len(lines):,} {name}; the first {most} are used.")
    return Plan(
        tuple(sections[:_MOST_SECTIONS]) or own.sections,
        tuple(queries[:_MOST_QUERIES]) or own.queries,
    )


def _plan_from_words(intake: Intake) -> Plan:
    """The plan from the topic's own words: its questions one by one, or the topic itself where it asks at most one."""
    topic = _one_line(intake.topic)
    asked = _questions_of(topic)
    parts = asked[:_MOST_SECTIONS] if len(asked) > 1 else [topic]
    return Plan(tuple(_distinct(parts)), tuple(_distinct([topic, *parts])[:_MOST_QUERIES]))


def _questions_of(topic: str) -> list[str]:
    """The questions of the topic in order, with their question mark; none where it asks nothing."""
    pieces = [piece for sentence in _QUESTION_END.split(topic) for piece in _BETWEEN_QUESTIONS.split(sentence)]
    kept = [piece.strip(_COMMAS) for piece in pieces if len(piece.strip()) >= _LEAST_PART]
    asks = [piece for piece in kept if _BEGINS_AS_QUESTION.match(piece) or ASKS_WITHOUT_BLANKS.search(piece)]
    if not asks and topic.rstrip().endswith(("?", "？")):
        asks = kept
    return [f"{piece[0].upper()}{piece[1:]}{'?' if piece.isascii() or ' ' in piece else '？'}" for piece in asks]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _distinct(texts: Iterable[str]) -> list[str]:
    """The texts without blanks around them, those that differ in case or their question mark alone once, in order."""
    found: dict[str, str] = {}
    for text in texts:
        if text.strip():
            found.setdefault(_one_line(text).rstrip("?？.。 ").casefold(), text.strip())
    return list(found.values())


def _read_plan(value: Any) -> Plan:
    """The lines of a model's plan.

    Raises:
        ValueError: it has another form.
    """
    if not isinstance(value, dict):
        raise ValueError("the plan is no object")
    lines = [value.get(name) for name in ("sections", "queries")]
    for each in lines:
        if not isinstance(each, list) or not all(isinstance(line, str) for line in each):
            raise ValueError("`sections` and `queries` must be lists of strings")
    sections, queries = lines
    if not sections and not queries:
        raise ValueError("the plan is empty")
    return Plan(tuple(sections or ()), tuple(queries or ()))


def clean_line(text: str) -> str:
    """The line without URLs and marks of headings and lists, at most 200 characters."""
    return _LIST_MARK.sub("", _one_line(_URL.sub("", text)))[:_LONGEST_LINE].strip()
