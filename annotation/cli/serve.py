"""The commands of the embedded server: `serve`, `backup` and `restore`."""

import os
import re
import shlex
import shutil
import sys
from datetime import date, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from annotation.cli.options import FILE, FOLDER, OLD_FILE, flag, preset
from pipeline.cli.options import SectionedCommand, log
from pipeline.core.errors import ServerStartError
from pipeline.core.sentences import sentences
from pipeline.core.terminal import ProgressBars

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

_say = sentences(__file__)

_home = partial(preset, "--home", type=FOLDER, default=Path("citejury-home"))
_home_option = _home(help="Home of the server, as in `citejury annotation serve`.")
_DEFAULT_PORT = 6900


class _Interval(click.ParamType[timedelta]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        read = re.fullmatch(r"([0-9]{1,4})([mhd])", value.strip())
        interval = timedelta(minutes=int(read[1]) * {"m": 1, "h": 60, "d": 24 * 60}[read[2]]) if read else timedelta(0)
        if interval < timedelta(minutes=10):
            self.fail(f"{value!r} should be a number and m, h or d, such as 6h, and no less than 10m.", param, ctx)
        return interval


@click.command(cls=SectionedCommand, rare="--host --hold-minutes --keep --backup-to")
@_home(help="Folder that keeps the server's database and secrets.")
@preset("--host", default="127.0.0.1", help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), help=_say("help_port"))
@flag("--behind-tls", help=_say("help_behind_tls"))
@preset("--hold-minutes", type=click.IntRange(1, 24 * 60), default=15, metavar="N", help=_say("help_hold_minutes"))
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="NAME", help=_say("help_allow_host"))
@click.option("--backup-every", type=_Interval(), metavar="TIME", help=_say("help_backup_every"))
@click.option("--keep", type=click.IntRange(1, 1000), metavar="N", help=_say("help_keep"))
@click.option("--backup-to", type=FOLDER, metavar="FOLDER", help=_say("help_backup_to"))
def serve(
    home: Path,
    host: str,
    port: int | None,
    behind_tls: bool,
    hold_minutes: int,
    allow_hosts: tuple[str, ...],
    backup_every: timedelta | None,
    keep: int | None,
    backup_to: Path | None,
) -> None:
    """Run Argilla on this machine, without Docker, until Ctrl-C.

    The first start makes the owner with a generated password and key; later starts find them and the data again. A home
    that an older citejury made is copied to its folder `backups` before it is brought up to date.

    While it runs, a line tells of each event that matters: logins, datasets, pushed records, the submissions of each
    minute, jobs, errors, slow requests, backups. The lines are kept in `logs/events.log` of the home.

    A database that is damaged is not served: the newest good backup is named instead. While the server runs, its
    database is looked through each night.

    Annotators on other machines need HTTPS, as the README's recipe has it: a proxy on this machine, and here
    `--behind-tls`. An address of the network without it is refused, because passwords would travel unencrypted.

    \b
    Examples:
        citejury annotation serve --home citejury-home
        citejury annotation serve --home citejury-home --behind-tls --allow-host annotate.example.org
        citejury annotation serve --home citejury-home --backup-every 6h --keep 14
    """
    check_has_server()
    from annotation.argilla.client import is_loopback
    from annotation.server.edge import clean_name
    from annotation.server.launch import ServerOptions
    from annotation.server.launch import serve as serve_in_foreground
    from annotation.server.upkeep import BackupsOnTime
    from pipeline.settings import read_settings

    if not behind_tls and not is_loopback(host):
        raise click.UsageError(_say("open", host=host))
    for name in allow_hosts:
        if clean_name(name) is None:
            raise click.UsageError(_say("no_host", name=name))
    if backup_every is None and (keep is not None or backup_to is not None):
        raise click.UsageError(_say("keep"))
    backups = None if backup_every is None else BackupsOnTime(backup_every, keep or 14, backup_to)
    serve_in_foreground(
        home,
        host,
        port_of(read_settings().api_url) if port is None else port,
        announce=partial(_tell_where_it_is, behind_tls=behind_tls),
        starting=tell_that_it_starts,
        options=ServerOptions(behind_tls, hold_minutes, allow_hosts, backups),
        show_event=EventPrinter().show,
        waiting=log,
    )
    log("Argilla has stopped; everything is kept for the next start.")


def check_has_server() -> None:
    """The server is one folder that an installation may leave out."""
    if find_spec("annotation.server") is None:
        raise ServerStartError(_say("no_server"))


def port_of(api_url: str) -> int:
    """The port that an address of this machine names, so that a server started here is found there; else 6900."""
    from annotation.argilla.client import is_loopback

    parts = urlsplit(api_url)
    try:
        return (parts.port or _DEFAULT_PORT) if is_loopback(parts.hostname or "") else _DEFAULT_PORT
    except ValueError:
        return _DEFAULT_PORT


def tell_that_it_starts() -> None:
    log("Starting Argilla; this takes a few seconds.")


def _tell_where_it_is(server: "ServerHandle", behind_tls: bool) -> None:
    here = Path(os.path.relpath(server.home))
    home = here if len(here.parts) < len(server.home.parts) else server.home
    env_file = shlex.quote(str(home / "env") if "/" in str(home / "env") else f"./{home / 'env'}")
    proxy = _say("proxy", url=server.url.removeprefix("http://"))
    is_study = Path("study.toml").is_file()
    following = "citejury study run, in another terminal" if is_study else _say("setup")
    files = {"secrets": home / "secrets.json", "env": home / "env", "env_file": env_file}
    log(_say("where", server=server, proxy=proxy if behind_tls else "", following=following, **files))


class EventPrinter:
    def __init__(self) -> None:
        self.day: date = datetime.now().astimezone().date()
        self.width = max(40, shutil.get_terminal_size().columns) if sys.stderr.isatty() else None

    def show(self, line: str) -> None:
        written, _, text = line.partition(" ")
        try:
            moment = datetime.fromisoformat(written).astimezone()
        except ValueError:  # cut off by a full disk
            log(line)
            return
        if moment.date() != self.day:
            self.day = moment.date()
            log(f"{self.day:%Y-%m-%d}")
        shown = f"{moment:%H:%M:%S} {text}"
        if self.width:
            shown = click.wrap_text(shown, self.width, subsequent_indent=" " * len("00:00:00 "))
        log(shown)


@click.command()
@click.argument("file", type=FILE)
@_home_option
def backup(file: Path, home: Path) -> None:
    """Write everything in a server's home to one FILE, also while the server runs and people submit.

    The answers are those of one moment. Only you can read FILE: it holds the owner's password and key too. An earlier
    backup of that name is replaced once the new one is whole. For a server on PostgreSQL use `pg_dump`.

    \b
    Example:
        citejury annotation backup kept/monday.zip --home citejury-home
    """
    check_has_server()
    from annotation.server.home.archive import write_backup
    from annotation.server.home.folder import EVENTS_FILE
    from annotation.server.home.logs import tell

    with ProgressBars() as bars:
        bars.report("Copying the database")
        manifest = write_backup(home, file)
    tell(f"backup written to {file.name}", home / EVENTS_FILE)
    click.echo(file)
    log(_say("backed_up", size=max(file.stat().st_size / 1e6, 0.1), versions=manifest.versions.described()))
    log(f"To bring it back: citejury annotation restore {shlex.quote(str(file))} --home NEW")


@click.command()
@click.argument("file", type=OLD_FILE)
@_home_option
def restore(file: Path, home: Path) -> None:
    """Make a server's home from the backup FILE; the home must be new or empty.

    Everything is held against its checksum before the home is there. The owner's password and key are those of the
    time of the backup.

    \b
    Example:
        citejury annotation restore kept/monday.zip --home citejury-again
    """
    check_has_server()
    from annotation.server.home.archive import restore_home

    manifest = restore_home(file, home)
    made = manifest.created_at.astimezone()
    click.echo(home)
    log(f"As of {made:%Y-%m-%d %H:%M}, of {manifest.versions.described()}; every checksum fits.")
    log(f"Next: citejury annotation serve --home {shlex.quote(str(home))}")


@click.command()
@click.option(
    "--wheels", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR", help=_say("help_wheels")
)
def install(wheels: Path | None) -> None:
    """Install Argilla's server beside citejury, for `serve` and `demo`.

    It gets a Python environment of its own, in which pip installs what this version of citejury was tested with, each
    package by its hash. Run it again after an update of citejury; what is there already is kept.

    \b
    Examples:
        citejury annotation install
        citejury annotation install --wheels wheelhouse
    """
    check_has_server()
    from annotation.server import environment

    if not environment.is_whole():
        log(f"Installing the server into {environment.folder()}.")
    with ProgressBars("packages") as bars:
        installed = environment.install(wheels, lambda name, begun, total: bars.report("Server", begun, total, name))
    if installed:
        click.echo(installed.folder)
        log(f"{installed.packages} packages, {installed.megabytes:.0f} MB, in {installed.seconds:.0f} s.")
    else:
        log("It is there already; nothing was changed.")
    log("Next: citejury annotation serve --home citejury-home")
