"""The group `annotation`: Argilla, its datasets, its people."""

import click


@click.group()
def annotation() -> None:
    """Put answers before annotators in Argilla."""
