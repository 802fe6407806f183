"""What several commands share, of this group and of `exports`: options, and the server that they name."""

import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.core.errors import InputError
from pipeline.core.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from annotation.argilla.client import Argilla
    from annotation.campaign.file import Campaign
    from pipeline.settings import Settings

_say = sentences(__file__)

FILE = click.Path(dir_okay=False, path_type=Path)
OLD_FILE = click.Path(dir_okay=False, path_type=Path, exists=True)
FOLDER = click.Path(file_okay=False, path_type=Path)
flag = partial(click.option, is_flag=True)
preset = partial(click.option, show_default=True)
seed = partial(preset, "--seed", type=click.IntRange(0, 2**32 - 1), default=0)


def several(*names: str, **attributes: Any) -> "Callable[[click.decorators.FC], click.decorators.FC]":
    """An option that may be given more than once, as its help then says at the end."""
    told = str(attributes.pop("help"))
    told += " May be given more than once." if told.endswith(".") else "; may be given more than once."
    return click.option(*names, multiple=True, help=told, **attributes)


TASK_NAMES = ("retrieval", "grounding", "generation")
# What `annotation.argilla.labels` calls `TASKS`; its models would load pydantic for `--help`.
workspace_option = click.option("--workspace", help=_say("help_workspace"))
workspaces_option = several("--workspace", "workspaces", metavar="NAME", help=_say("help_workspaces"))
api_url_option = click.option("--api-url", help="Address of Argilla; ARGILLA_API_URL if not given.")
rounds_option = several("--round", "rounds", metavar="NAME", help="Only this round of annotation, such as calibration")
annotators_option = several("--annotator", "annotators", metavar="NAME", help=_say("help_annotator"))
anonymized_option = flag("--anonymize", "anonymized", help="Write annotator-01, … instead of annotators' names.")
spreadsheet_option = flag("--spreadsheet-safe", help=_say("help_spreadsheet"))
decisions_option = click.option("--decisions", type=OLD_FILE, help=_say("help_decisions"))


def confirm_by_name(name: str, yes: bool, prompt: str, nothing: str, what: str = "") -> None:
    """Let the name be typed before something that cannot be undone; `nothing` says that it was not done."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{nothing}: there is no terminal to ask at. Add `--yes` if you mean it.")
    typed = click.prompt(prompt, err=True, default="", show_default=False)
    if typed != name:
        raise InputError(f"{nothing}: {typed!r} is not {what}{name!r}.")


@contextmanager
def named_workspaces(
    workspaces: "Sequence[str]", api_url: str | None
) -> "Iterator[tuple[Argilla, Sequence[str], Campaign | None]]":
    """The connection, the workspaces that options name, else all of the campaign or that of the settings."""
    from annotation.campaign.routing import standing_workspaces

    with named_server(api_url=api_url) as (argilla, settings, campaign):
        yield argilla, workspaces or standing_workspaces(argilla, campaign, settings.workspace), campaign


@contextmanager
def named_server(
    workspace: str | None = None, api_url: str | None = None
) -> "Iterator[tuple[Argilla, Settings, Campaign | None]]":
    """The connection, the settings and the campaign that options, environment and citejury.toml name."""
    from annotation.argilla.client import open_argilla
    from annotation.campaign.file import read_campaign
    from pipeline.settings import read_settings

    settings, campaign = read_settings(workspace=workspace, api_url=api_url), read_campaign()
    with open_argilla(settings) as argilla:
        yield argilla, settings, campaign
