"""What annotators read, in their language: `locales/<language>.toml`, and of each task its own wording."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from annotation.argilla.labels import MARKS, OWN_TASKS, TASK_FOLDER, ByTask, Mark, TaskName
from annotation.argilla.task_file import ANSWERS, NOTES, Question, Task, TaskWords, read_words
from pipeline.core.errors import InputError
from pipeline.records.causes import SourceState

LOCALES = Path(__file__).parents[1] / "locales"

FIELDS: ByTask[tuple[str, ...]] = ByTask(lambda task: task.fields)
ShownState = Literal[SourceState, "never_archived"]  # the last is `gone`, and no archive has ever seen it

_T = TypeVar("_T")


class QuestionWording(NamedTuple):
    """The title carries the decision rule; the description hides behind an icon."""

    title: str
    description: str


class Examples(NamedTuple):
    """For the printable page of one task: a case, and examples of answers in it; empty where there are none."""

    case: str
    labels: Mapping[str, Mapping[str, str]]


class MarksWording(NamedTuple):
    """A title for each way of asking, a description, and the marks' names."""

    titles: Mapping[str, str]
    description: str
    names: Mapping[Mark, str]


class Wording(NamedTuple):
    locale: str
    answers: Mapping[str, str]
    notes: QuestionWording
    marks: MarksWording
    fields: Mapping[TaskName, Mapping[str, str]]
    titles: Mapping[TaskName, str]
    questions: Mapping[TaskName, Mapping[str, QuestionWording]]
    values: Mapping[TaskName, Mapping[str, Mapping[str, str]]]  # what each value of a question is called
    rules: Mapping[TaskName, Mapping[str, str]]
    states: Mapping[ShownState, str]
    passage: str
    unknown_source: str
    no_sources: str
    without_place: str
    empty_text: str
    partly_read: str  # With `{percent}` for how many per cent of the page's words
    adjudication: Mapping[str, str]
    suggested: Mapping[str, str]
    rules_heading: str
    examples_heading: str
    examples: Mapping[TaskName, Examples]
    guidelines: Mapping[TaskName, str]


def locales(folder: Path = LOCALES) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


@cache
def read_wording(locale: str, folder: Path = LOCALES) -> Wording:
    """The wording of one language, complete; InputError names the key and the file that is missing or empty."""
    path = folder / f"{locale}.toml"
    if locale not in locales(folder):
        known = ", ".join(locales(folder))
        raise InputError(f"There is no wording for the language {locale!r}. Choose `--locale` from: {known}.")
    try:
        texts = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"`{path.name}` is not a TOML file in UTF-8: {error}. Mend it.") from error
    beside = folder.parent / TASK_FOLDER.name
    folder_of_tasks = beside if beside.is_dir() else TASK_FOLDER

    def of_task(of: Callable[[Task, TaskWords], _T]) -> ByTask[_T]:
        return ByTask(lambda task: of(task, _words_of(task, locale, folder_of_tasks)))

    guidelines, answers = of_task(lambda _, words: words.guidelines), read_texts(texts, ("answers",), ANSWERS, path)
    for task in OWN_TASKS:  # to name at once what is missing
        guidelines[task]
    return Wording(
        locale=locale,
        answers=answers,
        notes=_read_question(texts, (NOTES,), path),
        marks=MarksWording(
            read_texts(texts, ("evidence",), ("optional", "required"), path),
            _read_text(texts, ("evidence", "description"), path),
            {mark: _read_text(texts, ("evidence", mark), path) for mark in MARKS},
        ),
        fields=of_task(lambda task, words: words.fields),
        titles=of_task(lambda task, words: words.title),
        questions=of_task(
            lambda task, words: {
                label: QuestionWording(words.questions[label].title, words.questions[label].description)
                for label in task.labels
            }
        ),
        values=of_task(
            lambda task, words: {
                each.name: answers if each.scale == "boolean" else _values(each, words) for each in task.questions
            }
        ),
        rules=of_task(lambda task, words: words.rules),
        states={state: _read_text(texts, ("states", state), path) for state in get_args(ShownState)},
        passage=_read_text(texts, ("display", "passage"), path),
        unknown_source=_read_text(texts, ("display", "unknown_source"), path),
        no_sources=_read_text(texts, ("display", "no_sources"), path),
        without_place=_read_text(texts, ("display", "without_place"), path),
        empty_text=_read_text(texts, ("display", "empty_text"), path),
        partly_read=_read_text(texts, ("display", "partly_read"), path),
        adjudication=read_texts(texts, ("adjudication",), ("votes", "notes", "disputed", "quotes", "look"), path),
        suggested=read_texts(texts, ("suggested",), ("question", "guidelines"), path),
        rules_heading=_read_text(texts, ("replies", "heading"), path),
        examples_heading=_read_text(texts, ("printed", "examples"), path),
        examples=of_task(
            lambda task, words: Examples(words.case, {label: words.questions[label].examples for label in task.labels})
        ),
        guidelines=guidelines,
    )


def _values(question: Question, words: TaskWords) -> dict[str, str]:
    return {value: words.questions[question.name].values.get(value, value) for value in question.values}


def _words_of(task: Task, locale: str, folder: Path) -> TaskWords:
    if task.name in OWN_TASKS:
        return read_words(task, folder / f"{task.name}.toml", locale)
    if locale not in task.wording:
        there = ", ".join(task.wording) or "none"
        raise InputError(
            f"The task {task.name!r} has no wording in {locale!r}; there is {there}. Write it in its file."
        )
    return task.wording[locale]


def _read_text(texts: Mapping[str, Any], keys: tuple[str, ...], path: Path) -> str:
    found: Any = texts
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(found, str) or not found.strip():
        raise InputError(f"`{path.name}` has no text for the key `{'.'.join(keys)}`. Add it there.")
    return found


def read_texts(texts: Mapping[str, Any], keys: tuple[str, ...], names: Iterable[str], path: Path) -> dict[str, str]:
    return {name: _read_text(texts, (*keys, name), path) for name in names}


def _read_question(texts: Mapping[str, Any], keys: tuple[str, ...], path: Path) -> QuestionWording:
    return QuestionWording(_read_text(texts, (*keys, "title"), path), _read_text(texts, (*keys, "description"), path))
