"""A study's file, the folders of its waves, and the commands of a wave as somebody would type them.

A study is asked once, in one wave, or every month, each month a wave. Source: exports/contracts/study.md.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from annotation.campaign.file import Campaign, read_campaign
from annotation.campaign.plan import SAMPLE_FILE
from exports.csv.schema import Work
from exports.report.sections import RESULTS_FILE
from exports.report.words import interim_cell
from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen
from pipeline.core.terminal import printable

STUDY_FILE = "study.toml"

Part = Literal["ask", "sources", "plan", "setup", "push", "share", "csv", "adjudicate", "decisions", "results"]
PARTS: tuple[Part, ...] = get_args(Part)
COMMANDS: Mapping[Part, tuple[str, ...]] = {
    "ask": ("pipeline", "ask"),
    "sources": ("pipeline", "sources"),
    "plan": ("study", "plan"),
    "setup": ("annotation", "setup"),
    "push": ("annotation", "push"),
    "share": ("annotation", "share"),
    "csv": ("exports", "csv"),
    "adjudicate": ("exports", "adjudicate", "push"),
    "decisions": ("exports", "adjudicate", "read"),
    "results": ("exports", "results"),
}
_PLACES = frozenset(("workspace", "locale", "api-url"))
OWN: Mapping[Part, frozenset[str]] = {
    "ask": frozenset(("out", "dry-run", "batch-cancel")),
    "sources": frozenset(("out",)),
    "plan": frozenset(("out", "round", "workspace")),
    "setup": frozenset(("round", "new-version", "dry-run")) | _PLACES,
    "push": frozenset(("round", "sample", "dry-run")) | _PLACES,
    "share": frozenset(("out", "passwords", "workspace")),
    "csv": frozenset(("round", "update", "until")) | _PLACES,
    "adjudicate": frozenset(("one-more", "disputes", "task", "label")) | _PLACES,
    "decisions": frozenset(("out", "export")) | _PLACES,
    "results": frozenset(("out", "runs", "sample", "decisions", "schema")),
}
"""Options that cannot stand in the file: the study sets them itself, citejury.toml says it for all commands, or they
do something else than the study's work."""


class GivenOption(Frozen):
    """An option that the file gives to a command, once."""

    name: str
    values: tuple[str, ...]
    """What follows it; empty for a switch."""

    @property
    def words(self) -> tuple[str, ...]:
        return (f"--{self.name}", *self.values)


class StudyFile(Frozen):
    """What is asked, and with which options of each command."""

    narratives: str
    """The file of what is asked, as a path from the study's folder."""
    folder: str
    """The folder of the study, as a path from that of its file."""
    monthly: bool
    """Whether it is asked every month: the folder then gets one folder a month."""
    options: dict[Part, tuple[GivenOption, ...]] = Field(default_factory=dict)

    def words(self, part: Part) -> tuple[str, ...]:
        return tuple(word for option in self.options.get(part, ()) for word in option.words)

    def gives(self, part: Part, name: str) -> bool:
        return any(option.name == name for option in self.options.get(part, ()))


def read_study_file(path: Path) -> StudyFile:
    """Whether each command has the options is for the commands to say."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"The study `{path}` cannot be read: {error.strerror or error}. `citejury init` writes one to begin with."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"`{path}` is not a TOML file in UTF-8: {error}. Mend it.") from error
    unknown = sorted(told.keys() - {"narratives", "folder", "months", *PARTS})
    if unknown:
        tables = ", ".join(f"`[{part}]`" for part in PARTS)
        raise InputError(
            f"`{path}` has `{printable(unknown[0])}`, which is no key of a study. A study has `narratives`, "
            f"`folder` or `months`, and the tables {tables}."
        )
    if {"folder", "months"} <= told.keys():
        raise InputError(
            f"`{path}` has `folder`, for a study that is asked once, and `months`, for one that is asked every month. "
            "Take one of them out."
        )
    # With neither it was monthly before there was any other study, and such a one goes on.
    monthly = "months" in told or ("folder" not in told and bool(_months_in(path.parent / "months")))
    key, usual = ("months", "months") if monthly else ("folder", "study")
    return StudyFile(
        narratives=_path(told.get("narratives"), "narratives", path),
        folder=_path(told.get(key, usual), key, path),
        monthly=monthly,
        options={part: tuple(_options(part, told[part], path)) for part in PARTS if part in told},
    )


def _path(value: object, name: str, file: Path) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        found = "nothing" if value is None else repr(value)
        raise InputError(f'`{name}` in `{file}` names a path, found {found}. Write `{name} = "…"` at its top.')
    if str(Path(value)).startswith("-"):
        raise InputError(f"`{name}` in `{file}` is {value!r}, which a command would read as an option. Rename it.")
    return value


def _options(part: Part, table: object, file: Path) -> Iterator[GivenOption]:
    """A list is an option that is given several times, false is one that is not."""
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
    """A list is an option that takes several words, such as `add`."""
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


TREND = "trend"
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")

Words = tuple[str, ...]


class CommandFailedError(Exception):
    """A command of the study ended with another exit code than 0, and has said why."""


class Wave:
    """One asking of the study with all that follows; its paths are from the study's folder."""

    def __init__(self, path: Path, month: str = "") -> None:
        self.path = path
        self.month = month
        """Such as `2026-11`, as its round in Argilla is named; empty where the study is asked once."""
        self.answers = path / "answers"
        self.records = path / "records.jsonl"
        self.sample = path / "plan" / SAMPLE_FILE
        """Who is in the sample, and with what probability; it is there once nothing more is asked."""
        self.export = path / "export"
        self.decisions = path / "decisions.csv"
        self.results = path / "results"

    @property
    def name(self) -> str:
        return self.month or self.path.name

    @property
    def finished(self) -> bool:
        return (self.results / RESULTS_FILE).is_file()

    @property
    def work(self) -> dict[str, Work]:
        """How far the work was when the results were written, by task; empty for results of before, which tell none."""
        told = json.loads((self.results / RESULTS_FILE).read_text(encoding="utf-8")) if self.finished else {}
        return {task: Work.model_validate(each) for task, each in (told.get("work") or {}).items()}

    @property
    def interim(self) -> str:
        """`, interim: 22 of 25 units`; empty where the results are of all work, or there are none."""
        cell = interim_cell(self.work)
        return f", interim: {cell} units" if cell else ""


def month_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m")


def checked_month(name: str, now: str) -> str:
    if not _MONTH.fullmatch(name):
        raise InputError(f"{name!r} is no month. Write year and month, such as {now}.")
    if name > now:
        raise InputError(f"{name} has not begun; it is {now} in UTC. Its answers would not be of that month.")
    return name


def wave_of(study: StudyFile, month: str) -> Wave:
    """That of a month, or the only one."""
    return Wave(Path(study.folder) / month, month) if study.monthly else Wave(Path(study.folder))


def begun_waves(study: StudyFile) -> list[Wave]:
    folder = Path(study.folder)
    months = _months_in(folder) if study.monthly else [""] * folder.is_dir()
    return [wave_of(study, month) for month in months]


def _months_in(folder: Path) -> list[str]:
    names = sorted(each.name for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []
    return [name for name in names if _MONTH.fullmatch(name)]


def waves_to_do(study: StudyFile, now: str, only: str | None = None) -> list[Wave]:
    """Every month that has begun and has no results of all work, then the present one; or one alone."""
    begun = {each.month for each in begun_waves(study)} if study.monthly else ()
    waves = [wave_of(study, month) for month in ([only] if only else sorted({*begun, now}))]
    return [wave for wave in waves if not wave.finished or wave.interim]


def command_words(study: StudyFile, part: Part, wave: Wave) -> Words:
    """What somebody would type to do this part of the wave, without `citejury`."""
    of_round = ("--round", wave.month) if wave.month else ()
    overlap = _overlap(study, part) if wave.month else ()
    # An answer that an earlier month had word for word is an answer of this month too, and labelled again.
    known = ("--known", "push") if wave.month and not study.gives("push", "known") else ()
    blind = () if any(study.gives("adjudicate", name) for name in ("blind", "votes")) else ("--blind",)
    by_arm = study.gives("ask", "arm") and not study.gives("results", "by")
    passwords = [
        word for option in study.options.get("setup", ()) if option.name == "passwords" for word in option.words
    ]
    decided = ("--decisions", wave.decisions) if wave.decisions.is_file() else ()
    counting = ("--consensus", "adjudicated") if decided and not study.gives("results", "consensus") else ()
    own: dict[Part, Sequence[object]] = {
        "ask": (study.narratives, "--out", wave.answers),
        "sources": (wave.answers, "--out", wave.records),
        "plan": (wave.records, "--out", wave.sample.parent, *of_round, *overlap),
        "setup": (*of_round, *overlap),
        "push": (wave.records, "--sample", wave.sample, *of_round, *known),
        # There are none where everybody was there before.
        "share": ("--out", "sheets", *(passwords if all(map(Path.is_file, map(Path, passwords[1:]))) else ())),
        "csv": (wave.export, *of_round),
        "adjudicate": (wave.export, *blind),
        "decisions": ("--out", wave.decisions, "--export", wave.export),
        "results": (
            wave.export,
            *("--sample", wave.sample, "--runs", wave.answers, "--runs", wave.records, *decided, *counting),
            *("--out", wave.results),
            *(("--by", "model_name,arm") if by_arm else ()),
        ),
    }
    return (*COMMANDS[part], *map(str, own[part]), *study.words(part))


def _overlap(study: StudyFile, part: Part) -> Words:
    """What the file says of the set-up, else the largest of the campaign's."""
    if study.gives(part, "overlap"):
        return ()
    told = [option.words for option in study.options.get("setup", ()) if option.name == "overlap"]
    campaign = read_campaign()
    if told or campaign is None:
        return told[-1] if told else ()
    return ("--overlap", str(max(campaign.overlap.values(), default=1)))


def has_adjudicators(campaign: Campaign | None) -> bool:
    return campaign is not None and any(map(campaign.adjudicators, campaign.locales))


def people_of(study: StudyFile) -> Campaign | None:
    """The campaign, in which somebody labels; None where there is none, whose people are in its workspace alone."""
    campaign = read_campaign()
    if campaign and not any(map(campaign.jury, campaign.locales)):
        raise InputError(
            "Nobody labels: `[campaign]` in `citejury.toml` names no annotator. Write `[[campaign.annotators]]` there "
            'and `name = "…"` below it, once for each person.'
        )
    if campaign and not study.monthly and study.gives("setup", "overlap"):
        raise InputError(
            "`[setup]` in the study has `overlap`, which `[campaign]` in `citejury.toml` says of a study that is asked "
            "once. Write it there, and take it out here."
        )
    return campaign
