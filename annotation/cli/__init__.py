"""The group `annotation`: Argilla, its datasets, its people.

Options come in, one call of the library follows, and what came of it goes to stdout and stderr. Read `setup` first.
"""

import click

from annotation.cli.controls import controls, practice
from annotation.cli.judge import judge
from annotation.cli.plan import plan
from annotation.cli.push import push
from annotation.cli.serve import backup, restore, serve
from annotation.cli.setup import setup, share
from annotation.cli.status import escalate, reply, status
from annotation.cli.users import users


@click.group()
def annotation() -> None:
    """Put answers before annotators in Argilla."""


annotation.add_command(setup)
annotation.add_command(share)
annotation.add_command(judge)
annotation.add_command(plan)
annotation.add_command(push)
annotation.add_command(practice)
annotation.add_command(controls)
annotation.add_command(status)
annotation.add_command(escalate)
annotation.add_command(reply)
annotation.add_command(serve)
annotation.add_command(users)
annotation.add_command(backup)
annotation.add_command(restore)
