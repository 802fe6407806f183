"""The command `exports csv`."""

import shlex
import signal
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.sections import SectionedCommand
from pipeline.interrupts import interrupted_by
from pipeline.progress import ProgressBars
from pipeline.tables import Table

if TYPE_CHECKING:
    from exports.schema import ExportedFile


def _read_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """The moment that an option names in ISO 8601, UTC without offset; None where the option was not given.

    Raises:
        click.BadParameter: it names none.
    """
    from exports.csv.tables import utc

    try:
        return None if value is None else utc(value)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is no date or time in ISO 8601, such as 2026-03-01 or 2026-03-01T09:30+01:00."
        ) from error


@click.command(
    "csv",
    cls=SectionedCommand,
    rare="--until --annotator --language --text-pair --discarded --key-file --spreadsheet-safe --api-url",
)
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    metavar="NAME",
    help="Argilla workspace; the setting `workspace` (citejury) if not given. May be given more than once.",
)
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
    callback=_read_moment,
    help="Only responses submitted at this moment or later; UTC without offset.",
)
@click.option(
    "--until",
    metavar="TIME",
    callback=_read_moment,
    help="Only responses submitted before this moment; a day alone is its beginning.",
)
@click.option(
    "--annotator",
    "annotators",
    multiple=True,
    metavar="NAME",
    help="Only responses of this annotator, by user name or user id; may be given more than once.",
)
@click.option(
    "--language",
    "languages",
    multiple=True,
    metavar="CODE",
    help="Only records of this language, such as de; may be given more than once.",
)
@click.option(
    "--round",
    "rounds",
    multiple=True,
    metavar="NAME",
    help="Only this round of annotation, such as calibration; may be given more than once. Rounds with suggestions "
    "are left out unless named.",
)
@click.option("--text-pair", is_flag=True, help="Append the columns text and text_pair, for training.")
@click.option(
    "--extended",
    is_flag=True,
    help="Append statuses, ids, times, broken rules, provenance, round, dataset and workspace.",
)
@click.option("--discarded", is_flag=True, help="Write discarded responses too, to <task>_discarded.csv.")
@click.option("--anonymize", "anonymized", is_flag=True, help="Write annotator-01, … instead of annotators' names.")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="Where the pseudonyms are kept, outside OUT; OUT.annotators.json beside it if not given.",
)
@click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="Put ' before cells that a spreadsheet takes for formulas, and a BOM at the start. This changes texts.",
)
@click.option("--api-url", help="Address of Argilla; ARGILLA_API_URL if not given.")
def csv_command(
    out: Path, workspaces: tuple[str, ...], key_file: Path | None, api_url: str | None, **wanted: object
) -> None:
    """Export submitted responses to the folder OUT: retrieval.csv, grounding.csv, generation.csv.

    One row for each response, with the time at which it was last submitted; drafts are never exported. Where grounding
    asks for marks, evidence.jsonl has the marked words. OUT must be absent, empty, or an earlier export, which is
    replaced as a whole. manifest.json says what was asked for, and where and when the rows were read. A named task,
    annotator, language, round or workspace without any response is an error. The API key comes from ARGILLA_API_KEY.

    With --anonymize a person keeps her pseudonym in every export with the same key file, which only its owner may
    read; keep it apart from the export. response_id is empty then. Whoever may read the server can still find out by
    the times who answered. Notes stay as they were written: a name in them is not replaced.

    \b
    Examples:
        citejury exports csv export
        citejury exports csv export --task grounding --since 2026-03-01 --extended
        citejury exports csv to-publish --round production --anonymize --key-file keys/jury.json
    """
    from annotation.client import open_argilla
    from exports.csv.write import export_csv
    from exports.schema import ExportFilters
    from pipeline.settings import read_settings

    settings = read_settings(api_url=api_url)
    filters = ExportFilters.model_validate(wanted)
    names = workspaces or (settings.workspace,)
    with interrupted_by(signal.SIGTERM), open_argilla(settings) as client, ProgressBars("records") as bars:
        export = export_csv(client, names, out, filters, key_file=key_file, progress=bars.report)
    for warning in export.warnings:
        click.echo(f"Warning: {warning}", err=True)
    click.echo(_summary(export.manifest.files), err=True)
    if export.key_file is not None:
        click.echo(f"Who is who stands in {export.key_file}; keep it, and keep it to yourself.", err=True)
    click.echo(f"Exported to {out}. Next: `citejury exports agreement {shlex.quote(str(out))}`.", err=True)


def _summary(files: "tuple[ExportedFile, ...]") -> str:
    """A small table: rows, annotators and records of each file."""
    rows = [(file.file, file.rows, file.annotators, file.records) for file in files]
    return Table([("file", "rows", "annotators", "records"), *rows], left=1).terminal((26, 7, 10, 7))
