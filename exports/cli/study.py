"""The commands `study plan`, `run` and `status`: a study from its narratives to its report, made of other commands."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import click

from annotation.cli.options import flag
from exports.cli.plan import plan
from exports.cli.study_file import check_options, folder_of, run_shown, tell_added
from pipeline.cli.options import log
from pipeline.core.errors import CitejuryError
from pipeline.core.terminal import counted, printable

if TYPE_CHECKING:
    from exports.study.file import StudyFile, Wave
    from exports.study.work import Incomplete

_WIDTH = 80
_MONTHS = 12  # that `study status` shows of those that are finished
_study_argument = click.argument(
    "path", metavar="[STUDY.toml]", type=click.Path(path_type=Path, dir_okay=False), default=Path("study.toml")
)


@click.group()
def study() -> None:
    """Carry a study from a file of narratives to its report: once, or every month."""


study.add_command(plan)


@study.command()
@_study_argument
@click.option("--month", "only", metavar="YYYY-MM", help="Of a monthly study, only this month.")
@flag("--as-is", help="Wait neither for calls that failed nor for people.")
@flag("--dry-run", help="Show the commands, and run none.")
@click.pass_context
def run(ctx: click.Context, path: Path, only: str | None, as_is: bool, dry_run: bool) -> None:
    """Do all of the study that can be done now; started again, it goes on from there.

    The commands are run one after the other, each shown as you would type it: `pipeline ask` and `sources`, `study
    plan`, which draws the sample, `annotation setup`, `push` and `share`, and, when the annotators are done, `exports
    csv`, `exports adjudicate` where the campaign has an adjudicator, and `exports results`. Where nobody is left who
    may answer some units, these are named, and the report is interim.

    Exit codes, for a nightly job: 0 done, 3 people are waited for, 1 something is wrong or calls are missing.

    STUDY.toml names the narratives and has a table of options for each command; `citejury init` writes one. Paths in
    it are from its folder, and so is citejury.toml; the key of a server that runs there is found. With `months` in it
    the study is asked again every month (UTC), of the same narratives, earlier months are finished first, and from the
    second one on it says what moved.

    \b
    Examples:
        citejury study run
        citejury study run study.toml --dry-run
        citejury study run --month 2026-11 --as-is
    """
    from exports.study import file as of_file
    from exports.study.work import WAITS
    from pipeline.core.files import locked_folder

    now = of_file.month_now()
    with folder_of(path) as file:
        told = of_file.read_study_file(file)
        if only and not told.monthly:
            raise click.UsageError(f"`{file}` is of a study that is asked once; `--month` is for one with `months`.")
        shown = of_file.wave_of(told, of_file.checked_month(only, now) if only else now)
        check_options(told, file, shown)
        if dry_run:
            settled = of_file.has_adjudicators(of_file.people_of(told))
            for part in of_file.PARTS:
                if settled or part not in ("adjudicate", "decisions"):
                    click.echo(f"citejury {printable(shlex.join(of_file.command_words(told, part, shown)))}")
            log("Nothing was run. Next: the same command without `--dry-run`")
            return
        of_file.people_of(told)
        with locked_folder(Path(told.folder), "study run"):
            tell_added(told)
            waiting, failed = _work(ctx, told, of_file.waves_to_do(told, now, only), as_is)
            finished = [wave for wave in of_file.begun_waves(told) if wave.finished]
            _tell_trend(told, finished)
        _tell_end(told, waiting, failed, finished)
    codes = [1 for _ in failed] + [each.exit_code for each in waiting]
    if any(codes):
        ctx.exit(1 if 1 in codes else WAITS)


@study.command()
@_study_argument
def status(path: Path) -> None:
    """Show how far the study is, who is waited for, and what to run next; of a monthly one the newest months.

    Nothing is run. How far each person is and what needs a look says `citejury annotation status`.

    \b
    Example:
        citejury study status
    """
    from exports.report.sections import REPORT_FILE
    from exports.study.file import begun_waves, month_now, people_of, read_study_file, wave_of
    from exports.study.work import steps_of
    from pipeline.core.tables import Table

    with folder_of(path) as file:
        told = read_study_file(file)
        waves = begun_waves(told) or [wave_of(told, month_now())]
        finished = [each for each in waves if each.finished]
        for wave in finished[-_MONTHS:] if told.monthly else []:
            click.echo(f"{wave.name}  finished: {wave.results / REPORT_FILE}")
        for wave in [each for each in waves if not each.finished] or waves[-1:]:
            steps = steps_of(told, wave)
            click.echo(f"{wave.name}\n{Table([(step, said or '–') for step, said in steps], left=2).terminal()}")
        people_of(told)
        tell_added(told)
    again = any("opens again" in said for _, said in steps)
    if not any(said for _, said in steps):
        log("Next: citejury study run; citejury study plan says first what it takes")
    elif wave.finished and not again:
        log(f"Next: open {wave.results / REPORT_FILE}")
    else:
        waits = not again and any("waits for" in said for _, said in steps)
        log(f"Next{', when they are done' if waits else ''}: citejury study run")


def _work(
    ctx: click.Context, told: "StudyFile", waves: "list[Wave]", as_is: bool
) -> "tuple[list[Incomplete], list[Wave]]":
    """Go through the waves; what each waits for, and those that something stopped, which keep no other waiting."""
    from exports.cli import plain_error
    from exports.study.file import CommandFailedError, month_now
    from exports.study.work import work_at

    waiting, failed = [], []
    now = month_now()
    for wave in waves:
        if wave.month and wave.month < now and not wave.sample.exists():
            log(f"{wave.month} is over: what is asked for it now is answered in {now}.")
        try:
            incomplete = work_at(
                told, wave, lambda words: run_shown(ctx, words), as_is, lambda line: log(printable(line))
            )
        except (CommandFailedError, CitejuryError, click.ClickException) as error:
            failed.append(wave)
            if not isinstance(error, CommandFailedError):
                (error if isinstance(error, click.ClickException) else plain_error(error)).show()
            continue
        if incomplete:
            waiting.append(incomplete)
            log(fill(printable(f"{incomplete.said} {incomplete.as_is}"), _WIDTH, break_on_hyphens=False))
    return waiting, failed


def _tell_trend(told: "StudyFile", finished: "Sequence[Wave]") -> None:
    """Write and print what moved between the months, where two are finished and one of them since it was written."""
    from exports.cli.figures import results
    from exports.report.files import FigureOptions, check_results_folder, write_results
    from exports.report.results_page import trend_sections
    from exports.report.sections import RESULTS_FILE, terminal_text
    from exports.study.file import TREND, command_words
    from exports.study.trend import measure_trend

    out = Path(told.folder) / TREND
    if len(finished) < 2 or not told.monthly:
        return
    newest = max((month.results / RESULTS_FILE).stat().st_mtime_ns for month in finished)
    if (out / RESULTS_FILE).exists() and (out / RESULTS_FILE).stat().st_mtime_ns >= newest:
        return
    check_results_folder(out)
    words = command_words(told, "results", finished[-1])[2:]  # its decisions are those of all months
    given = results.make_context("results", list(words)).params
    options = FigureOptions.model_validate({name: given[name] for name in ("by", "consensus", "decisions", "seed")})
    found = measure_trend(finished, options)
    write_results(found, out, *(told.gives("results", name) for name in ("spreadsheet-safe", "excel")))
    click.echo(terminal_text(trend_sections(found)))
    log(f"What moved between the months is in {out}.")


def _tell_end(
    told: "StudyFile", waiting: "list[Incomplete]", failed: "Sequence[Wave]", finished: "Sequence[Wave]"
) -> None:
    from exports.report.sections import REPORT_FILE

    if finished:
        interim = finished[-1].interim
        once = "The report of before" if waiting or failed else f"{'Closed' if interim else 'Finished'}: the report"
        many = f"{counted(len(finished), 'month')} finished; the newest report" if told.monthly else once
        log(f"\n{many} is {finished[-1].results / REPORT_FILE}{interim}")
    if failed:
        names = ", ".join(wave.name for wave in failed)
        said = f"Stopped: {names}. Next: mend what is said above, and start again"
        log(fill(said, _WIDTH, break_on_hyphens=False))
    elif waiting:
        log(fill(f"Next: {waiting[-1].next_step}", _WIDTH))
    elif finished and finished[-1].interim and not told.monthly:
        log("Next: the same command goes on once submissions come in or citejury.toml names somebody new")
    elif told.monthly:
        log("Next: the same command again next month")
