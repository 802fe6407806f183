"""The file of a study: what is asked every month, and the options of each command that does it.

Source: exports/contracts/study.md#the-file.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from pipeline.errors import InputError
from pipeline.schema import Frozen
from pipeline.terminal import printable

STUDY_FILE = "study.toml"

Part = Literal["ask", "sources", "plan", "setup", "push", "csv", "results"]
PARTS: tuple[Part, ...] = get_args(Part)
"""The tables of the file: a command each, in the order in which a month needs them."""
COMMANDS: Mapping[Part, tuple[str, str]] = {
    "ask": ("pipeline", "ask"),
    "sources": ("pipeline", "sources"),
    "plan": ("annotation", "plan"),
    "setup": ("annotation", "setup"),
    "push": ("annotation", "push"),
    "csv": ("exports", "csv"),
    "results": ("exports", "results"),
}
"""The words of each command."""
_PLACES = frozenset(("workspace", "locale", "api-url"))
OWN: Mapping[Part, frozenset[str]] = {
    "ask": frozenset(("out", "dry-run", "batch-status", "batch-cancel")),
    "sources": frozenset(("out",)),
    "plan": frozenset(("out", "round", "workspace")),
    "setup": frozenset(("round", "new-version", "dry-run")) | _PLACES,
    "push": frozenset(("round", "sample", "dry-run", "suggestions")) | _PLACES,
    "csv": frozenset(("round", "update", "as-of", "until")) | _PLACES,
    "results": frozenset(("out", "runs", "weights", "schema")),
}
"""Options that cannot stand in the file: the study sets them itself, citejury.toml says it for all commands, or they
do something else than the study's work."""


class GivenOption(Frozen):
    """An option that the file gives to a command, once."""

    name: str
    """Its name, without the dashes."""
    values: tuple[str, ...]
    """What follows it; empty for a switch."""

    @property
    def words(self) -> tuple[str, ...]:
        """What somebody would type."""
        return (f"--{self.name}", *self.values)


class StudyFile(Frozen):
    """What is repeated every month."""

    narratives: str
    """The CSV file of what is asked, as a path from the study's folder."""
    months: str = "months"
    """The folder that gets one folder a month, as a path from the study's folder."""
    options: dict[Part, tuple[GivenOption, ...]] = Field(default_factory=dict)
    """The options that the file gives to each command; a command without any is absent."""

    def words(self, part: Part) -> tuple[str, ...]:
        """The words that the file adds to a command."""
        return tuple(word for option in self.options.get(part, ()) for word in option.words)

    def gives(self, part: Part, name: str) -> bool:
        """Whether the file gives a command the option of this name."""
        return any(option.name == name for option in self.options.get(part, ()))


def read_study_file(path: Path) -> StudyFile:
    """The study in the file; whether each command has the options is for the commands to say.

    Raises:
        InputError: it is missing, is no TOML in UTF-8, names no narratives, or has a key that no study has.
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"The study `{path}` cannot be read: {error.strerror or error}. `citejury init` writes one to begin with."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"`{path}` is not a TOML file in UTF-8: {error}. Mend it.") from error
    unknown = sorted(told.keys() - {"narratives", "months", *PARTS})
    if unknown:
        tables = ", ".join(f"`[{part}]`" for part in PARTS)
        raise InputError(
            f"`{path}` has `{printable(unknown[0])}`, which is no key of a study. A study has `narratives`, "
            f"`months` and the tables {tables}."
        )
    return StudyFile(
        narratives=_path(told.get("narratives"), "narratives", path),
        months=_path(told.get("months", "months"), "months", path),
        options={part: tuple(_options(part, told[part], path)) for part in PARTS if part in told},
    )


def _path(value: object, name: str, file: Path) -> str:
    """The value as a path.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        found = "nothing" if value is None else repr(value)
        raise InputError(f'`{name}` in `{file}` names a path, found {found}. Write `{name} = "…"` at its top.')
    if str(Path(value)).startswith("-"):
        raise InputError(f"`{name}` in `{file}` is {value!r}, which a command would read as an option. Rename it.")
    return value


def _options(part: Part, table: object, file: Path) -> Iterator[GivenOption]:
    """The options of a table; a list is an option that is given several times, false is one that is not.

    Raises:
        InputError: it is no table, sets what the study sets, or a value is none for a command line.
    """
    if not isinstance(table, dict):
        raise InputError(f"`{part}` in `{file}` is no table. Write `[{part}]`, and its options below.")
    for name, value in table.items():
        if name in OWN[part]:
            raise InputError(
                f"`[{part}]` in `{file}` has `{name}`, which is not for the file to say: a study sets it itself, or "
                "reads it from citejury.toml. Take it out."
            )
        for each in value if isinstance(value, list) else [value]:
            if each is not False:
                yield GivenOption(name=name, values=_values(f"`[{part}]` in `{file}`", name, each))


def _values(where: str, name: str, value: Any) -> tuple[str, ...]:
    """What follows the option on a command line; a list is one that takes several words, such as `add`.

    Raises:
        InputError: the value is none for a command line, or would be another option there.
    """
    name = printable(name)
    if value is True:
        return ()
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(each, bool | dict | list) for each in parts):
        raise InputError(f"{where}: `{name}` is {value!r}. Write a text, a number, true or false, or a list of these.")
    for each in parts:
        if isinstance(each, str) and each.startswith("-"):
            raise InputError(
                f"{where}: `{name}` is {each!r}, which is an option and no value. Begin it with `./` if it is a path."
            )
    return tuple(map(str, parts))
