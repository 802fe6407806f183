"""The groups `exports` and `annotation`, each command in its place."""

import click

from annotation.cli import annotation
from exports.cli.adjudicate import adjudicate
from exports.cli.csv import csv_command, history
from exports.cli.dataset import dataset, feedback
from exports.cli.figures import agreement, results
from exports.cli.teardown import teardown

__all__ = ["annotation", "exports"]


@click.group()
def exports() -> None:
    """Bring responses back as CSV files and datasets; say what the jury found and how far it agrees."""


for command in (csv_command, history, dataset, results, agreement, adjudicate, feedback):
    exports.add_command(command)
annotation.add_command(teardown)
