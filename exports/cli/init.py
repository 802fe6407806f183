"""The command `citejury init`."""

import shlex
from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
def init(folder: Path) -> None:
    """Start a project of your own in DIR: settings with comments, example narratives, stored answers to try them with.

    A folder that holds one of these files with another content is refused, and nothing is written.

    \b
    Example:
        citejury init my-project
    """
    from exports.start.init import start_project

    started = start_project(folder)
    for path in started.written:
        click.echo(path)
    if not started.written:
        click.echo("Everything was there already; nothing was changed.", err=True)
    click.echo(f"Next: cd {shlex.quote(str(folder))}; citejury doctor", err=True)
