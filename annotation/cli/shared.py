"""What commands of the group share: the option `--round`, tables, and options that the next command needs too."""

import shlex
from collections.abc import Sequence

import click

round_option = click.option(
    "--round",
    "round_name",
    default="production",
    metavar="NAME",
    help="Round of annotation, such as calibration; production if not given.",
)


def named_again(workspace: str | None, round_name: str = "production") -> str:
    """The options that the next command needs as well; empty where workspace and round are those without options."""
    words = [
        *(["--workspace", workspace] if workspace else []),
        *(["--round", round_name] * (round_name != "production")),
    ]
    return f" {shlex.join(words)}" if words else ""


def print_table(rows: Sequence[Sequence[object]]) -> None:
    """Print the rows on stdout, their columns aligned; the first row is the heading."""
    from rich.cells import cell_len

    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        filled = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(filled).rstrip())
