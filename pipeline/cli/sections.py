"""Help in two sections, for commands with many options."""

from typing import Any

import click


class SectionedCommand(click.Command):
    """A command whose help shows the options that are rarely needed in a section below the common ones.

    `rare` names them with their dashes, a blank between two.
    """

    def __init__(self, name: str | None, rare: str = "", **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self.rare = frozenset(rare.split())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options, then the others."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Rarely needed": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and isinstance(param, click.Option):
                sections["Options" if self.rare.isdisjoint(param.opts) else "Rarely needed"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
