"""What the user sees of a run: bars while it goes, and what came of it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

import click

from pipeline.cli.options import tell_next
from pipeline.terminal import SIGNAL_EXITS, ProgressBars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.asking.batches import Progress
    from pipeline.asking.questions import Call, Report, Tell
    from pipeline.asking.run_folder import LastStart, RunManifest

_CHANGED_TOLD = 5


class Shown(NamedTuple):
    """How the one who waits hears of settled calls, of how many are done in batches, and of what else happens."""

    report: "Report"
    progress: "Progress"
    tell: "Tell"


@contextmanager
def progress_bars() -> Iterator[Shown]:
    """A bar for each provider on stderr, where that is a terminal, and lines between them."""
    done: Counter[str] = Counter()
    with ProgressBars("calls", remaining=True) as bars:

        def report(call: "Call", total: int) -> None:
            done[call.provider] += 1
            bars.report(call.provider, done[call.provider], total)

        yield Shown(report, bars.report, bars.tell)


def end_run(manifest: "RunManifest", out: Path, strict: bool = False, changed: "Sequence[str]" = ()) -> None:
    """Print what came of the run and what to do next; `changed` are payloads that are not the ones that were kept.

    Raises:
        click.exceptions.Exit: a signal stopped it, or it is `strict` and something is wrong.
    """
    _print_summary(manifest, out)
    if changed:
        shown = ", ".join(changed[:_CHANGED_TOLD]) + (", …" if len(changed) > _CHANGED_TOLD else "")
        click.echo(
            f"Stored payloads that have changed since their answers were kept: {len(changed)} ({shown}). The answers "
            "stay as they are; to read the payloads as they are now, name another `--out`.",
            err=True,
        )
    if manifest.stopped:
        whys = {"max_cost": "`--max-cost` lets no more be sent", "batch": "no batch is waited for any longer"}
        why = whys.get(manifest.stopped, f"stopped by {manifest.stopped}")
        how = "with a higher `--max-cost`" if manifest.stopped == "max_cost" else "again"
        if manifest.last and manifest.last.priceless:
            from pipeline.providers.cost import price_tables

            tables = price_tables(sorted({model for each in manifest.last.priceless.values() for model in each}))
            why, how = "`--max-cost` cannot be held without a price", f"with {tables} in `citejury.toml`"
        tell_next(f"the same command {how} goes on", f"{why}: {manifest.unsettled} calls are left.")
        if manifest.stopped in SIGNAL_EXITS:
            raise click.exceptions.Exit(SIGNAL_EXITS[manifest.stopped])
    else:
        tell_next(f"citejury pipeline sources {click.format_filename(out)} --out records.jsonl")
    if strict and (changed or (manifest.last and (manifest.last.failed or manifest.last.unread))):
        raise click.exceptions.Exit(1)


def _print_summary(manifest: "RunManifest", out: Path) -> None:
    """Print what each provider answered, took and cost in all, what went wrong, and what this start did."""
    for provider, counts in manifest.providers.items():
        cut = "".join(f", {count} ended with {reason!r}" for reason, count in counts.cut_short.items())
        tokens = f", {counts.input_tokens:,} tokens in, {counts.output_tokens:,} out" if counts.input_tokens else ""
        replies = counts.answers + counts.bad_replies + counts.paused_bodies
        priced = f", cost {counts.cost:.4f} USD" if counts.unpriced < replies else ""
        is_told = counts.unpriced and (counts.input_tokens or counts.bad_replies)
        unknown = f", cost of {counts.unpriced} not known" if is_told else ""
        bad = f", {counts.bad_replies} unreadable but paid for" if counts.bad_replies else ""
        bad += f", {counts.paused_bodies} of paused turns paid for" if counts.paused_bodies else ""
        told = f"{provider}: {counts.answers} answers, {counts.citations} citations{bad}{tokens}{priced}{unknown}{cut}"
        click.echo(fill(told, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False), err=True)
    if manifest.errors:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        click.echo(f"not answered: {kinds} (see errors.jsonl)", err=True)
    if manifest.last:
        _print_last_start(manifest.last, manifest, out)


def _print_last_start(last: "LastStart", manifest: "RunManifest", out: Path) -> None:
    """Print what this start did, after a line for each provider that answered nothing."""
    from pipeline.asking.run_folder import BAD_RESPONSES, read_errors
    from pipeline.terminal import counted, printable

    reasons = {error.provider: error.message for error in reversed(read_errors(out))} if last.silent else {}
    for provider, kinds in last.silent.items():
        said = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        calls = counted(sum(kinds.values()), "call")
        click.echo(
            f"{provider}: this start made {calls}, and none was answered ({said}). The first: "
            f"{printable(reasons.get(provider, ''))}",
            err=True,
        )
    bad = manifest.errors.get("bad_response", 0)
    if last.unread or (bad and (out / BAD_RESPONSES).is_file()):
        click.echo(
            f"bad_response: replies that came and cannot be read are paid for, kept in {BAD_RESPONSES} and not asked "
            "for again unless with `--retry bad_response`",
            err=True,
        )
    # Nobody is paid for a stored payload.
    unpriced = sum(each.unpriced for each in manifest.providers.values()) if manifest.options else 0
    new = f", {last.unpriced} of them new" if 0 < last.unpriced < unpriced else ""
    unknown = f", cost of {unpriced} not known{new}" if unpriced else ""
    unread = f", {last.unread} unread" if last.unread else ""
    click.echo(
        f"{last.kept} kept, {last.new} new, {last.failed} failed{unread}, spent now {last.cost:.2f} USD "
        f"({manifest.cost:.2f} in all){unknown}",
        err=True,
    )
