"""Options that several commands share, of this group and of `exports`."""

import click

TASK_NAMES = ("retrieval", "grounding", "generation")
"""What `annotation.labels` calls `TASKS`; its models would load pydantic for `--help`."""
tasks_option = click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.Choice(TASK_NAMES),
    help="Only this task; may be given more than once.",
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
