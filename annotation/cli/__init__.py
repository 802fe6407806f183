"""The group `annotation`: Argilla, its datasets, its people.

Options come in, one call of the library follows, and what came of it goes to stdout and stderr. Read `setup` first.
"""

import click

from annotation.cli.controls import controls, practice
from annotation.cli.judge import judge
from annotation.cli.push import push
from annotation.cli.serve import backup, install, restore, serve
from annotation.cli.setup import setup, share
from annotation.cli.status import reply, status
from annotation.cli.users import forget, users


@click.group()
def annotation() -> None:
    """Put answers before annotators in Argilla."""


for command in (
    *(setup, share, judge, push, practice, controls),
    *(status, reply, install, serve, users, forget, backup, restore),
):
    annotation.add_command(command)
