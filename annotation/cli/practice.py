"""The group `practice`: how far each person is in the round of known cases, and opening the rest without it."""

from typing import TYPE_CHECKING

import click

from annotation.cli.options import TASK_NAMES, api_url_option
from pipeline.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from annotation.campaign.datasets import JuryDataset
    from annotation.client import Argilla
    from pipeline.settings import Settings

_workspace_option = click.option("--workspace", help="Argilla workspace; the setting `workspace` if not given.")


@click.group()
def practice() -> None:
    """Look after the practice that comes before production; works with citejury's own server only."""


@practice.command("show")
@_workspace_option
@api_url_option
def show(workspace: str | None, api_url: str | None) -> None:
    """Print who has passed which practice, and how far the others are.

    A task and language of which somebody has not passed the practice stays closed to her. The API key comes from
    ARGILLA_API_KEY; it must be an owner's, or that of an admin of the workspace.

    \b
    Example:
        citejury annotation practice show
    """
    from annotation.client import open_argilla
    from annotation.practice.round import standings_of
    from pipeline.settings import read_settings
    from pipeline.terminal import printable

    settings = read_settings(workspace=workspace, api_url=api_url)
    rows = []
    with open_argilla(settings) as argilla:
        for dataset in _practices(argilla, settings):
            for each in standings_of(argilla, dataset):
                right = f"{each['right']} of {each['known']}, {each['wanted']} wanted"
                done = f"{each['answered']} of {each['cases']}"
                name = printable(each["username"])
                rows.append((dataset.task, dataset.locale, name, done, right, str(each["attempts"] + 1), _state(each)))
    click.echo(Table([("task", "language", "user", "cases", "answers right", "try", "open"), *rows]).terminal())
    closed = any(row[-1] == "no" for row in rows)
    click.echo(
        "Next: citejury annotation practice open NAME" if closed else "Next: citejury annotation status", err=True
    )


@practice.command("open")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--task", "tasks", multiple=True, type=click.Choice(TASK_NAMES), help="Only this task; all if not given.")
@click.option("--locale", help="Only the practice in this language; all if not given.")
@_workspace_option
@api_url_option
def open_list(
    names: tuple[str, ...], tasks: tuple[str, ...], locale: str | None, workspace: str | None, api_url: str | None
) -> None:
    """Open production to people who have not passed its practice.

    What they answered there stays. The API key comes from ARGILLA_API_KEY; it must be an owner's.

    \b
    Example:
        citejury annotation practice open anna --task grounding
    """
    from annotation.campaign.people import find_user
    from annotation.client import open_argilla
    from annotation.practice.round import open_for
    from pipeline.errors import NotFoundError
    from pipeline.settings import read_settings

    settings = read_settings(workspace=workspace, api_url=api_url)
    with open_argilla(settings) as argilla:
        users = [find_user(argilla, name) for name in names]
        chosen = [
            dataset
            for dataset in _practices(argilla, settings)
            if (not tasks or dataset.task in tasks) and locale in (None, dataset.locale)
        ]
        if not chosen:
            raise NotFoundError("There is no practice of that task and language. Leave `--task` or `--locale` out.")
        for dataset in chosen:
            for user in users:
                done = "opened" if open_for(argilla, dataset, user.id) else "was open already"
                click.echo(f"{dataset.task} ({dataset.locale}) {done} to {user.name}", err=True)
    click.echo("Next: citejury annotation practice show", err=True)


def _practices(argilla: "Argilla", settings: "Settings") -> "Iterator[JuryDataset]":
    """The datasets of practice of the campaign, or of the workspace.

    Raises:
        NotFoundError: there is none.
    """
    from annotation.campaign.file import read_campaign
    from annotation.campaign.standing import standing_workspaces
    from annotation.practice.round import practice_datasets
    from pipeline.errors import NotFoundError

    known = argilla.workspaces()
    named = standing_workspaces(argilla, read_campaign(), settings.workspace)
    found = practice_datasets(argilla, [name for name in named if name in known])
    if not found:
        raise NotFoundError(
            f"There is no practice in the workspace {settings.workspace!r}. Add `[campaign.practice]` to citejury.toml "
            "and run `citejury annotation setup`."
        )
    yield from found


def _state(standing: dict[str, object]) -> str:
    """Whether the rest is open to her, in a word or two."""
    if standing["opened"]:
        return "by the lead"
    return "yes" if standing["opens"] else "no"
