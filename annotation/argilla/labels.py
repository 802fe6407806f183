"""The tasks that are known, their labels and the rules between them; what ours mean: annotation/contracts/labels.md."""

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pipeline.core.errors import InputError
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


def _checked_name(name: str) -> str:
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", name):
        raise ValueError(f"{name!r} has other signs; use up to 40 of a-z, 0-9 and _, beginning with a letter")
    return name


_Name = Annotated[str, AfterValidator(_checked_name)]
"""A file, a column or a key is called so, also where it is another server's dataset that says it."""


class Question(Frozen):
    """One question, which every annotator answers for each unit."""

    name: _Name
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
            numbers = all(type(each) in (int, float) and math.isfinite(each) for each in ends)
            if given.get("values") or not numbers or ends[2] <= 0:
                raise ValueError("it needs `values`, or `min` and `max` as numbers, with a `step` above 0")
            low, high, step = (Decimal(str(each)) for each in ends)
            if high <= low:
                raise ValueError(f"its `max`, {high}, is not above its `min`, {low}")
            steps = (high - low) / step
            if steps <= 100 and steps != int(steps):
                raise ValueError(f"its `max`, {high}, is no value in steps of {step} from {low}; mend one")
            given["values"] = [format((low + step * at).normalize(), "f") for at in range(min(int(steps), 100) + 1)]
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

    name: _Name
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
    """How a case is to be judged about which annotators asked; its words are in the wording."""

    id: _Name
    """What it is referred to by."""
    question: str = ""
    """The question that it decides; empty where it decides none, or all."""
    conditions: dict[str, dict[str, str]] = Field(default_factory=dict)
    """By the name of what may be so: the answers that follow from it, by question."""


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
    decisions: dict[str, str] = Field(default_factory=dict)
    """Of each decision the case, a colon, and what was decided."""


class Task(Frozen):
    """What is judged by which questions."""

    name: _Name
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


def task_from(document: Mapping[str, Any]) -> Task:
    """The task as its file has it, without its wording; pydantic's ValidationError says what is wrong."""
    rest = {name: each for name, each in document.items() if name not in ("task", "wording")}
    head = document.get("task", {})
    return Task.model_validate({**head, **rest} if isinstance(head, dict) else document)


def _as_text(answer: bool | str) -> str:
    return answer if isinstance(answer, str) else ANSWERS[not answer]


OWN_TASKS = ("retrieval", "grounding", "generation")
"""Those that come with citejury; all others are from files."""
TASK_FOLDER = Path(__file__).parents[1] / "tasks"
_KNOWN = {name: task_from(tomllib.loads((TASK_FOLDER / f"{name}.toml").read_text("utf-8"))) for name in OWN_TASKS}
TASKS: list[str] = [*OWN_TASKS]
"""Names of all tasks that are known: ours, then those that were added, which become known while a command runs."""

_T = TypeVar("_T")


def _known(name: str) -> str:
    if name not in _KNOWN:
        *most, last = map(repr, TASKS)
        expected = f"{', '.join(most)} or {last}"
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})
    return name


TaskName = Annotated[str, AfterValidator(_known)]


class ByTask(Mapping[TaskName, _T], Generic[_T]):
    """Something of each task that is known, also of those that become known later."""

    def __init__(self, of: Callable[[Task], _T]) -> None:
        self._of, self._made = of, dict[str, tuple[Task, _T]]()

    def __getitem__(self, name: TaskName) -> _T:
        made, task = self._made.get(name), _KNOWN[name]
        if made is None or made[0] is not task:
            made = self._made[name] = task, self._of(task)
        return made[1]

    def __iter__(self) -> Iterator[TaskName]:
        return iter(TASKS)

    def __len__(self) -> int:
        return len(TASKS)


LABELS: ByTask[tuple[str, ...]] = ByTask(lambda task: task.labels)
RULES: ByTask[tuple[Rule, ...]] = ByTask(lambda task: task.rules)


def task_named(name: TaskName) -> Task:
    if name not in _KNOWN:
        raise InputError(f"There is no task {name!r}; the tasks are {', '.join(TASKS)}.")
    return _KNOWN[name]


def add_task(task: Task) -> TaskName:
    """Make a task known, instead of an earlier one of its name; none of ours can be replaced."""
    if task.name in OWN_TASKS:
        raise InputError(
            f"The task {task.name!r} comes with citejury, so no task file can have its name. Choose another."
        )
    if task.name not in _KNOWN:
        TASKS.append(task.name)
    _KNOWN[task.name] = task
    return task.name


def add_document(document: Mapping[str, Any]) -> TaskName:
    """Make the task of a dataset or of an export known; one that is known already stays as it is."""
    name = str(document.get("name"))
    return name if name in _KNOWN else add_task(Task.model_validate(document))


def forget_tasks() -> None:
    """Know ours only, as at the start."""
    for name in TASKS[len(OWN_TASKS) :]:
        del _KNOWN[name]
    del TASKS[len(OWN_TASKS) :]


def is_of_passages(task: str) -> bool:
    """Whether each passage of an answer is a unit; also of a task that is not known, which has none."""
    return task in _KNOWN and _KNOWN[task].unit == "passage"


Mark = Literal["supports", "contradicts"]
MARKS: tuple[Mark, ...] = get_args(Mark)
Evidence = Literal["off", "optional", "required"]
"""Whether a dataset asks for marks; `required` asks for one where a label of `MARKED_LABELS` is yes."""
MARKED_LABELS: Mapping[str, Mark] = {"support_present": "supports", "contradicted_claim_present": "contradicts"}
"""The labels whose yes rests on words of the context, each with the mark that those words get."""

DISPUTED = "citejury_disputed"
"""Metadata property of an adjudicator's record, visible to them: the labels on which annotators differ. They are asked
for these only; where it is missing, as in adjudications of earlier versions, for all.
"""


def missing_marks(values: Mapping[str, Any]) -> tuple[tuple[str, Mark], ...]:
    """Each label that is yes without the mark that it rests on, and that mark; `values` are by question."""
    marked = {each["label"] for each in values.get(EVIDENCE) or ()}
    return tuple(
        (label, mark) for label, mark in MARKED_LABELS.items() if values.get(label) == "yes" and mark not in marked
    )


def broken_rules(task: TaskName, labels: Mapping[str, bool | str | None]) -> tuple[str, ...]:
    """Names of broken rules in the order of the task's; a label that is missing breaks none."""
    return tuple(rule.name for rule in RULES[task] if rule.is_broken(labels))
