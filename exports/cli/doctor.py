"""The command `citejury doctor`."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from exports.start.doctor import Check

WIDTH = 80


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def doctor(as_json: bool) -> None:
    """Look at what is here and what is missing: Python, libraries, settings, keys, Argilla.

    Nothing is changed, and no key is shown. Where something needed is missing the exit code is 1; a `note` is about
    something that not everybody needs.

    \b
    Example:
        citejury doctor
    """
    from exports.start.doctor import examine

    checks = examine()
    if as_json:
        click.echo(json.dumps([check._asdict() for check in checks], ensure_ascii=False, indent=2))
    else:
        for line in table_lines(checks):
            click.echo(line)
    missing = sum(check.state == "missing" for check in checks)
    click.echo(f"Missing: {missing}." if missing else "Nothing that is needed is missing.", err=True)
    if missing:
        raise click.exceptions.Exit(1)


def table_lines(checks: "Sequence[Check]") -> Iterator[str]:
    """The lines of the table, none wider than a narrow terminal; what to do stands under what was found."""
    name_width, state_width = (
        max(len(text) for text in column) + 2 for column in zip(*(each[:2] for each in checks), strict=True)
    )
    indent = " " * (name_width + state_width)
    for check in checks:
        start = f"{check.name:<{name_width}}{check.state:<{state_width}}"
        for text, mark in ((check.found, start), (check.to_do, f"{indent}> ")):
            if text:
                yield textwrap.fill(
                    text,
                    WIDTH,
                    initial_indent=mark,
                    subsequent_indent=indent,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
