"""The command `exports csv`."""

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from exports.schema import ExportedFile


def read_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """The moment that an option names in ISO 8601, UTC without offset; None where the option was not given.

    Raises:
        click.BadParameter: it names none.
    """
    from exports.tables import utc

    try:
        return None if value is None else utc(value)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is no date or time in ISO 8601, such as 2026-03-01 or 2026-03-01T09:30+01:00."
        ) from error


@click.command("csv")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--workspace", help="Argilla workspace; the setting `workspace` (citejury) if not given.")
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.Choice(("retrieval", "grounding", "generation")),
    help="Only this task; may be given more than once.",
)
@click.option(
    "--since",
    metavar="TIME",
    callback=read_moment,
    help="Only responses submitted at this moment or later; UTC without offset.",
)
@click.option("--text-pair", is_flag=True, help="Append the columns text and text_pair, for training.")
@click.option("--extended", is_flag=True, help="Append statuses, ids, times, broken rules and provenance.")
@click.option("--discarded", is_flag=True, help="Write discarded responses too, to <task>_discarded.csv.")
@click.option("--api-url", help="Address of Argilla; ARGILLA_API_URL if not given.")
def csv_command(
    out: Path,
    workspace: str | None,
    tasks: tuple[str, ...],
    since: datetime | None,
    text_pair: bool,
    extended: bool,
    discarded: bool,
    api_url: str | None,
) -> None:
    """Export submitted responses to the folder OUT: retrieval.csv, grounding.csv, generation.csv.

    One row for each response, with the time at which it was last submitted; drafts are never exported. OUT must be
    absent, empty, or an earlier export, which is replaced as a whole. manifest.json says where and when the rows were
    read. The API key comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury exports csv export
        citejury exports csv export --task grounding --since 2026-03-01 --extended
    """
    from annotation.client import open_argilla
    from annotation.labels import TASKS
    from exports.csv_export import export_csv
    from exports.progress import shown_progress
    from pipeline.settings import read_settings

    settings = read_settings(api_url=api_url, workspace=workspace)
    with stopping_cleanly(), open_argilla(settings) as client, shown_progress() as progress:
        export = export_csv(
            client,
            settings.workspace,
            out,
            tasks=[task for task in TASKS if task in tasks],
            since=since,
            text_pair=text_pair,
            extended=extended,
            discarded=discarded,
            progress=progress,
        )
    for warning in export.warnings:
        click.echo(f"Warning: {warning}", err=True)
    for line in summary(export.manifest.files):
        click.echo(line, err=True)
    click.echo(f"Exported to {out}. Next: `citejury exports agreement {shlex.quote(str(out))}`.", err=True)


@contextmanager
def stopping_cleanly() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, so that nothing half-written stays."""
    earlier = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def summary(files: "tuple[ExportedFile, ...]") -> list[str]:
    """A small table: rows, annotators and records of each file."""
    lines = [f"{'file':<26}{'rows':>9}{'annotators':>12}{'records':>9}"]
    return lines + [f"{file.file:<26}{file.rows:>9}{file.annotators:>12}{file.records:>9}" for file in files]
