"""The group `pipeline`: questions to providers, their answers as CSV v2, canonical records."""

import click


@click.group()
def pipeline() -> None:
    """Ask providers for answers with citations, and turn them into records for the jury."""
