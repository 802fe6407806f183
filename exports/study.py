"""A study that is repeated every month: its file, what of a month is left to do, and what moved between months.

Source: exports/contracts/study.md.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field

from annotation.argilla.client import open_argilla
from annotation.campaign.file import read_campaign
from annotation.campaign.plan import SAMPLE_FILE
from annotation.campaign.routing import standing_workspaces
from annotation.quality.summary import read_status
from exports.csv.folder import exported_datasets
from exports.reading.definitions import read_findings
from exports.reading.read import export_files, read_tables
from exports.reading.study import read_study, read_weights
from exports.report.files import RESULTS_FILE, FigureOptions
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Results
from pipeline.asking.run_folder import MANIFEST, RunManifest, read_manifest
from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen
from pipeline.core.terminal import counted, printable
from pipeline.settings import read_settings

STUDY_FILE = "study.toml"

Part = Literal["ask", "sources", "plan", "setup", "push", "csv", "results"]
PARTS: tuple[Part, ...] = get_args(Part)
COMMANDS: Mapping[Part, tuple[str, str]] = {
    "ask": ("pipeline", "ask"),
    "sources": ("pipeline", "sources"),
    "plan": ("annotation", "plan"),
    "setup": ("annotation", "setup"),
    "push": ("annotation", "push"),
    "csv": ("exports", "csv"),
    "results": ("exports", "results"),
}
_PLACES = frozenset(("workspace", "locale", "api-url"))
OWN: Mapping[Part, frozenset[str]] = {
    "ask": frozenset(("out", "dry-run", "batch-cancel")),
    "sources": frozenset(("out",)),
    "plan": frozenset(("out", "round", "workspace")),
    "setup": frozenset(("round", "new-version", "dry-run")) | _PLACES,
    "push": frozenset(("round", "sample", "dry-run")) | _PLACES,
    "csv": frozenset(("round", "update", "until")) | _PLACES,
    "results": frozenset(("out", "runs", "sample", "schema")),
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
    """What is repeated every month."""

    narratives: str
    """The CSV file of what is asked, as a path from the study's folder."""
    months: str = "months"
    """The folder that gets one folder a month, as a path from the study's folder."""
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


class Month:
    """The folder of a month, as a path from the study's folder; its name is the month's, such as `2026-11`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.answers = path / "answers"
        self.records = path / "records.jsonl"
        self.sample = path / "plan" / SAMPLE_FILE
        """Who is in the sample, and with what probability; it is there once nothing more is asked."""
        self.export = path / "export"
        self.results = path / "results"

    @property
    def finished(self) -> bool:
        return (self.results / RESULTS_FILE).is_file()


def month_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m")


def checked_month(name: str, now: str) -> str:
    if not _MONTH.fullmatch(name):
        raise InputError(f"{name!r} is no month. Write year and month, such as {now}.")
    if name > now:
        raise InputError(f"{name} has not begun; it is {now} in UTC. Its answers would not be of that month.")
    return name


def begun_months(study: StudyFile) -> list[Month]:
    folder = Path(study.months)
    names = sorted(each.name for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []
    return [Month(folder / name) for name in names if _MONTH.fullmatch(name)]


def months_to_do(study: StudyFile, now: str, only: str | None = None) -> list[Month]:
    """Every month that has begun and has no results, then the present one; or one alone. Finished ones are left out."""
    begun = {each.name: each for each in begun_months(study)}
    wanted = [only] if only else sorted({*begun, now})
    months = [begun.get(name, Month(Path(study.months) / name)) for name in wanted]
    return [month for month in months if not month.finished]


def command_words(study: StudyFile, part: Part, month: Month) -> Words:
    """What somebody would type to do this part of the month, without `citejury`."""
    # An answer that an earlier month had word for word is an answer of this month too, and labelled again.
    known = () if study.gives("push", "known") else ("--known", "push")
    by_arm = study.gives("ask", "arm") and not study.gives("results", "by")
    own: dict[Part, Sequence[object]] = {
        "ask": (study.narratives, "--out", month.answers),
        "sources": (month.answers, "--out", month.records),
        "plan": (month.records, "--out", month.sample.parent, "--round", month.name, *_overlap(study, "plan")),
        "setup": ("--round", month.name, *_overlap(study, "setup")),
        "push": (month.records, "--sample", month.sample, "--round", month.name, *known),
        "csv": (month.export, "--round", month.name),
        "results": (
            month.export,
            *("--sample", month.sample, "--runs", month.answers, "--runs", month.records, "--out", month.results),
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


class CommandFailedError(Exception):
    """A command of the study ended with another exit code than 0, and has said why."""


class Incomplete(NamedTuple):
    said: str
    as_is: str
    next_step: str
    exit_code: int = 0


def work_at(study: StudyFile, month: Month, run: Callable[[Words], None], as_is: bool = False) -> Incomplete | None:
    """Do all that can be done for a month now; what it waits for then, None where it has its results.

    Killed at any moment and called again, it goes on: a sample that is there ends the asking, results end the month,
    and every command before them may be given again. With `as_is` it waits neither for calls that failed nor for
    annotators. `run` raises what stops the month, `CommandFailedError` where only the exit code says so.
    """
    if not month.sample.exists():
        try:
            run(command_words(study, "ask", month))
        except CommandFailedError:
            if not (month.answers / MANIFEST).is_file() or not (as_is or _is_incomplete(month)):
                raise
        wanting = _unanswered(month, as_is)
        if wanting:
            return Incomplete(wanting, "`--as-is` takes the answers that are there.", "the same command goes on", 1)
        run(command_words(study, "sources", month))
        run(command_words(study, "plan", month))
    run(command_words(study, "setup", month))
    run(command_words(study, "push", month))
    wanting = "" if as_is else _unlabelled(month)
    if wanting:
        following = f"citejury annotation status --round {month.name}; when they are done, go on"
        return Incomplete(wanting, "`--as-is` takes the labels that are there.", following)
    run(command_words(study, "csv", month))
    run(command_words(study, "results", month))
    return None


def _is_incomplete(month: Month) -> bool:
    told = read_manifest(month.answers)
    return bool(told.unsettled or (told.last and told.last.missing))


def _unanswered(month: Month, as_is: bool) -> str:
    """Why the asking is not at its end, in a sentence; empty where it is."""
    told = read_manifest(month.answers)
    if told.stopped == "max_cost":
        left = counted(told.unsettled, "call")
        needed = "a price in citejury.toml" if told.last and told.last.priceless else "a higher one in `[ask]`"
        return "" if as_is else f"{month.name}: asking stopped at `max-cost`, with {left} left; {needed} lets it go on."
    if told.finished is None or told.stopped or told.unsettled:
        return f"{month.name}: not every call is answered yet."
    errors = told.last.errors if told.last else told.errors  # not those of calls that nobody asks for any more
    # These two the same command does not ask again by itself.
    failed = {kind: count for kind, count in errors.items() if kind not in ("bad_response", "not_recorded")}
    if failed and not as_is:
        kinds = ", ".join(f"{count} {kind}" for kind, count in failed.items())
        return f"{month.name}: {counted(sum(failed.values()), 'call')} failed ({kinds}) and may succeed later."
    return ""


def _unlabelled(month: Month) -> str:
    settings = read_settings()
    with open_argilla(settings) as argilla:
        where = standing_workspaces(argilla, read_campaign(), settings.workspace)
        status = read_status(argilla, where, datetime.now(UTC), rounds=(month.name,))
    if not status.needed:
        return ""
    records = sum(each.pending for each in status.datasets)
    nobody = status.needed - status.reachable
    left = f" For {nobody:,} of them nobody is left who may give it." if nobody else ""
    return (
        f"{month.name}: people are needed: {counted(records, 'unit')} of the round {month.name!r} wait for "
        f"{counted(status.needed, 'submission')}.{left}"
    )


MONTH = "month"  # the column that a trend adds to the provenance of each record


def measure_trend(months: Sequence[Month], options: FigureOptions) -> Results:
    """What differs between a month and the one before or the first; `months` are finished, and in their order."""
    if len(months) < 2:
        raise InputError(
            f"A trend needs two months with results, and there {'is one' if months else 'are none'}. "
            "`citejury study run` goes on with the months that have begun."
        )
    paths = [month.export for month in months]
    read = read_study(paths, read_tables(export_files(paths)), decisions=options.decisions)
    sampled = {month.name: read_weights(month.sample, ()).sampled for month in months}
    month_of = {record: name for name, records in sampled.items() for record in records}
    provenance = read.study.provenance.items()
    study = read.study._replace(
        provenance={record: {**known, MONTH: month_of.get(record, "")} for record, known in provenance},
        # With the probability with which each month's sample drew the record.
        probabilities={record: p for records in sampled.values() for record, p in records.items()},
        successive=frozenset((MONTH,)),
    )
    found = measure_results(
        study,
        by=(MONTH, *(column for column in options.by if column != MONTH)),
        consensus=options.consensus,
        findings=read_findings(),
        inputs=read.inputs,
        seed=options.seed,
    )
    minded = (*_other_guidelines(months), *_other_questions(months))
    return found.model_copy(update={"remarks": (*read.remarks, *minded, *found.remarks)})


def _other_guidelines(months: Sequence[Month]) -> Iterator[str]:
    told: dict[str, str] = {}
    for month in months:
        versions = {f"{each.get('task')} {each.get('guideline_version')}" for each in exported_datasets(month.export)}
        told[month.name] = " ".join(sorted(versions))
    parted = _by_value(told)
    if len(parted) > 1:
        groups = "; ".join(", ".join(names) for names in parted.values())
        yield f"Guidelines or questions were others in some months, so what changed may be the rules: {groups}."


def _other_questions(months: Sequence[Month]) -> Iterator[str]:
    told = {month.name: read_manifest(month.answers) for month in months}
    asked = _by_value({name: _asked(manifest) for name, manifest in told.items()})
    if len(asked) > 1:
        groups = "; ".join(", ".join(names) for names in asked.values())
        yield (
            f"Not the same was asked in every month: {groups}. Narratives, options and models asked for stand in "
            "answers/manifest.json of each."
        )
    answered = {
        name: ", ".join(
            f"{provider} {' and '.join(sorted(counts.models_answered))}"
            for provider, counts in sorted(manifest.providers.items())
            if counts.models_answered
        )
        for name, manifest in told.items()
    }
    models = _by_value(answered)
    if len(models) > 1:
        yield f"The models that answered were not the same in every month: {_listed(models)}."


def _asked(manifest: RunManifest) -> str:
    """The same text where the same was asked."""
    models = {provider: counts.model_asked for provider, counts in sorted(manifest.providers.items())}
    return repr((manifest.narratives.sha256, manifest.repeats, models, manifest.options, manifest.asked_arms()))


def _by_value(told: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for month, value in told.items():
        found.setdefault(value, []).append(month)
    return found


def _listed(told: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{', '.join(months)}: {value or 'not known'}" for value, months in told.items())
