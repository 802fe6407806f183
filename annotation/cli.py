"""The group `annotation`: Argilla, its datasets, its people."""

from typing import TYPE_CHECKING

import click

from annotation.cli_parts import named_again, print_table, round_option
from annotation.cli_push import push
from annotation.cli_serve import serve

if TYPE_CHECKING:
    from annotation.setup import NewUser


@click.group()
def annotation() -> None:
    """Put answers before annotators in Argilla."""


@annotation.command()
@click.option("--workspace", help="Argilla workspace to make; the setting `workspace` (citejury) if not given.")
@click.option("--locale", help="Language of questions and guidelines: en, de or ja; the setting `locale` if not given.")
@click.option(
    "--annotator", "annotators", multiple=True, help="User name of an annotator; may be given more than once."
)
@click.option(
    "--overlap", type=click.IntRange(1), help="How many annotators a record waits for; 1 for new datasets if not given."
)
@round_option
@click.option("--api-url", help="Address of Argilla; ARGILLA_API_URL if not given.")
def setup(
    workspace: str | None,
    locale: str | None,
    annotators: tuple[str, ...],
    overlap: int | None,
    round_name: str,
    api_url: str | None,
) -> None:
    """Make the workspace, its three datasets and its annotators in Argilla, or find that they are there.

    Each round of annotation, such as a calibration before production, has three datasets of its own. Running it again
    changes nothing, and finishes what was interrupted. Nothing is ever deleted. New annotators get a password, which is
    printed once and kept nowhere. The API key comes from ARGILLA_API_KEY; it must be an owner's.

    \b
    Examples:
        citejury annotation setup --locale de --annotator ana --annotator ben --overlap 2
        citejury annotation setup --round calibration --overlap 3
    """
    from annotation.client import open_argilla
    from annotation.setup import set_up
    from pipeline.settings import read_settings

    settings = read_settings(workspace=workspace, locale=locale, api_url=api_url)
    with open_argilla(settings) as argilla:
        report = set_up(
            argilla, settings.workspace, settings.locale, annotators, overlap, show_password, round_name=round_name
        )
    print_table([("what", "name", "done", "note"), *report.steps])
    click.echo("Set up." if report.changed else "Everything was there already; nothing was changed.", err=True)
    click.echo(f"Next: citejury annotation push RECORDS.jsonl{named_again(workspace, round_name)}", err=True)


def show_password(user: "NewUser") -> None:
    """Print a new annotator's password; this is the only time that anybody sees it."""
    click.echo(f"Annotator {user.username} has the password {user.password} (shown only now)")


annotation.add_command(push)
annotation.add_command(serve)
