"""Commands with many options: help in two sections, and which options go together."""

from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import augment_usage_errors


class SectionedCommand(click.Command):
    """A command whose help shows the options that are rarely needed in a section below the common ones.

    `rare` names them with their dashes, a blank between two. `check` raises a usage error where the values of all
    options, by name, do not go together; it looks at nothing else.
    """

    def __init__(
        self,
        name: str | None,
        rare: str = "",
        check: Callable[[Mapping[str, Any]], None] = lambda given: None,
        **attributes: Any,
    ) -> None:
        super().__init__(name, **attributes)
        self.rare = frozenset(rare.split())
        self.check = check

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line into the context.

        Raises:
            click.UsageError: a value cannot be used, or two of them not together.
        """
        rest = super().parse_args(ctx, args)
        with augment_usage_errors(ctx):
            self.check(ctx.params)
        return rest

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
