"""The commands `backup` and `restore`."""

import shlex
from pathlib import Path

import click

from pipeline.progress import ProgressBars

home_option = click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("citejury-home"),
    show_default=True,
    help="Home of the server, as in `citejury annotation serve`.",
)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@home_option
def backup(file: Path, home: Path) -> None:
    """Write everything in a server's home to one FILE, also while the server runs and people submit.

    The answers are those of one moment. Only you can read FILE: it holds the owner's password and key too. An earlier
    backup of that name is replaced once the new one is whole. For a server on PostgreSQL use `pg_dump`.

    \b
    Example:
        citejury annotation backup kept/monday.zip --home citejury-home
    """
    from annotation.embedded.backup.archive import write_backup
    from annotation.embedded.home.event_log import tell
    from annotation.embedded.home.folder import EVENTS_FILE

    with ProgressBars() as bars:
        bars.report("Copying the database")
        manifest = write_backup(home, file)
    tell(f"backup written to {file.name}", home / EVENTS_FILE)
    click.echo(file)
    click.echo(
        f"{in_megabytes(file.stat().st_size)}, checked; {manifest.versions.described()}. Keep it where this machine's "
        "disk cannot take it along.",
        err=True,
    )
    click.echo(f"To bring it back: citejury annotation restore {shlex.quote(str(file))} --home NEW", err=True)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@home_option
def restore(file: Path, home: Path) -> None:
    """Make a server's home from the backup FILE; the home must be new or empty.

    Everything is held against its checksum before the home is there. The owner's password and key are those of the
    time of the backup.

    \b
    Example:
        citejury annotation restore kept/monday.zip --home citejury-again
    """
    from annotation.embedded.backup.archive import restore_home

    manifest = restore_home(file, home)
    made = manifest.created_at.astimezone()
    click.echo(home)
    click.echo(f"As of {made:%Y-%m-%d %H:%M}, of {manifest.versions.described()}; every checksum fits.", err=True)
    click.echo(f"Next: citejury annotation serve --home {shlex.quote(str(home))}", err=True)


def in_megabytes(size: int) -> str:
    """A length in bytes as people say it."""
    return f"{max(size / 1e6, 0.1):.1f} MB"
