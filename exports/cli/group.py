"""The group `exports`."""

import click

from exports.cli.adjudicate import adjudicate
from exports.cli.agreement import agreement
from exports.cli.csv import csv_command
from exports.cli.dataset import dataset


@click.group()
def exports() -> None:
    """Bring responses back as CSV files and datasets, and measure agreement."""


exports.add_command(csv_command)
exports.add_command(dataset)
exports.add_command(agreement)
exports.add_command(adjudicate)
