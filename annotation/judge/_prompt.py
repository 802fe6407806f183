"""What a model is asked about one unit: the labels' meaning in our words, and the texts as data that nobody obeys.

Each text stands under a line with a digest of all of them, which nobody who writes one of them can know: none can end
itself or begin another. The same unit has the same prompt each time, so that its judgement is found again.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from annotation.display import host_of, source_line, source_list, source_of
from annotation.judge._units import Unit, pages_of
from annotation.labels import LABEL_MODELS, LABELS, RULES, TaskName
from annotation.wording import read_wording
from pipeline.models.evidence import aggregate_context
from pipeline.models.structured import DATA_RULE, marked_texts, marking_words

_SYSTEM_PROMPT = f"""You are a careful annotator. You answer yes/no questions about texts that were collected from the \
web and from language models, and you answer in JSON only.

{DATA_RULE} judge. Judge it like any other text."""

_UNIT_WORDS: dict[TaskName, str] = {
    "retrieval": "Judge ONE passage against the query. Do not judge whether the passage is right.",
    "grounding": "Judge ONE answer to a query against the whole context below it. Only the context counts, not what "
    'you know; the query says what an answer such as "No." claims.',
    "generation": "Judge ONE answer against its query.",
}
_CLAIM = (
    'A "claim" is a substantive statement that can be right or wrong, not a greeting, a hedge or a heading. A query is '
    'often a statement; read it as "Is this true, and why?". An answer that opens with "No." claims that the statement '
    "is false. `[n]` in an answer, or `(C001)`, is a citation marker."
)
_EVIDENCE_WORDS = (
    "`evidence`: one to three quotes that your judgement rests on, also where it is no (then what comes closest). "
    "`snippet` is copied letter for letter from the text below one line `### [PAGE] URL`, at most 320 characters, one "
    "stretch without omissions. `url` is the URL of that line."
)
_FORM_WORDS = (
    "Answer with one JSON object and nothing else. `labels` has every label above and no other; `value` is true for "
    "yes. `p_yes` is the probability from 0 to 1 that the value is yes, so it is above 0.5 for yes and below 0.5 "
    "for no. `rationale` says why in at most three sentences."
)


class Prompt(NamedTuple):
    """What is put to a model: its instructions, the prompt, the JSON Schema of the answer, and the pages in it."""

    system: str
    text: str
    schema: dict[str, Any]
    context: str

    @property
    def sha256(self) -> str:
        """The digest of all that the model sees."""
        return digest(self.text, self.system, self.schema)


def digest(prompt: str, system: str, schema: Mapping[str, Any]) -> str:
    """sha256 of what is put to a model, in hex."""
    parts = (system, prompt, json.dumps(schema, sort_keys=True))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def build_prompt(unit: Unit) -> Prompt:
    """The prompt for one unit."""
    context = aggregate_context(pages_of(unit.passages))
    sections = _sections_of(unit, context)
    parts = [
        _UNIT_WORDS[unit.task],
        _CLAIM,
        f"Labels of this task:\n{_label_words(unit.task)}",
        _rule_words(unit.task),
        _EVIDENCE_WORDS if unit.passages else "",
        _FORM_WORDS,
        marking_words(sections),
        marked_texts(sections),
        "Answer in JSON now.",
    ]
    return Prompt(_SYSTEM_PROMPT, "\n\n".join(part for part in parts if part), _answer_schema(unit), context)


def _sections_of(unit: Unit, context: str) -> list[tuple[str, str]]:
    """What annotators see of the unit: the name of each text, and the text."""
    record, wording = unit.record, read_wording("en")
    if unit.task == "retrieval":
        (passage,) = unit.passages
        host = host_of(passage, source_of(passage, record.sources))
        return [
            ("QUERY", record.query),
            ("SOURCE OF THE PASSAGE", source_line(passage.title, host, wording)),
            ("PASSAGE", context),
        ]
    if unit.task == "generation":
        return [("QUERY", record.query), ("ANSWER", record.answer)]
    sources = source_list(record.sources, wording)
    return [
        ("SOURCES CITED BY THE ANSWER", sources),
        ("QUERY", record.query),
        ("ANSWER", record.answer),
        ("CONTEXT", context),
    ]


def _label_words(task: TaskName) -> str:
    """Each label with its meaning and with what annotators are told to be careful about."""
    questions = read_wording("en").questions[task]
    meanings = {name: field.description for name, field in LABEL_MODELS[task].model_fields.items()}
    return "\n".join(f"- {label}: yes when: {meanings[label]} {questions[label].description}" for label in LABELS[task])


def _rule_words(task: TaskName) -> str:
    """The rules between the labels; empty where the task has none."""
    return "\n".join(
        f"Where {rule.antecedent} is yes, {rule.consequent} is {'yes' if rule.required else 'no'}."
        for rule in RULES
        if rule.task == task
    )


def _answer_schema(unit: Unit) -> dict[str, Any]:
    """The JSON Schema of the answer; evidence is asked for where there are passages to quote."""
    label = _closed({"value": {"type": "boolean"}, "p_yes": {"type": "number", "minimum": 0, "maximum": 1}})
    quote = _closed({"url": {"type": "string"}, "snippet": {"type": "string"}})
    fields: dict[str, Any] = {
        "labels": _closed({name: label for name in LABELS[unit.task]}),
        "rationale": {"type": "string"},
    }
    return _closed({**fields, "evidence": {"type": "array", "items": quote}} if unit.passages else fields)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
