"""What several commands share, of this group and of `exports`: options, and the server that they name."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from annotation.argilla.client import Argilla
    from annotation.campaign.file import Campaign
    from pipeline.settings import Settings

TASK_NAMES = ("retrieval", "grounding", "generation")
# What `annotation.argilla.labels` calls `TASKS`; its models would load pydantic for `--help`.
tasks_option = click.option(
    "--task", "tasks", multiple=True, type=click.Choice(TASK_NAMES), help="Only this task; may be given more than once."
)
workspace_option = click.option(
    "--workspace", help="Argilla workspace; the setting `workspace` (citejury) if not given."
)
workspaces_option = click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    metavar="NAME",
    help="Argilla workspace; those of the campaign in citejury.toml, or the setting `workspace`, if not given. May be "
    "given more than once.",
)
api_url_option = click.option("--api-url", help="Address of Argilla; ARGILLA_API_URL if not given.")
rounds_option = click.option(
    "--round",
    "rounds",
    multiple=True,
    metavar="NAME",
    help="Only this round of annotation, such as calibration; may be given more than once.",
)
annotators_option = click.option(
    "--annotator",
    "annotators",
    multiple=True,
    metavar="NAME",
    help="Only responses of this annotator, by user name or user id; may be given more than once.",
)
anonymized_option = click.option(
    "--anonymize", "anonymized", is_flag=True, help="Write annotator-01, … instead of annotators' names."
)
spreadsheet_option = click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="Put ' before cells that a spreadsheet takes for formulas, and a BOM at the start. This changes texts.",
)
decisions_option = click.option(
    "--decisions",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A decisions.csv of adjudicators; their decisions come before all votes.",
)


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
