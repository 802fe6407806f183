"""The tasks that are known, their labels and the rules between them; what ours mean: annotation/contracts/labels.md."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from annotation.argilla.task_file import EVIDENCE as EVIDENCE
from annotation.argilla.task_file import Rule, Task, read_task
from pipeline.core.errors import InputError

OWN_TASKS = ("retrieval", "grounding", "generation")
"""Those that come with citejury; all others are from files."""
TASK_FOLDER = Path(__file__).parents[1] / "tasks"
_KNOWN = {name: read_task(TASK_FOLDER / f"{name}.toml") for name in OWN_TASKS}
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


def load_tasks(named: Iterable[str], folder: Path) -> tuple[TaskName, ...]:
    """Names of tasks as they are, and of those in task files, relative to the folder, which become known."""
    return tuple(each if each in OWN_TASKS else add_task(read_task(folder / each)) for each in named)


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
