"""One month of a study: its folder, the words of each command, and what is still wanting.

Nothing is written down about how far a month is: the files of each command say it, and Argilla says who has labelled.

Source: exports/contracts/study.md#how-it-goes-on.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from annotation.campaign.file import read_campaign
from annotation.campaign.plan import SAMPLE_FILE
from annotation.campaign.routing import standing_workspaces
from annotation.client import open_argilla
from annotation.status.summary import read_status
from exports.report.files import RESULTS_FILE
from exports.study.file import COMMANDS, Part, StudyFile
from pipeline.asking.run_folder import MANIFEST, read_manifest
from pipeline.errors import InputError
from pipeline.settings import read_settings
from pipeline.terminal import counted

TREND = "trend"
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_FOR_GOOD = frozenset(("bad_response", "not_recorded"))
"""Errors of calls that the same command does not ask again by itself."""

Words = tuple[str, ...]


class Month(NamedTuple):
    """The folder of a month, as a path from the study's folder; its name is the month's, such as `2026-11`."""

    path: Path

    @property
    def name(self) -> str:
        """The month, which is the name of its round in Argilla too."""
        return self.path.name

    @property
    def answers(self) -> Path:
        """The run folder."""
        return self.path / "answers"

    @property
    def records(self) -> Path:
        """The records of all answers."""
        return self.path / "records.jsonl"

    @property
    def sample(self) -> Path:
        """Who is in the sample, and with what probability; it is there once nothing more is asked."""
        return self.path / "plan" / SAMPLE_FILE

    @property
    def export(self) -> Path:
        """What people answered."""
        return self.path / "export"

    @property
    def results(self) -> Path:
        """What the jury found."""
        return self.path / "results"

    @property
    def finished(self) -> bool:
        """Whether the month has its results."""
        return (self.results / RESULTS_FILE).is_file()


def month_now() -> str:
    """The present month, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m")


def checked_month(name: str, now: str) -> str:
    """The name of a month that may be worked at.

    Raises:
        InputError: it is no month, or a later one than the present.
    """
    if not _MONTH.fullmatch(name):
        raise InputError(f"{name!r} is no month. Write year and month, such as {now}.")
    if name > now:
        raise InputError(f"{name} has not begun; it is {now} in UTC. Its answers would not be of that month.")
    return name


def begun_months(study: StudyFile) -> list[Month]:
    """The months that have a folder, in their order."""
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
    own: dict[Part, Sequence[object]] = {
        "ask": (study.narratives, "--out", month.answers),
        "sources": (month.answers, "--out", month.records),
        "plan": (month.records, "--out", month.sample.parent, "--round", month.name, *_overlap(study, "plan")),
        "setup": ("--round", month.name, *_overlap(study, "setup")),
        "push": (month.records, "--sample", month.sample, "--round", month.name, *_known(study)),
        "csv": (month.export, "--round", month.name),
        "results": (
            month.export,
            *("--weights", month.sample, "--runs", month.answers, "--runs", month.records, "--out", month.results),
            *_groups(study),
        ),
    }
    return (*COMMANDS[part], *map(str, own[part]), *study.words(part))


def _overlap(study: StudyFile, part: Part) -> Words:
    """How many annotators a record waits for: what the file says of the set-up, else the largest of the campaign's."""
    if study.gives(part, "overlap"):
        return ()
    told = [option.words for option in study.options.get("setup", ()) if option.name == "overlap"]
    campaign = read_campaign()
    if told or campaign is None:
        return told[-1] if told else ()
    return ("--overlap", str(max(campaign.overlap.values(), default=1)))


def _known(study: StudyFile) -> Words:
    """An answer that an earlier month had word for word is an answer of this month too, and labelled again."""
    return () if study.gives("push", "known") else ("--known", "push")


def _groups(study: StudyFile) -> Words:
    """Answers are grouped by who gave them, and where arms are asked by arm as well."""
    if study.gives("results", "by") or not study.gives("ask", "arm"):
        return ()
    return ("--by", "model_name,arm")


class CommandFailedError(Exception):
    """A command of the study ended with another exit code than 0, and has said why."""


class Incomplete(NamedTuple):
    """What a month waits for."""

    said: str
    """What is wanting, in plain sentences."""
    as_is: str
    """What `--as-is` would do, in a sentence."""
    next_step: str
    """What to do about it."""


def work_at(study: StudyFile, month: Month, run: Callable[[Words], None], as_is: bool = False) -> Incomplete | None:
    """Do all that can be done for a month now; what it waits for then, None where it has its results.

    Killed at any moment and called again, it goes on: a sample that is there ends the asking, results end the month,
    and every command before them may be given again.

    Args:
        study: The study.
        month: The month.
        run: Runs a command, or raises what stops the month, `CommandFailedError` where only the exit code says so.
        as_is: Whether nothing that may still come is waited for: neither calls that failed nor annotators.

    Raises:
        CommandFailedError: a command failed, and has said why.
        CitejuryError: a file or Argilla does not tell how far the month is.
    """
    if not month.sample.exists():
        try:
            run(command_words(study, "ask", month))
        except CommandFailedError:
            if not as_is or not (month.answers / MANIFEST).is_file():
                raise
        wanting = _unanswered(month, as_is)
        if wanting:
            return Incomplete(wanting, "`--as-is` takes the answers that are there.", "the same command goes on")
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
    failed = {kind: count for kind, count in errors.items() if kind not in _FOR_GOOD}
    if failed and not as_is:
        kinds = ", ".join(f"{count} {kind}" for kind, count in failed.items())
        return f"{month.name}: {counted(sum(failed.values()), 'call')} failed ({kinds}) and may succeed later."
    return ""


def _unlabelled(month: Month) -> str:
    """How much people have still to label, in sentences; empty where nothing is wanting."""
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
