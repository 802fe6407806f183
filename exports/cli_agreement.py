"""The command `exports agreement`."""

from pathlib import Path

import click


@click.command("agreement")
@click.argument("paths", metavar="DIR|CSV...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("agreement"),
    show_default=True,
    help="Folder for `agreement.json`; it is made, and an earlier agreement.json in it is replaced.",
)
def agreement(paths: tuple[Path, ...], out: Path) -> None:
    """Compute agreement between annotators on exported CSV files.

    Reads an export folder, or any CSV files with the columns of an export (more columns are fine), and prints
    a table for each task. A figure that is undefined is shown as –, with the reason: never as 1. Of several
    answers by one annotator to one unit the newest counts. A `created_at` without offset is taken as UTC. The
    same files give the same `agreement.json`, byte for byte.

    \b
    Examples:
        citejury exports agreement export
        citejury exports agreement export/retrieval.csv --out figures
    """
    from exports.agreement_files import measure_files, write_agreement
    from exports.agreement_table import agreement_table

    measured = measure_files(paths)
    written = write_agreement(measured.agreement, out)
    for remark in measured.remarks:
        click.echo(remark, err=True)
    click.echo(agreement_table(measured.agreement))
    click.echo(
        f"All figures are in {written}. Next: talk over the labels with a low α, let more people answer, and", err=True
    )
    click.echo("bring their answers back with `citejury exports csv export`.", err=True)
