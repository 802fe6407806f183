"""The commands `study run` and `study trend`: a study that is repeated every month, made of the other commands."""

import os
import shlex
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import click

from annotation.cli.options import flag
from pipeline.cli.options import STUDY, log, tell_next
from pipeline.core.errors import CitejuryError, InputError
from pipeline.core.terminal import SIGNAL_EXITS, counted, printable

if TYPE_CHECKING:
    from exports.study import Incomplete, Month, Part, StudyFile, Words

_WIDTH = 80
_study_argument = click.argument(
    "path", metavar="[STUDY.toml]", type=click.Path(path_type=Path, dir_okay=False), default=Path("study.toml")
)


@click.group()
def study() -> None:
    """Repeat a study every month: ask, put the answers before the jury, and see what moved."""


@study.command()
@_study_argument
@click.option("--month", "only", metavar="YYYY-MM", help="Only this month; one that has not begun begins.")
@flag("--as-is", help="Wait neither for calls that failed nor for annotators.")
@flag("--dry-run", help="Show the commands of the month, and run none.")
@click.pass_context
def run(ctx: click.Context, path: Path, only: str | None, as_is: bool, dry_run: bool) -> None:
    """Do all of this month's study that can be done now, and of earlier months what is left.

    The commands of a month are run one after the other, each shown as you would type it: `pipeline ask` and `sources`,
    `annotation plan`, which draws the sample, `setup` and `push` into a round of the month's name, and, when the
    annotators are done, `exports csv` and `results`; from the second month on `study trend`. Where people are needed
    the command says so and ends, and so it does where calls are missing, then with exit code 1. Started again, by you
    or every night, it goes on from there; a month that has its results is finished. The present month is that of UTC.

    STUDY.toml names the narratives and has a table of options for each command; `citejury init` writes one. Paths in
    it are from its folder, and so is citejury.toml. The same narratives and seed draw the same sample every month, so
    that months can be compared narrative by narrative.

    \b
    Examples:
        citejury study run
        citejury study run study.toml --dry-run
        citejury study run study.toml --month 2026-11 --as-is
    """
    from exports import study as monthly
    from pipeline.core.files import locked_folder

    now = monthly.month_now()
    only = monthly.checked_month(only, now) if only else None
    with _folder_of(path) as file:
        told = monthly.read_study_file(file)
        _check_options(told, file, monthly.Month(Path(told.months) / (only or now)))
        if not Path(told.narratives).is_file():
            raise InputError(
                f"`narratives` in `{file}` is {told.narratives!r}, and there is no such file. A path in it is from its "
                "folder."
            )
        if dry_run:
            for part in monthly.PARTS:
                words = monthly.command_words(told, part, monthly.Month(Path(told.months) / (only or now)))
                click.echo(f"citejury {printable(shlex.join(words))}")
            log("Nothing was run. Next: the same command without `--dry-run`")
            return
        with locked_folder(Path(told.months), "study run"):
            waiting, failed = _work(ctx, told, monthly.months_to_do(told, now, only), as_is)
            finished = [month for month in monthly.begun_months(told) if month.finished]
            if _trend_is_due(told, finished):
                _run(ctx, ("study", "trend", file.name))
        _tell_end(waiting, failed, finished)
    if failed or any(each.exit_code for each in waiting):
        ctx.exit(1)


def _work(
    ctx: click.Context, told: "StudyFile", months: "list[Month]", as_is: bool
) -> "tuple[list[Incomplete], list[Month]]":
    """Go through the months; what each waits for, and those that something stopped, which keep no other waiting."""
    from exports.cli import plain_error
    from exports.study import CommandFailedError, month_now, work_at

    waiting, failed = [], []
    now = month_now()
    for month in months:
        if month.name < now and not month.sample.exists():
            log(f"{month.name} is over: what is asked for it now is answered in {now}.")
        try:
            incomplete = work_at(told, month, lambda words: _run(ctx, words), as_is)
        except (CommandFailedError, CitejuryError, click.ClickException) as error:
            failed.append(month)
            if not isinstance(error, CommandFailedError):
                (error if isinstance(error, click.ClickException) else plain_error(error)).show()
            continue
        if incomplete:
            waiting.append(incomplete)
            log(fill(f"{incomplete.said} {incomplete.as_is}", _WIDTH))
    return waiting, failed


def _run(ctx: click.Context, words: "Words") -> None:
    from exports.study import CommandFailedError

    root = ctx.find_root()
    log(f"\n$ citejury {printable(shlex.join(words))}")
    assert isinstance(root.command, click.Group)
    debug = ("--debug",) if root.params.get("debug") else ()
    try:
        code = root.command.main([*debug, *words], prog_name=root.info_name, standalone_mode=False, obj=STUDY)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)  # behind the question
        raise click.ClickException(
            f"`citejury {' '.join(words[:2])}` asks something, and nobody is here to answer. Run the command that is "
            "shown above yourself first; then the study goes on."
        ) from error
    if code in SIGNAL_EXITS.values():
        log("Next: the same command goes on")
        raise click.exceptions.Exit(code)
    if code:
        raise CommandFailedError


def _trend_is_due(told: "StudyFile", finished: "list[Month]") -> bool:
    from exports.report.files import RESULTS_FILE
    from exports.study import TREND

    trend = Path(told.months) / TREND / RESULTS_FILE
    if len(finished) < 2:
        return False
    newest = max((month.results / RESULTS_FILE).stat().st_mtime_ns for month in finished)
    return not trend.exists() or trend.stat().st_mtime_ns < newest


def _tell_end(waiting: "list[Incomplete]", failed: "list[Month]", finished: "list[Month]") -> None:
    if finished:
        log(f"\n{counted(len(finished), 'month')} finished; the newest is in {finished[-1].results}")
    if failed:
        names = ", ".join(month.name for month in failed)
        said = f"Stopped: {names}. Next: mend what is said above, and start again"
        log(fill(said, _WIDTH, break_on_hyphens=False))
    elif waiting:
        log(f"Next: {waiting[-1].next_step}")
    else:
        log("Next: the same command again next month")


@study.command()
@_study_argument
def trend(path: Path) -> None:
    """Say what moved between the months that have results: rates by month, and changes beyond chance.

    Each month is compared with the one before it and with the first, all answers together and within each group of
    `by` in the table [results], on the narratives that both months have; p is corrected for all of these comparisons
    (Holm). Written to the folder `trend` beside the months, with the same files as `exports results`, in which the
    month is one column more. Where other people labelled, other guidelines held, or something else was asked, that is
    said: what changed may be these.

    \b
    Example:
        citejury study trend study.toml
    """
    from exports.cli.figures import results
    from exports.report.files import FigureOptions, check_results_folder, write_results
    from exports.report.results_page import trend_sections
    from exports.report.sections import terminal_text
    from exports.study import TREND, Month, begun_months, command_words, measure_trend, month_now, read_study_file

    with _folder_of(path) as file:
        told = read_study_file(file)
        _check_options(told, file, Month(Path(told.months) / month_now()))
        out = Path(told.months) / TREND
        check_results_folder(out)
        words = command_words(told, "results", Month(Path(told.months)))[2:]
        given = results.make_context("results", list(words)).params
        options = FigureOptions.model_validate({name: given[name] for name in ("by", "consensus", "decisions", "seed")})
        found = measure_trend([month for month in begun_months(told) if month.finished], options)
        write_results(found, out, *(told.gives("results", name) for name in ("spreadsheet-safe", "excel")))
    click.echo(terminal_text(trend_sections(found)))
    tell_next(
        f"citejury study run {printable(shlex.quote(str(path)))}, next month", f"Figures and tables are in {out}."
    )


@contextmanager
def _folder_of(path: Path) -> Iterator[Path]:
    """The study's file as seen from its folder, in which the commands run; a `cd` is shown where that is another."""
    if not path.parent.is_dir():
        raise InputError(f"There is no study {str(path)!r}. `citejury init` writes one to begin with.")
    if path.parent.resolve() != Path.cwd():
        log(f"$ cd {printable(shlex.quote(os.fspath(path.parent)))}")
    with chdir(path.parent):
        yield Path(path.name)


def _check_options(told: "StudyFile", file: Path, month: "Month") -> None:
    """Check before anything is run that each command takes the options that the file gives it."""
    from exports.study import PARTS

    for part in PARTS:
        _check_part(told, part, file, month)


def _check_part(told: "StudyFile", part: "Part", file: Path, month: "Month") -> None:
    from exports.study import COMMANDS, command_words

    words, where = COMMANDS[part], f"`[{part}]` in `{file}`"
    command = _command_of(words)
    known = {
        name.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden and not param.is_eager
        for name in param.opts
    }
    given = told.options.get(part, ())
    for option in given:
        if option.name not in known:
            raise InputError(
                f"{where} has `{printable(option.name)}`, which is no option of the command; "
                f"`citejury {' '.join(words)} --help` lists them."
            )
        param = known[option.name]
        if len(option.values) != (0 if param.is_flag else param.nargs):
            wanted = "true or false" if param.is_flag else counted(param.nargs, "value")
            raise InputError(f"{where}: `{option.name}` needs {wanted}.")
        if not param.multiple and sum(each.name == option.name for each in given) > 1:
            raise InputError(f"{where}: `{option.name}` can be given once, found a list. Write one value.")
    try:
        command.make_context(part, list(command_words(told, part, month)[2:]))
    except click.UsageError as error:
        raise InputError(f"{where} cannot be used: {printable(error.format_message())}") from error


def _command_of(words: "Words") -> click.Command:
    from exports.cli import main

    found: click.Command = main
    for word in words:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    return found
