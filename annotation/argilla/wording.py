"""What annotators read, in their language: read from `locales/<language>.toml` and `locales/guidelines/`."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from annotation.argilla.labels import LABELS, MARKS, TASKS, Mark, TaskName
from pipeline.core.errors import InputError
from pipeline.records.causes import SourceState

LOCALES = Path(__file__).parents[1] / "locales"

FIELDS: dict[TaskName, tuple[str, ...]] = {
    "retrieval": ("query", "source", "chunk"),
    "grounding": ("sources", "query", "answer", "context"),
    "generation": ("query", "answer"),
}
ANSWERS = ("yes", "no")
ShownState = Literal[SourceState, "never_archived"]  # the last is `gone`, and no archive has ever seen it
NOTES = "notes"


class QuestionWording(NamedTuple):
    """The title carries the decision rule; the description hides behind an icon."""

    title: str
    description: str


class Examples(NamedTuple):
    """For the printable page of one task: a case, and what would be answered with yes and with no in it."""

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
    questions: Mapping[TaskName, Mapping[str, QuestionWording]]
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
    return Wording(
        locale=locale,
        answers=read_texts(texts, ("answers",), ANSWERS, path),
        notes=_read_question(texts, (NOTES,), path),
        marks=MarksWording(
            read_texts(texts, ("evidence",), ("optional", "required"), path),
            _read_text(texts, ("evidence", "description"), path),
            {mark: _read_text(texts, ("evidence", mark), path) for mark in MARKS},
        ),
        fields={task: read_texts(texts, ("fields", task), FIELDS[task], path) for task in TASKS},
        questions={
            task: {label: _read_question(texts, ("questions", task, label), path) for label in LABELS[task]}
            for task in TASKS
        },
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
        examples={
            task: Examples(
                _read_text(texts, ("examples", task, "case"), path),
                {label: read_texts(texts, ("examples", task, label), ANSWERS, path) for label in LABELS[task]},
            )
            for task in TASKS
        },
        guidelines={task: _read_guidelines(folder / "guidelines" / f"{task}.{locale}.md") for task in TASKS},
    )


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


def _read_guidelines(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"The guidelines `{path.name}` are missing. Add them to `{path.parent.name}/`.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The guidelines `{path.name}` are not UTF-8: {error}. Save them as UTF-8.") from error
    if not text.strip():
        raise InputError(f"The guidelines `{path.name}` are empty. Write them.")
    return text
