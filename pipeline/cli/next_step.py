"""The last line of a command, which names the next one."""

import click

STUDY = "study"
"""What click's contexts hold as their object where `study run` runs the command."""


def tell_next(step: str, done: str = "") -> None:
    """Print on stderr what was done and what comes next; the latter not inside `study run`, which says its own."""
    ctx = click.get_current_context(silent=True)
    following = "" if ctx and ctx.obj == STUDY else f"Next: {step}"
    if done or following:
        click.echo(" ".join(filter(None, (done, following))), err=True)
