"""The group `exports`."""

import click

from exports.cli_adjudicate import adjudicate
from exports.cli_agreement import agreement
from exports.cli_csv import csv_command
from exports.cli_dataset import dataset


@click.group()
def exports() -> None:
    """Bring responses back as CSV files and datasets, and measure agreement."""


exports.add_command(csv_command)
exports.add_command(dataset)
exports.add_command(agreement)
exports.add_command(adjudicate)
