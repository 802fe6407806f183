"""The group `annotation`: Argilla, its datasets, its people."""

import click

from annotation.cli_backup import backup, restore
from annotation.cli_judge import judge
from annotation.cli_push import push
from annotation.cli_serve import serve
from annotation.cli_setup import setup
from annotation.cli_share import share
from annotation.cli_status import status
from annotation.cli_users import users


@click.group()
def annotation() -> None:
    """Put answers before annotators in Argilla."""


annotation.add_command(setup)
annotation.add_command(share)
annotation.add_command(judge)
annotation.add_command(push)
annotation.add_command(status)
annotation.add_command(serve)
annotation.add_command(users)
annotation.add_command(backup)
annotation.add_command(restore)
