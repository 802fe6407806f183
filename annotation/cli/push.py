"""The command `push`: records before the annotators."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from annotation.cli.controls import known_units, put_controls
from annotation.cli.options import api_url_option, flag, workspace_option
from annotation.cli.setup import named_again
from pipeline.cli.options import PATH, SectionedCommand, log, tell_next
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table
from pipeline.core.terminal import ProgressBars, counted

if TYPE_CHECKING:
    from annotation.argilla.labels import TaskName
    from annotation.push.diff import Repair
    from annotation.push.push import PushReport
    from annotation.push.record_sources import CheckedPaths
    from pipeline.records.schema import QueryResponse

_say = sentences(__file__)

Known = Literal["skip", "push"]
_SHOWN = 20


@click.command(cls=SectionedCommand, rare="--exclude --known --skip-self-naming --locale --round --api-url")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH…")
@flag("--dry-run", help="Show the difference, and write nothing.")
@flag("--revise", help="Put a record that changed after it was answered in again, as a revision of its own.")
@click.option("--sample", type=PATH, metavar="FILE", help=_say("help_sample"))
@click.option("--exclude", type=PATH, metavar="FILE", help=_say("help_exclude"))
@click.option("--known", type=click.Choice(("skip", "push")), help=_say("help_known"))
@flag("--yes", help="Do not ask before lists take records whose overlap is another in citejury.toml, or that are done.")
@flag("--skip-self-naming", help="Leave out answers that speak as their own model, as in `I am …`.")
@workspace_option
@click.option("--locale", help="Which datasets, where the workspace has several languages: en, de or ja.")
@click.option("--round", "round_name", metavar="NAME", help="Round of annotation; production if not given.")
@api_url_option
def push(
    paths: tuple[Path, ...],
    dry_run: bool,
    revise: bool,
    sample: Path | None,
    exclude: Path | None,
    known: "Known | None",
    yes: bool,
    skip_self_naming: bool,
    workspace: str | None,
    locale: str | None,
    round_name: str | None,
    api_url: str | None,
) -> None:
    """Put the records of each PATH before the annotators.

    PATH is a run folder, a CSV v2 file, or a file of canonical records or ragas-style samples (JSON Lines). The table
    shows the difference to what is in Argilla before anything is written. Pushing again changes nothing, goes on where
    a push was interrupted, and may be done twice at once. A record that changed after somebody answered it is refused
    and listed, or goes in as a revision with `--revise`; a line that is no record is listed. Everything else goes in,
    and the exit code is then 1. An answer that is there under another id, as after asking the same again into another
    folder, goes in a second time only if you say so. Responses are never touched. Answers of which Markdown would
    change something, such as the numbers of a list, are shown as they were written and listed.

    With a campaign in citejury.toml each record goes to a list whose people read its query and its answer, and to
    calibration or production; `--round` names a round instead, and `--locale` the datasets of one language for all
    records. What nobody reads is listed and stays out. Where neither is given, the campaign's controls and repeats go
    in, too (`annotation controls` shows them). The API key comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation push records.jsonl
        citejury annotation push answers --dry-run
        citejury annotation push records.jsonl --sample plan/sample.csv
    """
    from annotation.argilla.client import open_argilla
    from annotation.argilla.labels import OWN_TASKS
    from annotation.argilla.tasks import PRODUCTION, refuse_suggested
    from annotation.campaign.file import read_campaign
    from annotation.push.push import PushOptions, push_where_named
    from annotation.push.record_sources import check_paths, kept_records, read_choice
    from pipeline.settings import read_settings

    refuse_suggested(round_name or PRODUCTION)
    settings, campaign = read_settings(workspace=workspace, api_url=api_url), read_campaign()

    def show(report: "PushReport") -> None:
        bars.clear()
        from annotation.push.diff import TaskCount

        several = len({place.workspace for place in report.counts}) > 1
        heading = ("task", "language", "round", *(["workspace"] * several), *TaskCount._fields)
        rows = [
            (task, place.locale, place.round_name, *([place.workspace] * several), *count)
            for place, tasks in report.counts.items()
            for task, count in tasks.items()
        ]
        click.echo(Table([heading, *rows]).terminal())

    def progress(what: str, done: int, total: int | None) -> None:
        bars.report(what, done, len(checked.languages) if total is None else total)

    unreached: Counter[str] = Counter()
    replaced: list[str] = []
    controlled = None if locale or round_name not in (None, PRODUCTION) else campaign
    controls = known_units(controlled)
    refused: tuple[str, ...] = ()
    with kept_records() as kept:
        checked = check_paths(paths, skip_self_naming, read_choice(sample, exclude), kept.keep)
        _tell_checked(checked, campaign.tasks if campaign else OWN_TASKS, dry_run)
        with open_argilla(settings) as argilla, ProgressBars() as bars:
            asked = partial(_takes_known, bars, known, dry_run)
            agree = partial(_agree, bars, yes or dry_run)
            options = PushOptions(dry_run, revise, show, progress, checked.without_passages, asked, agree)
            records = _counted(kept.read(checked.left_out), unreached, replaced)
            where = (argilla, settings.workspace, campaign, checked.languages, records)
            report = push_where_named(*where, locale, round_name, options)
            if controlled:
                refused = put_controls(*where[:2], controlled, controls, bars, dry_run=dry_run)
    _log_lines("records were answered and changed; their new text is a revision", report.revised)
    _log_lines("units stay in Argilla although their record no longer has them", report.left_over)
    _log_lines("languages or rounds have no work for a task, and sheets leave that out", report.empty)
    if report.closed and any(count.new for count in report.tasks.values()):
        log(f"Calibration is done ({', '.join(report.closed)}): no record is added to it, new ones are for production.")
    _tell_repairs(report.repairs)
    _tell_languages(checked, report, bool(locale), None if dry_run else _SHOWN)
    _tell_unreached(unreached, paths[0])
    _log_lines("records hold U+FFFD, such as where their source had a NUL character; annotators see it", replaced, 5)
    done = "Nothing was written (dry run)." if dry_run else "Annotators find them in their queues."
    log(f"Records read: {len(checked.languages)}. {done}")
    if not dry_run:
        named = named_again(workspace, round_name or PRODUCTION)
        sheets = f"citejury annotation share --out sheets{named_again(workspace)}"
        tell_next(f"{sheets}; once there are responses: citejury exports csv OUT{named}")
    if problems := [*checked.problems, *report.refused, *refused]:
        rest = "would go in" if dry_run else "is in"
        raise BadRowsError(f"Lines or records refused: {len(problems)}; everything else {rest}:", problems)


def _tell_checked(checked: "CheckedPaths", tasks: "Sequence[TaskName]", dry_run: bool) -> None:
    from annotation.argilla.display import needs_passages

    if checked.unchosen:
        left = f"{checked.unchosen:,} of {checked.unchosen + len(checked.languages):,} records"
        log(f"{left} are left out by `--sample` and `--exclude`.")
    if checked.missing:
        missing = counted(checked.missing, "record")
        log(f"Warning: the sample is not whole: {missing} of it in none of the paths.")
    if checked.unknown:
        log(f"Warning: {counted(checked.unknown, 'record')} of `--exclude` in none of the paths.")
    if checked.without_passages:
        shown = ", ".join(task for task in tasks if not needs_passages(task))
        where = f"they go to {shown} only" if shown else f"no task shows them ({', '.join(tasks)})"
        bare = f"{len(checked.without_passages)} of {len(checked.languages)} records have no passages"
        log(f"{bare}: {where},\nbecause no text of what they cite is at hand.")
    speaking = len(checked.speaking)
    skipped = "; `--skip-self-naming` leaves these out" if speaking else ""
    skipped = " and are left out" if checked.left_out.intersection(checked.speaking) else skipped
    what = _say("naming", speaking=speaking, skipped=skipped)
    if dry_run:
        _log_lines(what, checked.naming)
    elif checked.naming:
        log(f"{len(checked.naming)} {what}; `--dry-run` lists them.")


def _tell_languages(checked: "CheckedPaths", report: "PushReport", is_named: bool, most: int | None) -> None:
    where = "which `--locale` overrules" if is_named else "so they are not in"
    told = {each: languages for each, languages in checked.languages if languages.differ}
    for what, found in (
        (f"records are in languages that not all people of a list read, {where}", report.unread),
        ("records are answered in another language than asked", told),
    ):
        if found:
            counts = Counter(map(str, found.values()))
            named = ", ".join(f"{each} {count:,}" for each, count in sorted(counts.items()))
            lines = [f"{record_uuid}: {languages}" for record_uuid, languages in found.items()]
            _log_lines(f"of {len(checked.languages):,} {what} ({named})", lines, most)
    if most and max(len(report.unread), len(told)) > most:
        log("`--dry-run` lists all of them.")
    if not is_named and len(report.unread) == len(dict(checked.languages)):
        raise InputError(_say("nobody_reads"))


def _counted(records: "Iterable[QueryResponse]", reasons: Counter[str], broken: list[str]) -> "Iterator[QueryResponse]":
    """The records; by the end `reasons` has their unreached sources by reason, and all others under an empty one.

    `replaced` names those of whose texts some cannot be shown.
    """
    for record in records:
        if any("\ufffd" in text for text in (record.query, record.answer, record.context_set)):
            broken.append(record.record_uuid)
        found = ((each.state == "unreached", each.reason or "no reason given") for each in record.sources)
        reasons.update(reason if is_unreached else "" for is_unreached, reason in found)
        yield record


def _tell_unreached(reasons: Counter[str], path: Path) -> None:
    total = reasons.total()
    unreached = total - reasons.pop("", 0)
    if not unreached:
        return
    named = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    log(f"Sources that could not be reached: {unreached:,} of {total:,} ({named}). That alone makes none fabricated.")
    name = click.format_filename(path)
    run, out = (name, "records.jsonl") if path.is_dir() else ("RUN", name)
    private = " --allow-address ADDRESS:PORT" if reasons["refused"] else ""
    log(f"This tries them again, before anybody judges them: citejury pipeline sources {run} --out {out}{private}")


def _agree(bars: ProgressBars, yes: bool, lines: Sequence[str]) -> None:
    bars.clear()
    _log_lines("lists are not as citejury.toml has them, or are done", lines)
    log("`citejury annotation setup` changes the overlap, and says first what that would open again.")
    if not yes:
        click.confirm("Push into them as they are? (`--yes` does not ask)", abort=True, err=True)


def _takes_known(bars: ProgressBars, known: Known | None, dry_run: bool, lines: Sequence[str]) -> bool:
    """Whether records go in whose answers are there already under another id; what is not said is asked."""
    bars.clear()
    what = "records hold an answer (same provider, model, narrative and text) that is there under another id"
    if not known and not dry_run and not sys.stdin.isatty():
        raise InputError(_say("known", count=len(lines), what=what, first=lines[0]))
    _log_lines(what, lines, 5)
    if not known and not dry_run:
        answer = click.prompt("Leave them out, or put them in again?", type=click.Choice(("skip", "push")), err=True)
        known = "push" if answer == "push" else "skip"
    said = {"skip": "They are left out.", "push": "They go in a second time."}
    log(said[known] if known else "A push asks what becomes of them; `--known` says it.")
    return known == "push"


def _tell_repairs(repairs: "Sequence[Repair]") -> None:
    """Say which answers are shown as written, wholly or in part."""
    if repairs:
        given_up = sum(bool(repair.given_up) for repair in repairs)
        what = _say("repairs", given_up=given_up)
        ordered = sorted(repairs, key=lambda repair: not repair.given_up)
        _log_lines(what, ordered, _SHOWN)


def _log_lines(what: str, lines: Sequence[object], most: int | None = None) -> None:
    if lines:
        log(f"{len(lines)} {what}:")
        for line in lines[:most]:
            log(f"  {line}")
        if most and len(lines) > most:
            log(f"  … and {len(lines) - most} more.")
