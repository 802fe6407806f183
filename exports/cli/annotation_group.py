"""The group `annotation`, with the command that needs an export first."""

from annotation.cli import annotation
from exports.cli.teardown import teardown

annotation.add_command(teardown)

__all__ = ["annotation"]
