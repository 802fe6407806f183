"""The root command `citejury`: words of a person in, plain lines and an exit code out.

A command reads its options, calls one function of a folder below, and says what came of it. This module has the root
with its error boundary; `groups` the groups `exports` and `annotation`.
"""

import errno
import importlib
import io
import sys
from typing import NamedTuple

import click

from pipeline.errors import CitejuryError


class _Command(NamedTuple):
    """Where a command is, and its first sentence, which the help of the root shows without importing it."""

    module: str
    name: str
    summary: str


COMMANDS = (
    _Command("exports.cli.groups", "annotation", "Put answers before annotators in Argilla."),
    _Command("exports.cli.start", "demo", "Run the whole product once, on narratives and answers that come with it."),
    _Command("exports.cli.start", "doctor", "Look at what is here and what is missing."),
    _Command(
        "exports.cli.groups",
        "exports",
        "Bring responses back as CSV files and datasets; say what the jury found and how far it agrees.",
    ),
    _Command("exports.cli.start", "init", "Start a project of your own in DIR."),
    _Command("pipeline.cli", "pipeline", "Ask providers for answers with citations, and turn them into records."),
)


class _ErrorBoundary(click.Group):
    """The one place that turns the project's errors into output: one plain line on stderr and exit 1."""

    def invoke(self, ctx: click.Context) -> object:
        """What the command returns.

        Raises:
            click.ClickException: a command met an error of the project, or the system refused a file.
        """
        try:
            return super().invoke(ctx)
        except CitejuryError as error:
            if ctx.params["debug"]:
                raise
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if ctx.params["debug"] or error.errno == errno.EPIPE:  # click ends quietly when nobody reads on
                raise
            place = f"`{error.filename}`" if error.filename else "A file or the output"
            raise click.ClickException(f"{place} cannot be used: {error.strerror or error}.") from error


class LazyRoot(_ErrorBoundary):
    """The root command: each command is imported when it is asked for, so that the help comes at once.

    Source: click's documentation, "Complex Applications", lazily loading subcommands.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in order of the alphabet."""
        return sorted({*(lazy.name for lazy in COMMANDS), *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the name; None where there is none."""
        for lazy in COMMANDS:
            if lazy.name == cmd_name and cmd_name not in self.commands:
                self.add_command(getattr(importlib.import_module(lazy.module), lazy.name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names with their first sentences."""
        with formatter.section("Commands"):
            formatter.write_dl([(lazy.name, lazy.summary) for lazy in COMMANDS])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and the folders that the three packages were imported from."""
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    import annotation as annotation_package
    import exports as exports_package
    import pipeline as pipeline_package

    click.echo(f"citejury {version('citejury')}")
    for package in (pipeline_package, annotation_package, exports_package):
        click.echo(f"{package.__name__}: {package.__path__[0]}")
    ctx.exit()


@click.group(cls=LazyRoot, context_settings={"auto_envvar_prefix": "CITEJURY", "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Version and where it lives.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Put LLM answers and their citations before a jury of people, and see how far the jury agrees.

    \b
    Example, from nothing to an agreement table:
        citejury demo
    """
    # A terminal or a file may be of an encoding without α; a question mark is better than no table.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
