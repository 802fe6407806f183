"""The commands `citejury pipeline …`: options in, one call of the library, what came of it on stdout and stderr.

A file a command, heavy imports within the function so that `--help` stays instant. Read `ask` first.
"""

from pathlib import Path

import click

from pipeline.cli.ask import ask
from pipeline.cli.parse import parse, reparse
from pipeline.cli.research import research
from pipeline.cli.runs import runs
from pipeline.cli.sources import sources
from pipeline.cli.verify import verify


@click.group()
def pipeline() -> None:
    """Ask providers for answers with citations, and turn them into records for the jury."""


@pipeline.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
def check(paths: tuple[Path, ...]) -> None:
    """Check CSV v2 files against every rule of the contract.

    PATH is a file, or a folder with such files, as `citejury pipeline ask` writes it. Each violation is a line on
    stdout: file, line of the file, column, what was found and what was wanted. Exit code 1 where there is any.

    \b
    Examples:
        citejury pipeline check answers
        citejury pipeline check answers/openai.csv
    """
    from pipeline.csv_v2.check import check_rows

    violations = 0
    files = [file for path in paths for file in _csv_files(path)]
    for file in files:
        counts = check_rows(file, click.echo)
        violations += counts.violations
        click.echo(
            f"{file}: rows {counts.rows:,}, answers {counts.answers:,}, violations {counts.violations:,}", err=True
        )
    if violations:
        click.echo("Next: mend the cells named above, then run the same check again.", err=True)
        raise click.exceptions.Exit(1)
    click.echo(
        f"Next: citejury pipeline sources {click.format_filename(files[0].parent)} --out records.jsonl", err=True
    )


def _csv_files(path: Path) -> list[Path]:
    """The file itself, or the CSV files of a folder, in order of their names.

    Raises:
        InputError: the folder holds none.
    """
    from pipeline.csv_v2.file import is_answers_file
    from pipeline.errors import InputError

    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if is_answers_file(file))
    if not files:
        raise InputError(
            f"The folder {str(path)!r} holds no CSV file. Name the one that `citejury pipeline ask` wrote."
        )
    return files


@pipeline.command()
@click.argument("v1", type=click.Path(path_type=Path), metavar="V1.csv")
@click.argument("v2", type=click.Path(path_type=Path), metavar="V2.csv")
def migrate(v1: Path, v2: Path) -> None:
    """Turn a CSV file of schema v1 into CSV v2.

    Citations are read from `raw_json` again by today's rules. Rows with an `error` go to a file beside V2.csv that is
    named like it and ends in `.errors.jsonl`. An existing V2.csv is never overwritten.

    \b
    Example:
        citejury pipeline migrate llm_runs/openai.csv answers/openai.csv
    """
    from pipeline.csv_v2.migrate import migrate_file

    migrated = migrate_file(v1, v2)
    for note in migrated.notes:
        click.echo(note, err=True)
    beside = f" (in {migrated.errors_path})" if migrated.errors else ""
    click.echo(f"{v2}: answers {migrated.answers:,}, errors {migrated.errors:,}{beside}", err=True)
    click.echo(f"Next: citejury pipeline check {v2}", err=True)


pipeline.add_command(ask)
pipeline.add_command(parse)
pipeline.add_command(reparse)
pipeline.add_command(research)
pipeline.add_command(runs)
pipeline.add_command(sources)
pipeline.add_command(verify)
