"""The command `citejury annotation serve`."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from annotation.embedded.launch import ServerHandle

LOOPBACK = ("127.", "localhost", "::1")


@click.command()
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("citejury-home"),
    show_default=True,
    help="Folder that keeps the server's database and secrets.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=6900, show_default=True, help="Port; 0 takes any free one."
)
def serve(home: Path, host: str, port: int) -> None:
    """Run Argilla on this machine, without Docker, until Ctrl-C.

    The first start makes the owner with a generated password and key; later starts find them and the data again.

    \b
    Example:
        citejury annotation serve --home citejury-home
    """
    from annotation.embedded.launch import serve as serve_in_foreground

    if not host.startswith(LOOPBACK):
        click.secho(
            f"Everybody who reaches {host} on the network can open the login page, and what is typed there travels "
            "unencrypted. Put a proxy with HTTPS in front.",
            fg="yellow",
            err=True,
        )
    serve_in_foreground(home, host, port, announce=tell_where_it_is, starting=tell_that_it_starts)
    click.echo("Argilla has stopped; everything is kept for the next start.", err=True)


def tell_that_it_starts() -> None:
    """Say why nothing happens for a while."""
    click.echo("Starting Argilla; this takes a few seconds.", err=True)


def tell_where_it_is(server: "ServerHandle") -> None:
    """Print the address, who the owner is, where her secrets are, and what to do next."""
    here = Path(os.path.relpath(server.home))
    home = here if len(here.parts) < len(server.home.parts) else server.home
    env_file = shlex.quote(str(home / "env") if "/" in str(home / "env") else f"./{home / 'env'}")
    click.echo(
        f"Argilla is at {server.url}\n"
        f"Owner:    {server.owner_username}\n"
        f"Password: `owner_password` in {home / 'secrets.json'}, which only you can read\n"
        f"API key:  in {home / 'env'}, which only you can read; put it into the environment of another terminal with\n"
        f"              set -a; . {env_file}; set +a\n"
        "Next:     citejury annotation setup\n"
        "Ctrl-C stops the server.",
        err=True,
    )
