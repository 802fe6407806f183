"""A task as a file: what is judged, the questions with their scales, the rules between them, and their wording.

The form: annotation/contracts/tasks.md. The tasks that come with citejury are `annotation/tasks/*.toml`.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pydantic import ValidationError

from annotation.argilla import labels
from annotation.argilla.wording import Problem, described, read_file, read_words, told
from pipeline.core.errors import InputError
from pipeline.core.sentences import packaged_table

_MOST_VALUES = 100
_LONGEST_VALUE = 200  # argilla-server 2.8.0
_TAKEN = packaged_table(__file__, "taken.toml")


def read_task(path: Path) -> labels.Task:
    """A task from its file, of TOML or JSON, and its wording in files beside it; InputError names line and remedy."""
    text = read_file(path)
    try:
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"`{path}` cannot be read as a task file: {error}. Mend it there.") from error
    worded = document.get("wording", {})
    for file in sorted(path.parent.glob(f"{path.stem}.*.toml")) if isinstance(worded, dict) else ():
        worded.setdefault(file.suffixes[-2][1:], {"file": file.name})
    try:
        task = labels.task_from(document)
    except ValidationError as error:
        found = error.errors(include_url=False)
        within = {each["loc"][:1] for each in found if len(each["loc"]) > 1}
        # Where every question is wrong pydantic also says that there is none.
        found = [each for each in found if each["type"] != "too_short" or each["loc"] not in within]
        raise told(path, text, list(map(described, found))) from error
    if problems := [*_problems(task)]:
        raise told(path, text, problems)
    words = {locale: read_words(task, path, text, locale, given) for locale, given in dict(worded).items()}
    return task.model_copy(update={"wording": words})


def _problems(task: labels.Task) -> Iterator[Problem]:
    if re.fullmatch(_TAKEN["files"], task.name):
        yield Problem(("name",), f"is {task.name!r}, the name of another file of the exports; choose another")
    known = labels.UNIT_FIELDS[task.unit]
    for name in task.fields:
        if name not in known:
            there = f"a unit of {task.unit!r} has {', '.join(known)}"
            yield Problem(("fields",), f"has {name!r}, and {there}; mend it, or leave it out")
    yield from _doubled(("fields",), task.fields)
    if (judged := {"answer": "answer", "passage": "chunk"}[task.unit]) not in task.fields:
        yield Problem(("fields",), f"lacks {judged!r}, which is what a unit of {task.unit!r} is judged by; add it")
    for column, name in task.columns.items():
        if known.get(name) != column or name not in task.fields:
            yield Problem(("columns", column), f"is {name!r}; leave it out, or name the field whose text it is")
    parts: list[tuple[str, Sequence[str], Iterable[Iterable[Problem]]]] = [
        ("question", task.labels, map(_question_problems, task.questions)),
        ("rule", [rule.name for rule in task.rules], (_rule_problems(task, rule) for rule in task.rules)),
        ("decision", [each.id for each in task.decisions], (_decision_problems(task, each) for each in task.decisions)),
    ]
    for kind, names, found in parts:
        yield from _doubled((kind,), names)
        for number, problems in enumerate(found):
            yield from (Problem((kind, number, *loc), what) for loc, what in problems)


def _decision_problems(task: labels.Task, decision: labels.Decision) -> Iterator[Problem]:
    if decision.question and decision.question not in task.labels:
        yield Problem(("question",), _no_question(task, decision.question))
    for name, answers in decision.conditions.items():
        if decision.question not in answers:
            yield Problem(("conditions", name), f"has no answer to `{decision.question}`, which it decides; add it")
        yield from _answer_problems(task, ("conditions", name), {each: (value,) for each, value in answers.items()})


def _question_problems(question: labels.Question) -> Iterator[Problem]:
    name, scale, values = question.name, question.scale, question.values
    if name in _TAKEN["columns"]:
        yield Problem(("name",), f"is {name!r}, a column that the exports have already; choose another")
    if scale == "boolean":
        if values:
            yield Problem(("values",), "is for other scales: a boolean is yes or no; leave it out, or change `scale`")
    elif not values:
        order = ", from the lowest to the highest" if scale == "ordinal" else ""
        yield Problem(("scale",), f"is {scale!r}, and its `values` are missing; list them{order}")
    else:
        yield from (Problem(("values",), what) for what in _value_problems(scale, values))


def _value_problems(scale: labels.ScaleName, values: Sequence[str]) -> Iterator[str]:
    if not 2 <= len(values) <= _MOST_VALUES:
        yield f"has {len(values):,}; give 2 to {_MOST_VALUES}"
    yield from (what for _, what in _doubled((), values))
    for value in values:
        if not value.strip() or value != value.strip() or not value.isprintable() or len(value) > _LONGEST_VALUE:
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


def _rule_problems(task: labels.Task, rule: labels.Rule) -> Iterator[Problem]:
    yield from _answer_problems(task, ("if",), rule.condition)
    yield from _answer_problems(task, ("then",), rule.then)


def _answer_problems(task: labels.Task, loc: tuple[str, ...], wanted: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    for name, values in wanted.items():
        if name not in task.by_name:
            yield Problem((*loc, name), _no_question(task, name))
            continue
        answers = task.by_name[name].answers
        for value in (each for each in values if each not in answers):
            yield Problem((*loc, name), f"is {value!r}, and `{name}` has {', '.join(answers)}; mend it")


def _no_question(task: labels.Task, name: str) -> str:
    return f"is about {name!r}, which is no question; there are {', '.join(task.labels)}"


def _doubled(loc: Sequence[str | int], names: Sequence[str]) -> Iterator[Problem]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem(loc, f"has {name!r} twice; leave one out")


def load_tasks(named: Iterable[str], folder: Path) -> tuple[labels.TaskName, ...]:
    """Names of tasks as they are, and of those in task files, relative to the folder, which become known."""
    return tuple(each if each in labels.OWN_TASKS else labels.add_task(read_task(folder / each)) for each in named)
