"""What annotators read, in their language: `locales/<language>.toml`, and of each task its own wording."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import ValidationError

from annotation.argilla import labels as defined
from pipeline.core.errors import BadRowsError, InputError
from pipeline.records.causes import SourceState

LOCALES = Path(__file__).parents[1] / "locales"

FIELDS: defined.ByTask[tuple[str, ...]] = defined.ByTask(lambda task: task.fields)
ShownState = Literal[SourceState, "never_archived"]  # the last is `gone`, and no archive has ever seen it

_T = TypeVar("_T")
_DISPLAY = ("passage", "unknown_source", "no_sources", "without_place", "empty_text", "asked", "fetched", "partly_read")
_LONGEST = {"title": 500, "description": 1000, "guidelines": 10_000, "values": 200}
"""What argilla-server 2.8.0 takes."""


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
    names: Mapping[defined.Mark, str]


class Wording(NamedTuple):
    locale: str
    answers: Mapping[str, str]
    notes: QuestionWording
    marks: MarksWording
    fields: Mapping[defined.TaskName, Mapping[str, str]]
    titles: Mapping[defined.TaskName, str]
    questions: Mapping[defined.TaskName, Mapping[str, QuestionWording]]
    values: Mapping[defined.TaskName, Mapping[str, Mapping[str, str]]]  # what each value of a question is called
    rules: Mapping[defined.TaskName, Mapping[str, str]]
    decisions: Mapping[defined.TaskName, Mapping[str, str]]
    states: Mapping[ShownState, str]
    passage: str
    unknown_source: str
    no_sources: str
    without_place: str
    empty_text: str
    asked: str  # With the day of the answer, as `str.format` puts a date in
    fetched: str  # With the day of fetching a page, likewise
    partly_read: str  # With `{percent}` for how many per cent of the page's words
    adjudication: Mapping[str, str]
    rules_heading: str
    examples_heading: str
    examples: Mapping[defined.TaskName, Examples]
    guidelines: Mapping[defined.TaskName, str]

    def own_rule(self, task: defined.TaskName, label: str) -> str:
        """The description of a question without the decisions, for where they stand in the guidelines beside it."""
        lines = self.questions[task][label].description.split("\n")
        return "\n".join(line for line in lines if line not in self.decisions[task].values())


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
    beside = folder.parent / defined.TASK_FOLDER.name
    folder_of_tasks = beside if beside.is_dir() else defined.TASK_FOLDER

    def of_task(of: Callable[[defined.Task, defined.TaskWords], _T]) -> defined.ByTask[_T]:
        return defined.ByTask(lambda task: of(task, _words_of(task, locale, folder_of_tasks)))

    answers = read_texts(texts, ("answers",), defined.ANSWERS, path)
    decided = _read_text(texts, ("replies", "decisions"), path)
    guidelines = of_task(lambda _, words: _with_decisions(words, decided))
    for task in defined.OWN_TASKS:  # to name at once what is missing
        guidelines[task]
    return Wording(
        locale=locale,
        answers=answers,
        notes=_read_question(texts, (defined.NOTES,), path),
        marks=MarksWording(
            read_texts(texts, ("evidence",), ("optional", "required"), path),
            _read_text(texts, ("evidence", "description"), path),
            {mark: _read_text(texts, ("evidence", mark), path) for mark in defined.MARKS},
        ),
        fields=of_task(lambda task, words: words.fields),
        titles=of_task(lambda task, words: words.title),
        questions=of_task(
            lambda task, words: {
                label: QuestionWording(words.questions[label].title, _whole_rule(task, words, label))
                for label in task.labels
            }
        ),
        values=of_task(
            lambda task, words: {
                each.name: answers if each.scale == "boolean" else _values(each, words) for each in task.questions
            }
        ),
        rules=of_task(lambda task, words: words.rules),
        decisions=of_task(lambda task, words: words.decisions),
        states={state: _read_text(texts, ("states", state), path) for state in get_args(ShownState)},
        **read_texts(texts, ("display",), _DISPLAY, path),
        adjudication=read_texts(texts, ("adjudication",), ("votes", "notes", "disputed", "quotes", "look"), path),
        rules_heading=_read_text(texts, ("replies", "heading"), path),
        examples_heading=_read_text(texts, ("printed", "examples"), path),
        examples=of_task(
            lambda task, words: Examples(words.case, {label: words.questions[label].examples for label in task.labels})
        ),
        guidelines=guidelines,
    )


def _with_decisions(words: defined.TaskWords, heading: str) -> str:
    """The guidelines with the decisions where a line says `{decisions}`, else at their end."""
    lines = [re.sub(r"^([^:：]+[:：]) *", r"- **\1** ", text) for text in words.decisions.values()]
    section = "\n".join((f"## {heading}", *lines)) if lines else ""
    before, mark, after = words.guidelines.partition("{decisions}")
    return f"{before}{section}{after}" if mark or not lines else f"{before.rstrip()}\n\n{section}\n"


def _whole_rule(task: defined.Task, words: defined.TaskWords, label: str) -> str:
    """The description of a question, then a line for each decision on it."""
    decided = [words.decisions.get(each.id, "") for each in task.decisions if each.question == label]
    return "\n".join(filter(None, (words.questions[label].description, *decided)))


def _values(question: defined.Question, words: defined.TaskWords) -> dict[str, str]:
    return {value: words.questions[question.name].values.get(value, value) for value in question.values}


def _words_of(task: defined.Task, locale: str, folder: Path) -> defined.TaskWords:
    if task.name in defined.OWN_TASKS:
        return read_words(task, folder / f"{task.name}.toml", "", locale, {"file": f"{task.name}.{locale}.toml"})
    if locale not in task.wording:
        here = ", ".join(task.wording) or "none"
        raise InputError(f"The task {task.name!r} has no wording in {locale!r}; there is {here}. Write it in its file.")
    return task.wording[locale]


class Problem(NamedTuple):
    """What is wrong at a place of a task's file."""

    loc: Sequence[str | int]
    what: str


def read_words(task: defined.Task, path: Path, text: str, locale: str, given: Any) -> defined.TaskWords:
    """The wording in a task's file, of which `given` is a table, or in the file beside it that the table names.

    InputError names the file, the line, what is wrong there, and what to do.
    """
    loc: tuple[str, ...] = ("wording", locale)
    if isinstance(given, dict) and set(given) == {"file"}:
        path, loc, beside = path.with_name(given["file"]), (), path.stem
        text = read_file(path)
        try:
            given = tomllib.loads(text)
        except ValueError as error:
            raise InputError(f"`{path.name}` is not a TOML file: {error}. Mend it.") from error
    else:
        beside = path.stem
    if isinstance(given, dict) and "guidelines" not in given:
        given = given | {"guidelines": read_file(path.with_name(f"{beside}.{locale}.md"))}
    try:
        words = defined.TaskWords.model_validate(given)
    except ValidationError as error:
        problems = [described(each) for each in error.errors(include_url=False)]
        raise told(path, text, [Problem((*loc, *where), what) for where, what in problems]) from error
    if problems := [Problem((*loc, *where), what) for where, what in _word_problems(task, words)]:
        raise told(path, text, problems)
    return words


def read_file(path: Path) -> str:
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


def told(path: Path, text: str, problems: Sequence[tuple[Sequence[str | int], str]]) -> InputError:
    lines = []
    for loc, what in problems:
        is_there = not what.startswith(("is missing", "has no text"))
        line = _line(text, loc if is_there else loc[:-1])
        lines.append(f"line {line}: `{'.'.join(map(str, _keys(loc)))}` {what}.")
    return BadRowsError(f"`{path.name}` cannot be used as it is; mend it there:", lines)


def _keys(loc: Sequence[str | int]) -> Iterator[str | int]:
    """As people count: the first question is 1."""
    for key in loc:
        yield key + 1 if isinstance(key, int) else key


def _line(text: str, loc: Sequence[str | int]) -> int:
    """Number of the line with the innermost key that is found in the text; 1 where none is."""
    lines, at = text.splitlines(), 0
    end = len(lines)
    for place, key in enumerate(loc):
        if isinstance(key, str):
            number = loc[place + 1] if place + 1 < len(loc) else None
            header = re.compile(rf"\s*\[\[\s*{re.escape(key)}\s*]]")
            named = re.compile(rf"(?<![\w-])[\"']?{re.escape(key)}[\"']?\s*(?:[=.\]:])")
            tables = [each for each, line in enumerate(lines) if header.match(line)]
            if isinstance(number, int) and number < len(tables):
                at = tables[number]
                end = next((each for each in range(at + 1, end) if lines[each].lstrip().startswith("[")), end)
            else:
                at = next((each for each in range(at, end) if named.search(lines[each].partition("#")[0])), at)
    return at + 1


def described(problem: Any) -> Problem:
    loc, kind, found = problem["loc"], problem["type"], problem.get("input")
    if kind == "missing":
        return Problem(loc, "is missing; write it")
    if kind == "extra_forbidden":
        return Problem(loc, "is no key here; leave it out, or mend its name")
    if kind == "value_error":
        return Problem(loc, f"cannot be used: {problem['msg'].removeprefix('Value error, ')}")
    if kind == "literal_error":
        return Problem(loc, f"is {found!r}; expected {problem['ctx']['expected']}")
    return Problem(loc, f"is {str(found)[:60]!r}: {problem['msg'][:1].lower()}{problem['msg'][1:]}")


def _word_problems(task: defined.Task, words: defined.TaskWords) -> Iterator[Problem]:
    yield from _texts((), {"title": words.title, "guidelines": _with_decisions(words, "")})
    yield from _texts(("fields",), words.fields, task.fields)
    yield from _texts(("rules",), words.rules, [rule.name for rule in task.rules])
    yield from _texts(("decisions",), words.decisions, [each.id for each in task.decisions])
    yield from _texts(("questions",), dict.fromkeys(words.questions, "-"), task.labels)
    for name, each in words.questions.items():
        if name in task.by_name:
            question, loc = task.by_name[name], ("questions", name)
            rule = _whole_rule(task, words, name)
            yield from _texts(loc, {"title": each.title} | ({"description": rule} if rule else {}))
            named = question.values if question.scale in ("nominal", "ordinal") else ()
            yield from _texts((*loc, "values"), each.values, named)
            yield from _texts((*loc, "examples"), each.examples, question.answers if each.examples else ())


def _texts(loc: Sequence[str | int], given: Mapping[str, str], there: Sequence[str] | None = None) -> Iterator[Problem]:
    """What is missing, empty, too long or for nothing that there is; `there` are the names that there should be."""
    for name in given if there is None else there:
        text, longest = given.get(name, ""), _LONGEST.get(name, _LONGEST["title"])
        if not text.strip():
            yield Problem((*loc, name), "has no text; write it there")
        elif len(text) > longest and "examples" not in loc:
            yield Problem((*loc, name), f"has {len(text):,} characters, and Argilla takes {longest:,}; shorten it")
    for name in (name for name in given if there is not None and name not in there):
        yield Problem((*loc, name), f"is for nothing that the task has; it has {', '.join(there or ()) or 'none'}")


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
