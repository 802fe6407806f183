"""What commands of the group share: the option `--round`, and options that the next command needs too."""

import shlex

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
