"""Findings of `citejury.toml`, and its table `[report]` (exports/contracts/results.md#findings, #the-report)."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from annotation.argilla.labels import TASKS
from exports.statistics.ratings import YES_AND_NO
from exports.statistics.study import SERIOUS_PROBLEM, FindingDefinition
from pipeline.core.errors import SettingsError
from pipeline.core.files import SETTINGS_FILE
from pipeline.core.schema import Frozen

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_NOT = "not "
_TITLE_LENGTH = 60
_LONGEST = 200

ReportLanguage = Literal["en", "de", "ja"]


class ReportSettings(Frozen):
    """What the project says of its report: the table `[report]` of citejury.toml."""

    title: str = Field(default="", max_length=_LONGEST)
    """What it is called."""
    asked_by: str = Field(default="", max_length=_LONGEST)
    """Who asked, such as the name of a newsroom."""
    headline: str = ""
    """The finding or label that opens it; without one it opens with no composite finding."""
    language: ReportLanguage = "en"
    """In which it is written."""


def read_report_settings(path: Path | None = None) -> tuple[ReportSettings, tuple[str, ...]]:
    """The table `[report]` of the file (`citejury.toml`), and the names of the findings that the file defines."""
    file, table = _table("report", "Write `title`, `asked_by`, `headline` and `language` below `[report]`.", path)
    try:
        settings = ReportSettings.model_validate(table)
    except ValidationError as error:
        (name, *_), told = error.errors()[0]["loc"], error.errors()[0]["msg"]
        known = ", ".join(f"`{name}`" for name in ReportSettings.model_fields)
        raise SettingsError(
            f"`{name}` in `[report]` of `{file}` cannot be used: {told[:1].lower()}{told[1:]}. It has {known}."
        ) from error
    return settings, tuple(_table("findings", "", path)[1])


def read_findings(path: Path | None = None) -> dict[str, FindingDefinition]:
    """Findings of the file (`citejury.toml`) by name; `serious_problem` alone where it defines none, or is missing."""
    file, table = _table("findings", "Write a table `[findings.NAME]` for each finding.", path)
    found = {name: _definition(name, values, file) for name, values in table.items()}
    return found or {"serious_problem": SERIOUS_PROBLEM}


def dropped_tables(path: Path | None = None) -> list[str]:
    """A remark on each table of the file (`citejury.toml`) that earlier versions read."""
    file, table = _table("verdicts", "It is not read any more: delete it.", path)
    advice = "Let people say what an answer makes of its narrative: a task file with one nominal question does."
    return [f"`[verdicts]` in `{file}` is not read any more. {advice}"] if table else []


def _table(name: str, advice: str, path: Path | None) -> tuple[Path, dict[str, object]]:
    file = path or Path(SETTINGS_FILE)
    if not file.is_file():
        return file, {}
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get(name, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"`{file}` is not a TOML file in UTF-8: {error}. Mend or remove it.") from error
    if not isinstance(table, dict):
        raise SettingsError(f"`{name}` in `{file}` is no table. {advice}")
    return file, table


def _definition(name: str, values: object, file: Path) -> FindingDefinition:
    where = f"`[findings.{name}]` in `{file}`"
    known = [label for task in TASKS for label in YES_AND_NO[task]]
    labels = f"The labels are {', '.join(known)}; `not ` before one counts its no."
    if not _NAME.fullmatch(name) or name in known:
        raise SettingsError(
            f"{where}: {name!r} is no name for a finding. Name it with small letters, digits and _, at most 40, and "
            f"not like a label. {labels}"
        )
    if not isinstance(values, dict):
        raise SettingsError(f'{where} is no table. Write `title = "…"` and `any = ["…"]` below it.')
    other = sorted(values.keys() - FindingDefinition.model_fields.keys())
    if other:
        raise SettingsError(f"{where} has `{other[0]}`; a finding has `title` and `any` only. {labels}")
    title, terms = values.get("title"), values.get("any")
    if not isinstance(title, str) or not title.strip() or len(title) > _TITLE_LENGTH or not title.isprintable():
        raise SettingsError(f"{where}: `title` is what people read; give it 1 to {_TITLE_LENGTH} printable characters.")
    if not isinstance(terms, list) or not terms or not all(isinstance(term, str) for term in terms):
        raise SettingsError(f"{where}: `any` needs a list with at least one label. {labels}")
    named = [term.removeprefix(_NOT) for term in terms]
    for term, label in zip(terms, named, strict=True):
        if label not in known:
            raise SettingsError(f"{where}: `any` has {term!r}, which is no label. {labels}")
    doubled = [label for label, count in Counter(named).items() if count > 1]
    if doubled:
        raise SettingsError(f"{where}: `any` has {doubled[0]!r} more than once. Keep one of them.")
    return FindingDefinition(title=title.strip(), any=tuple(terms))
