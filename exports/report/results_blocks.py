"""What every output of results shows in the same form: a heading, short tables, and sentences that belong to them."""

from typing import NamedTuple

from pipeline.tables import Table


class Block(NamedTuple):
    """Tables that belong together, and what to know of them."""

    name: str
    """A word that names it in LaTeX."""
    title: str
    """Its heading."""
    tables: tuple[Table, ...]
    """The tables; the first row of each is its heading."""
    notes: tuple[str, ...]
    """Plain sentences."""
