"""What the user sees of a run: bars while it goes, and what came of it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pipeline.interrupts import SIGNAL_EXITS
from pipeline.progress import ProgressBars

if TYPE_CHECKING:
    from pipeline.asking.questions import Call, Report, Tell
    from pipeline.asking.run_folder import RunManifest


class Shown(NamedTuple):
    """How the one who waits hears of settled calls and of what else happens."""

    report: "Report"
    tell: "Tell"


@contextmanager
def progress_bars() -> Iterator[Shown]:
    """A bar for each provider on stderr, where that is a terminal, and lines between them."""
    done: Counter[str] = Counter()
    with ProgressBars("calls", remaining=True) as bars:

        def report(call: "Call", total: int) -> None:
            done[call.provider] += 1
            bars.report(call.provider, done[call.provider], total)

        yield Shown(report, bars.tell)


def end_run(manifest: "RunManifest", out: Path) -> None:
    """Print what came of the run and what to do next.

    Raises:
        click.exceptions.Exit: a signal stopped it.
    """
    _print_summary(manifest)
    if manifest.stopped:
        why = "`--max-cost` is reached" if manifest.stopped == "max_cost" else f"stopped by {manifest.stopped}"
        how = "with a higher `--max-cost`" if manifest.stopped == "max_cost" else "again"
        click.echo(f"{why}: {manifest.unsettled} calls are left. Next: the same command {how} goes on", err=True)
        if manifest.stopped in SIGNAL_EXITS:
            raise click.exceptions.Exit(SIGNAL_EXITS[manifest.stopped])
        return
    click.echo(f"Next: citejury pipeline sources {click.format_filename(out)} --out RECORDS.jsonl", err=True)


def _print_summary(manifest: "RunManifest") -> None:
    """Print what each provider answered, took and cost, and what went wrong by kind."""
    for provider, counts in manifest.providers.items():
        cut = "".join(f", {count} ended with {reason!r}" for reason, count in counts.cut_short.items())
        tokens = f", {counts.input_tokens:,} tokens in, {counts.output_tokens:,} out" if counts.input_tokens else ""
        priced = f", cost {counts.cost:.4f}" if counts.unpriced < counts.answers else ""
        unknown = f", cost of {counts.unpriced} not known" if counts.unpriced and counts.input_tokens else ""
        click.echo(
            f"{provider}: {counts.answers} answers, {counts.citations} citations{tokens}{priced}{unknown}{cut}",
            err=True,
        )
    if manifest.errors:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        click.echo(f"not answered: {kinds} (see errors.jsonl)", err=True)
