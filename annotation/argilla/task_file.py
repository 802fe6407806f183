"""A task as a file: what is judged, the questions with their scales, the rules between them, and their wording.

The form: annotation/contracts/tasks.md. The tasks that come with citejury are `annotation/tasks/*.toml`.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.schema import Frozen

ScaleName = Literal["boolean", "nominal", "ordinal", "interval"]
UnitName = Literal["answer", "passage"]
UNIT_FIELDS: Mapping[UnitName, Mapping[str, str]] = {
    "answer": {"query": "query", "answer": "answer", "context": "context_set", "sources": ""},
    "passage": {"query": "input_query", "source": "", "chunk": "chunk"},
}
"""What annotators can be shown of a unit, each with the column of the exports that has its text, if any has."""
ANSWERS = ("yes", "no")
NOTES = "notes"
EVIDENCE = "evidence"
"""Name of grounding's span question, in datasets that have it: the words of the context that decided."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TASK_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_MOST_VALUES = 100
_LONGEST = {"title": 500, "description": 1000, "guidelines": 10_000, "values": 200}
"""What argilla-server 2.8.0 takes."""
_COLUMNS = re.compile(
    "notes|evidence|query|input_query|answer|answer_raw|answer_timestamp|context_set|chunk|chunk_id|chunk_rank|doc_id|"
    "text|text_pair|record_uuid|record_id|record_status|response_id|response_status|annotator_id|task|language|"
    "created_at|inserted_at|updated_at|constraint_flags|origin|revision_of|round|workspace|dataset_id|dataset_version|"
    "guideline_version|narrative_id|narrative_type|model_name|model_version|arm|repeat|run_id"
)
"""Columns of the exports that no question can have the name of."""
_FILES = re.compile(
    "agreement|annotators|citations|consensus|controls|decisions|disagreements|evidence|history|index|labels|manifest|"
    "provenance|ratings|report|results"
)
"""Names of the exports' other files."""


class Question(Frozen):
    """One question, which every annotator answers for each unit."""

    name: str
    """Its column in the exports."""
    scale: ScaleName
    """`boolean`: yes or no; `nominal`: values without order; `ordinal`: in their order; `interval`: numbers."""
    values: tuple[str, ...] = ()
    """The values that can be given; of an ordinal scale from low to high. Boolean ones are `yes` and `no`."""
    meaning: str = ""
    """When it is yes, or what it asks, for those who read the figures; annotators read the wording."""

    @model_validator(mode="before")
    @classmethod
    def _spelt_out(cls, given: Any) -> Any:
        """`min`, `max` and `step` as values, and values as texts, as they are in the exports."""
        if not isinstance(given, dict):
            return given
        given = dict(given)
        if {"min", "max", "step"} & given.keys():
            ends = [given.pop("min", None), given.pop("max", None), given.pop("step", 1)]
            if given.get("values") or not all(type(each) in (int, float) for each in ends) or ends[2] <= 0:
                raise ValueError("it needs `values`, or `min` and `max` as numbers, with a `step` above 0")
            low, high, step = (Decimal(str(each)) for each in ends)
            count = int((high - low) / step) + 1
            given["values"] = [format((low + step * at).normalize(), "f") for at in range(min(count, _MOST_VALUES + 1))]
        elif isinstance(given.get("values"), list):
            given["values"] = [str(each) if type(each) in (int, float) else each for each in given["values"]]
        return given

    @property
    def answers(self) -> tuple[str, ...]:
        """All values that can be given, as Argilla has them."""
        return ANSWERS if self.scale == "boolean" else self.values

    @property
    def is_rating(self) -> bool:
        """Whether Argilla asks for it by a row of numbers, which can be 0 to 10 only."""
        return self.scale == "interval" and all(value in map(str, range(11)) for value in self.values)


class Rule(Frozen):
    """Where every question of `if` has one of its values there, every one of `then` has one of its values there."""

    name: str
    """What counts of broken rules are called by."""
    condition: dict[str, tuple[str, ...]] = Field(alias="if", min_length=1)
    """Values by question; all must hold."""
    then: dict[str, tuple[str, ...]] = Field(min_length=1)
    """Values by question; all must hold then."""

    @field_validator("condition", "then", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        lists = {name: each if isinstance(each, list | tuple) else [each] for name, each in given.items()}
        return {name: [str(one) if type(one) in (int, float) else one for one in each] for name, each in lists.items()}

    @property
    def sentence(self) -> str:
        sides = (
            " and ".join(f"`{name}` {verb} {' or '.join(values)}" for name, values in side.items())
            for verb, side in (("is", self.condition), ("must be", self.then))
        )
        return f"where {', '.join(sides)}"

    @property
    def implication(self) -> tuple[str, str, bool] | None:
        """The label that is yes, the one that follows and whether it is yes; None of a rule of another form."""
        (label, *more), (follows, *others) = self.condition.items(), self.then.items()
        if more or others or label[1] != ("yes",) or follows[1] not in (("yes",), ("no",)):
            return None
        return label[0], follows[0], follows[1] == ("yes",)

    def is_broken(self, answers: Mapping[str, bool | str | None]) -> bool:
        """A question without an answer breaks none."""
        given = {name: _as_text(answer) for name, answer in answers.items() if answer is not None}
        held = all(given.get(name) in values for name, values in self.condition.items())
        return held and any(name in given and given[name] not in values for name, values in self.then.items())


class Decision(Frozen):
    """How a case is to be judged about which annotators asked."""

    id: str
    """What it is referred to by."""
    question: str = ""
    """The question that it is about; empty where it is about all."""
    text: dict[str, str] = Field(min_length=1)
    """The case and what was decided, by language."""


class QuestionWords(Frozen):
    """What annotators read of a question in one language."""

    title: str
    """The question; it carries the decision rule."""
    description: str = ""
    """More about it; its first sentence stands under the question."""
    values: dict[str, str] = Field(default_factory=dict)
    """What each value is called; needed for nominal and ordinal scales."""
    examples: dict[str, str] = Field(default_factory=dict)
    """An example for each value, about the `case` of the task."""


class TaskWords(Frozen):
    """What annotators read of a task in one language."""

    title: str
    """What its lists are called."""
    case: str = ""
    """What the examples are about."""
    guidelines: str
    """In Markdown."""
    fields: dict[str, str]
    """What each field is called."""
    questions: dict[str, QuestionWords]
    """The words of each question."""
    rules: dict[str, str] = Field(default_factory=dict)
    """What the page says where each rule is broken."""


class Task(Frozen):
    """What is judged by which questions."""

    name: str
    """What its files and datasets are called."""
    unit: UnitName
    """`answer`: an answer is judged; `passage`: each of its passages is."""
    fields: tuple[str, ...] = Field(min_length=1)
    """What annotators see of a unit, in this order."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Columns of the exports for these texts, with the field of each; those of all fields where none is given."""
    questions: tuple[Question, ...] = Field(alias="question", min_length=1)
    """In the order in which they are asked."""
    rules: tuple[Rule, ...] = Field(default=(), alias="rule")
    """What annotators are asked to look at again; nothing is corrected."""
    wording: dict[str, TaskWords] = Field(default_factory=dict)
    """What annotators read, by language."""
    decisions: tuple[Decision, ...] = Field(default=(), alias="decision")
    """How cases are to be judged about which annotators asked."""
    practice: dict[str, tuple[dict[str, Any], ...]] = Field(default_factory=dict)
    """Cases with known answers, by language (annotation/contracts/practice.md#cases)."""

    @model_validator(mode="before")
    @classmethod
    def _with_columns(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("unit") in UNIT_FIELDS and isinstance(given.get("fields"), list):
            known = UNIT_FIELDS[given["unit"]]
            named = {column: name for name in given["fields"] if (column := known.get(str(name)))}
            return {"columns": named, **given}
        return given

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(question.name for question in self.questions)

    @cached_property
    def by_name(self) -> Mapping[str, Question]:
        return {question.name: question for question in self.questions}

    @property
    def document(self) -> dict[str, Any]:
        """All of it but the known answers, to be kept as JSON where annotators may read it."""
        return self.model_dump(mode="json", by_alias=True, exclude={"practice"}, exclude_defaults=True)


def read_task(path: Path) -> Task:
    """A task from its file, of TOML or JSON, and its wording in files beside it; InputError names line and remedy."""
    text = _read_text(path)
    try:
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"`{path}` cannot be read as a task file: {error}. Mend it there.") from error
    worded = document.get("wording", {})
    for file in sorted(path.parent.glob(f"{path.stem}.*.toml")) if isinstance(worded, dict) else ():
        worded.setdefault(file.suffixes[-2][1:], {"file": file.name})
    try:
        head = document.pop("task", {})
        task = Task.model_validate({**head, **document, "wording": {}} if isinstance(head, dict) else {"task": head})
    except ValidationError as error:
        raise _told(path, text, [_described(each) for each in error.errors(include_url=False)]) from error
    if problems := [*_problems(task)]:
        raise _told(path, text, problems)
    words = {locale: _read_words(task, path, text, locale, given) for locale, given in dict(worded).items()}
    return task.model_copy(update={"wording": words})


def read_words(task: Task, path: Path, locale: str) -> TaskWords:
    """The wording in the files beside a task's own; InputError names the file and what is missing there."""
    return _read_words(task, path, "", locale, {"file": f"{path.stem}.{locale}.toml"})


class _Problem(NamedTuple):
    loc: Sequence[str | int]
    what: str


def _read_words(task: Task, path: Path, text: str, locale: str, given: Any) -> TaskWords:
    loc: tuple[str, ...] = ("wording", locale)
    if isinstance(given, dict) and set(given) == {"file"}:
        path, loc, beside = path.with_name(given["file"]), (), path.stem
        text = _read_text(path)
        try:
            given = tomllib.loads(text)
        except ValueError as error:
            raise InputError(f"`{path.name}` is not a TOML file: {error}. Mend it.") from error
    else:
        beside = path.stem
    if isinstance(given, dict) and "guidelines" not in given:
        file = path.with_name(str(given.get("guidelines_file", f"{beside}.{locale}.md")))
        given = {name: each for name, each in given.items() if name != "guidelines_file"}
        given["guidelines"] = _read_text(file)
    try:
        words = TaskWords.model_validate(given)
    except ValidationError as error:
        problems = [_described(each) for each in error.errors(include_url=False)]
        raise _told(path, text, [_Problem((*loc, *where), what) for where, what in problems]) from error
    if problems := [_Problem((*loc, *where), what) for where, what in _word_problems(task, words)]:
        raise _told(path, text, problems)
    return words


def _read_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        missing = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror or error}"
        raise InputError(f"`{path}` {missing}. Check the path, or write it there.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"`{path}` is not UTF-8: {error}. Save it as UTF-8.") from error
    if not text.strip():
        raise InputError(f"`{path}` is empty. Write it.")
    return text


def _told(path: Path, text: str, problems: Sequence[tuple[Sequence[str | int], str]]) -> InputError:
    lines = [f"line {_line(text, loc)}: `{'.'.join(map(str, _keys(loc)))}` {what}." for loc, what in problems]
    return BadRowsError(f"`{path.name}` cannot be used as it is; mend it there:", lines)


def _keys(loc: Sequence[str | int]) -> Iterator[str | int]:
    """As people count: the first question is 1."""
    for key in loc:
        yield key + 1 if isinstance(key, int) else key


def _line(text: str, loc: Sequence[str | int]) -> int:
    """Number of the line with the innermost key that is found in the text; 1 where none is."""
    lines, at = text.splitlines(), 0
    for place, key in enumerate(loc):
        if isinstance(key, str):
            number = loc[place + 1] if place + 1 < len(loc) else None
            header = re.compile(rf"\s*\[\[\s*{re.escape(key)}\s*]]")
            named = re.compile(rf"(?<![\w-])[\"']?{re.escape(key)}[\"']?\s*(?:[=.\]:])")
            tables = [each for each, line in enumerate(lines) if header.match(line)]
            if isinstance(number, int) and number < len(tables):
                at = tables[number]
            else:
                at = next((each for each in range(at, len(lines)) if named.search(lines[each].partition("#")[0])), at)
    return at + 1


def _described(problem: Any) -> _Problem:
    loc, kind, found = problem["loc"], problem["type"], problem.get("input")
    if kind == "missing":
        return _Problem(loc, "is missing; write it")
    if kind == "extra_forbidden":
        return _Problem(loc, "is no key here; leave it out, or mend its name")
    if kind == "value_error":
        return _Problem(loc, f"cannot be used: {problem['msg'].removeprefix('Value error, ')}")
    if kind == "literal_error":
        return _Problem(loc, f"is {found!r}; expected {problem['ctx']['expected']}")
    return _Problem(loc, f"is {str(found)[:60]!r}: {problem['msg'][:1].lower()}{problem['msg'][1:]}")


def _problems(task: Task) -> Iterator[_Problem]:
    if not _TASK_NAME.fullmatch(task.name) or task.name.endswith("_discarded"):
        yield _Problem(("name",), f"is {task.name!r}; use up to 40 of a-z, 0-9, _ and -, beginning with a letter")
    elif _FILES.fullmatch(task.name):
        yield _Problem(("name",), f"is {task.name!r}, the name of another file of the exports; choose another")
    known = UNIT_FIELDS[task.unit]
    for name in task.fields:
        if name not in known:
            there = f"a unit of {task.unit!r} has {', '.join(known)}"
            yield _Problem(("fields",), f"has {name!r}, and {there}; mend it, or leave it out")
    yield from _doubled(("fields",), task.fields)
    for column, name in task.columns.items():
        if known.get(name) != column or name not in task.fields:
            yield _Problem(("columns", column), f"is {name!r}; leave it out, or name the field whose text it is")
    parts: list[tuple[str, Sequence[str], Iterable[Iterable[_Problem]]]] = [
        ("question", task.labels, map(_question_problems, task.questions)),
        ("rule", [rule.name for rule in task.rules], (_rule_problems(task, rule) for rule in task.rules)),
        ("decision", [each.id for each in task.decisions], (_decision_problems(task, each) for each in task.decisions)),
    ]
    for kind, names, found in parts:
        yield from _doubled((kind,), names)
        for number, problems in enumerate(found):
            yield from (_Problem((kind, number, *loc), what) for loc, what in problems)


def _decision_problems(task: Task, decision: Decision) -> Iterator[_Problem]:
    if decision.question and decision.question not in task.labels:
        yield _Problem(("question",), _no_question(task, decision.question))


def _question_problems(question: Question) -> Iterator[_Problem]:
    name, scale, values = question.name, question.scale, question.values
    if not _NAME.fullmatch(name):
        yield _Problem(("name",), f"is {name!r}; use up to 40 of a-z, 0-9 and _, beginning with a letter")
    elif _COLUMNS.fullmatch(name):
        yield _Problem(("name",), f"is {name!r}, a column that the exports have already; choose another")
    if scale == "boolean":
        if values:
            yield _Problem(("values",), "is for other scales: a boolean is yes or no; leave it out, or change `scale`")
    elif not values:
        order = ", from the lowest to the highest" if scale == "ordinal" else ""
        yield _Problem(("scale",), f"is {scale!r}, and its `values` are missing; list them{order}")
    else:
        yield from (_Problem(("values",), what) for what in _value_problems(scale, values))


def _value_problems(scale: ScaleName, values: Sequence[str]) -> Iterator[str]:
    if not 2 <= len(values) <= _MOST_VALUES:
        yield f"has {len(values):,}; give 2 to {_MOST_VALUES}"
    yield from (what for _, what in _doubled((), values))
    for value in values:
        if not value.strip() or value != value.strip() or not value.isprintable() or len(value) > _LONGEST["values"]:
            yield f"has {value!r}; give 1 to 200 visible characters, no spaces around them"
    if scale == "interval":
        numbers = [_number(value) for value in values]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            yield f"has {values[numbers.index(None)]!r}, and an interval scale takes numbers only"
        elif known != sorted(known):
            yield "is not in order; list the numbers from the lowest to the highest"


def _number(value: str) -> Decimal | None:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _rule_problems(task: Task, rule: Rule) -> Iterator[_Problem]:
    if not _NAME.fullmatch(rule.name):
        yield _Problem(("name",), f"is {rule.name!r}; use up to 40 of a-z, 0-9 and _, beginning with a letter")
    for side, wanted in (("if", rule.condition), ("then", rule.then)):
        for name, values in wanted.items():
            if name not in task.by_name:
                yield _Problem((side, name), _no_question(task, name))
                continue
            answers = task.by_name[name].answers
            for value in (each for each in values if each not in answers):
                yield _Problem((side, name), f"is {value!r}, and `{name}` has {', '.join(answers)}; mend it")


def _no_question(task: Task, name: str) -> str:
    return f"is about {name!r}, which is no question; there are {', '.join(task.labels)}"


def _doubled(loc: Sequence[str | int], names: Sequence[str]) -> Iterator[_Problem]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield _Problem(loc, f"has {name!r} twice; leave one out")


def _word_problems(task: Task, words: TaskWords) -> Iterator[_Problem]:
    yield from _texts((), {"title": words.title, "guidelines": words.guidelines})
    yield from _texts(("fields",), words.fields, task.fields)
    yield from _texts(("rules",), words.rules, [rule.name for rule in task.rules])
    yield from _texts(("questions",), dict.fromkeys(words.questions, "-"), task.labels)
    for name, each in words.questions.items():
        if name in task.by_name:
            question, loc = task.by_name[name], ("questions", name)
            yield from _texts(
                loc, {"title": each.title} | ({"description": each.description} if each.description else {})
            )
            named = question.values if question.scale in ("nominal", "ordinal") else ()
            yield from _texts((*loc, "values"), each.values, named)
            yield from _texts((*loc, "examples"), each.examples, question.answers if each.examples else ())


def _texts(
    loc: Sequence[str | int], given: Mapping[str, str], wanted: Sequence[str] | None = None
) -> Iterator[_Problem]:
    """What is missing, empty, too long or for nothing that there is; `wanted` are the names that there should be."""
    for name in given if wanted is None else wanted:
        text, longest = given.get(name, ""), _LONGEST.get(name, _LONGEST["title"])
        if not text.strip():
            yield _Problem((*loc, name), "has no text; write it there")
        elif len(text) > longest and "examples" not in loc:
            yield _Problem((*loc, name), f"has {len(text):,} characters, and Argilla takes {longest:,}; shorten it")
    for name in (name for name in given if wanted is not None and name not in wanted):
        yield _Problem((*loc, name), f"is for nothing that the task has; it has {', '.join(wanted or ()) or 'none'}")


def _as_text(answer: bool | str) -> str:
    return answer if isinstance(answer, str) else ANSWERS[not answer]


SCALES: tuple[ScaleName, ...] = get_args(ScaleName)
