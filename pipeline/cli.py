"""The group `pipeline`: questions to providers, their answers as CSV v2, canonical records."""

from pathlib import Path

import click

from pipeline.cli_ask import ask, parse
from pipeline.cli_sources import sources


@click.group()
def pipeline() -> None:
    """Ask providers for answers with citations, and turn them into records for the jury."""


@pipeline.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.csv…")
def check(files: tuple[Path, ...]) -> None:
    """Check CSV v2 files against every rule of the contract.

    Each violation is a line on stdout: file, line of the file, column, what was found and what was wanted. Exit code 1
    where there is any.

    \b
    Example:
        citejury pipeline check answers/*.csv
    """
    from pipeline.check import check_rows

    violations = 0
    for file in files:
        counts = check_rows(file, click.echo)
        violations += counts.violations
        click.echo(
            f"{file}: rows {counts.rows:,}, answers {counts.answers:,}, violations {counts.violations:,}", err=True
        )
    if violations:
        click.echo("Next: mend the cells named above, then run the same check again.", err=True)
        raise click.exceptions.Exit(1)
    click.echo(f"Next: citejury pipeline sources {files[0].parent} --out records.jsonl", err=True)


pipeline.add_command(ask)
pipeline.add_command(parse)
pipeline.add_command(sources)
