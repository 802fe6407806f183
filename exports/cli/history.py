"""The command `exports history`."""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotation.cli.options import (
    annotators_option,
    anonymized_option,
    api_url_option,
    rounds_option,
    spreadsheet_option,
    tasks_option,
    workspaces_option,
)
from pipeline.cli.options import SectionedCommand
from pipeline.tables import Table
from pipeline.terminal import ProgressBars, counted, interrupted_by

if TYPE_CHECKING:
    from annotation.labels import TaskName

_KINDS = {"insert": "given", "update": "changed", "delete": "deleted"}


@click.command(cls=SectionedCommand, rare="--annotator --key-file --spreadsheet-safe --api-url")
@click.argument("out", type=click.Path(path_type=Path))
@workspaces_option
@tasks_option
@rounds_option
@annotators_option
@anonymized_option
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="Where the pseudonyms are kept; that of `exports csv` gives the same ones. OUT.annotators.json beside OUT if "
    "not given.",
)
@spreadsheet_option
@api_url_option
def history(
    out: Path, workspaces: tuple[str, ...], key_file: Path | None, api_url: str | None, **wanted: object
) -> None:
    """Write every change of every response to the file OUT, as CSV: who, when, what was there before and after.

    A row for each question of each change, in the order of the changes: drafts, corrections, discards and deletions
    are among them, also of records and datasets that are gone. Nobody can change what is in the history. Only
    citejury's own server keeps one, for owners and admins. It begins with the first start of this version; of answers
    that were there before, only what became of them afterwards is known. The API key comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury exports history history.csv
        citejury exports history grounding.csv --task grounding --annotator anna
    """
    from annotation.campaign.file import read_campaign
    from annotation.campaign.routing import standing_workspaces
    from annotation.client import open_argilla
    from exports.csv.history import export_history
    from exports.schema import ExportFilters
    from pipeline.settings import read_settings

    settings = read_settings(api_url=api_url)
    filters = ExportFilters.model_validate(wanted)
    with interrupted_by(signal.SIGTERM), open_argilla(settings) as client, ProgressBars("changes") as bars:
        names = workspaces or standing_workspaces(client, read_campaign(), settings.workspace)
        written = export_history(client, names, out, filters, key_file=key_file, progress=bars.report)
    click.echo(_summary(written.changes), err=True)
    if written.foreign:
        click.echo(f"Left out: {counted(written.foreign, 'change')} in datasets that are not citejury's.", err=True)
    if written.begins is not None:
        begins = written.begins.isoformat(timespec="seconds")
        click.echo(f"The history begins at {begins}; how answers came about before that is not known.", err=True)
    if written.key_file is not None:
        click.echo(f"Who is who stands in {written.key_file}; keep it, and keep it to yourself.", err=True)
    click.echo(
        f"Written to {out}. Next: `citejury exports csv OUT --as-of TIME` exports the answers of a moment.", err=True
    )


def _summary(changes: "Mapping[tuple[TaskName, str], int]") -> str:
    """A small table: how many responses were given, changed and deleted in each task; a line where none was."""
    if not changes:
        return "No response was given, changed or deleted."
    tasks = sorted({task for task, _ in changes})
    rows = [(task, *(str(changes.get((task, kind), 0)) for kind in _KINDS)) for task in tasks]
    return Table([("responses", *_KINDS.values()), *rows], left=1).terminal((26, 7, 9, 9))
