"""The command `citejury pipeline reparse`."""

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def reparse(run: Path) -> None:
    """Read the stored answers of the folder RUN again by today's rules, without asking anybody.

    Texts, citations and search results are derived anew from `answer_raw_json`; each answer that changed is a line on
    stdout. A file in which nothing changed is not touched.

    \b
    Example:
        citejury pipeline reparse answers
    """
    from pipeline.asking.reparse import reparse_run
    from pipeline.settings import read_settings

    done = reparse_run(run, read_settings().prices, click.echo)
    unreadable = f", {done.unreadable} cannot be read and stay as they are" if done.unreadable else ""
    click.echo(f"{click.format_filename(run)}: {done.answers} answers, {done.changed} changed{unreadable}", err=True)
    if done.citations_changed:
        click.echo("citations.jsonl changed", err=True)
    click.echo(f"Next: citejury pipeline sources {click.format_filename(run)} --out RECORDS.jsonl", err=True)
