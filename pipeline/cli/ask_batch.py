"""What `pipeline ask --batch-status` shows: how far the batches of a run are."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeline.asking.ask_live import ProviderSelection


def print_batches(out: Path, selection: "ProviderSelection") -> None:
    """Print a line for each batch under way on stderr, and all of them as one JSON list on stdout."""
    from pipeline.asking.batches import look_at_batches
    from pipeline.terminal import counted, printable

    looks = look_at_batches(out, selection)
    for each in looks:
        words = f" ({printable(each.words)})" if each.words else ""
        failed = f", {each.failed} failed" if each.failed else ""
        click.echo(
            f"{each.provider}: {printable(each.batch_id) or 'no id yet'}, {each.status}, {each.done} of "
            f"{counted(each.calls, 'call')} answered{failed}, sent {each.planned[:16]}{words}",
            err=True,
        )
    click.echo(json.dumps([each._asdict() for each in looks], ensure_ascii=False, indent=2).encode() + b"\n", nl=False)
    following = (
        "the same command with `--batch` collects them" if looks else "with `--batch`, calls are sent in batches"
    )
    click.echo(f"{'' if looks else 'No batch is under way. '}Next: {following}", err=True)
