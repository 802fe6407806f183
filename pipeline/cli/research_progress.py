"""What the user sees of a research run: its stages while it goes, questions, and what came of it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeline.research.running.course import Progress, Spend
    from pipeline.research.running.options import ResearchOptions
    from pipeline.research.stages.finishing import Finished
    from pipeline.research.values import Stage


@contextmanager
def shown_progress() -> "Iterator[Progress]":
    """A line for each stage that is done, on stderr; in a terminal, what goes on and what it took stands below."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from pipeline.research.running.course import Progress

    console = Console(stderr=True, markup=False, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[spent]}", markup=False),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        bar = bars.add_task("", total=None, spent="")

        def start(stage: "Stage", round_: int) -> None:
            bars.update(bar, description=f"{stage}{again(round_)}", total=None, completed=0)

        def end(stage: "Stage", round_: int, words: str) -> None:
            console.print(f"{stage}{again(round_)}: {words or 'done'}", soft_wrap=True)

        yield Progress(
            start,
            lambda done, total: bars.update(bar, completed=done, total=total),
            end,
            lambda spend: bars.update(bar, spent=spent_words(spend)),
            lambda line: console.print(line, soft_wrap=True),
        )


def again(round_: int) -> str:
    """Which round it is, from the second on."""
    return f", round {round_}" if round_ > 1 else ""


def spent_words(spend: "Spend") -> str:
    """What the model has taken, in a few words; empty where nothing was asked."""
    if not spend.tokens:
        return ""
    unknown = f", cost of {spend.unpriced} answers not known" if spend.unpriced else ""
    return f"{spend.tokens:,} tokens, {spend.cost:.4f} USD{unknown}"


def ask_on_terminal(questions: Sequence[str]) -> list[str]:
    """The answers from stdin, a line for each question in order; empty ones where there is no more to read."""
    with interrupted_at_once():
        return [answer_to(question) for question in questions]


def answer_to(question: str) -> str:
    """The next line of stdin, for this question; empty where there is none."""
    click.echo(question, err=True)
    click.echo("> ", err=True, nl=False)
    line = sys.stdin.readline()
    if not sys.stdin.isatty() or not line:  # nobody's Enter has ended the line of the question
        click.echo(err=True)
    return line.strip()


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Ctrl-C ends the block at once; asyncio's own handler would wait for the line to end."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def tell_questions(questions: Sequence[str]) -> None:
    """Print what must be answered, and how."""
    for question in questions:
        click.echo(question)
    click.echo("The topic must be clarified first; nothing was researched.", err=True)
    click.echo('Next: citejury pipeline research "A FULLER TOPIC", or without `--non-interactive` to answer', err=True)


def tell_stopped(options: "ResearchOptions") -> None:
    """Print how a stopped run goes on."""
    click.echo("Stopped; what was answered and read is kept.", err=True)
    click.echo(f"Next: citejury pipeline research --run-id {options.run_id}{place(options)} goes on", err=True)


def place(options: "ResearchOptions") -> str:
    """The option that names the folder of runs, where it is not the usual one."""
    return "" if str(options.runs_dir) == "runs" else f" --runs-dir {click.format_filename(options.runs_dir)}"


def end_research(finished: "Finished", options: "ResearchOptions") -> None:
    """Print the report's path on stdout; what was found, what it took and what to do next on stderr."""
    from pipeline.research.report_words import ENGLISH
    from pipeline.text.counted import counted

    check, metrics = finished.check, finished.metrics
    click.echo(click.format_filename(finished.folder / "final" / "report.md"))
    if finished.stop_reason:
        click.echo(f"Not all was done that was wanted: {ENGLISH.stops[finished.stop_reason]}.", err=True)
    click.echo(
        f"{counted(check.total_paragraphs, 'paragraph')} with {counted(metrics.sources_count, 'source')} of "
        f"{counted(metrics.domain_diversity, 'site')}; {counted(check.verified_claims_count, 'claim')} supported, "
        f"{check.single_source_claims_count} by one site alone, {check.conflicts_count} disputed.",
        err=True,
    )
    tokens = metrics.tokens_in + metrics.tokens_out
    took = f", {tokens:,} tokens, {metrics.cost_est:.4f} USD" if tokens else ""
    pages = f"{counted(metrics.cache_misses, 'page')} fetched, {metrics.cache_hits} from the store"
    click.echo(f"{metrics.duration_s:.0f} s{took}; {pages}.", err=True)
    if not finished.passed:
        account = click.format_filename(finished.folder / "final" / "verification.md")
        click.echo(f"The report did not pass the audit; {account} says why.", err=True)
    run_id, where = finished.run_id, place(options)
    click.echo(f"Next: citejury pipeline runs show {run_id}{where}", err=True)
    if finished.passed:
        click.echo(f"Or: citejury annotation push {click.format_filename(finished.folder)}", err=True)
