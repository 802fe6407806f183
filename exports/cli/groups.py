"""The groups `exports` and `annotation`; `annotation teardown` is added here, because it exports first."""

import click

from annotation.cli import annotation
from exports.cli.adjudicate import adjudicate
from exports.cli.agreement import agreement
from exports.cli.csv import csv_command
from exports.cli.dataset import dataset
from exports.cli.feedback import feedback
from exports.cli.history import history
from exports.cli.results import results
from exports.cli.teardown import teardown

__all__ = ["annotation", "exports"]


@click.group()
def exports() -> None:
    """Bring responses back as CSV files and datasets; say what the jury found and how far it agrees."""


for command in (csv_command, history, dataset, results, agreement, adjudicate, feedback):
    exports.add_command(command)
annotation.add_command(teardown)
