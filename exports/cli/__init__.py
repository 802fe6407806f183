"""The root command `citejury`: words of a person in, plain lines and an exit code out.

A command reads its options, calls one function of a folder below, and says what came of it. This module has the root
with its error boundary; `groups` the groups `exports` and `annotation`.
"""

import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

import click

from pipeline.core.errors import CitejuryError
from pipeline.core.sentences import packaged_table
from pipeline.core.terminal import printable


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
    _Command(
        "exports.cli.study", "study", "Carry a study from a file of narratives to its report: once, or every month."
    ),
)


FORMER: dict[str, str] = packaged_table(__file__, "former.toml")
"""What takes the place of commands that are gone."""

# click names the nearest command of the same group only, and before 8.4 none.
_NO_COMMAND = re.compile(r"No such command '(.+)'")
_SUGGESTIONS = 3


class _ErrorBoundary(click.Group):
    """The one place that turns the project's errors into output: one plain line on stderr and exit 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            unknown = _NO_COMMAND.match(error.message)
            if unknown is None or error.ctx is None:
                raise
            raise click.UsageError(_unknown_command(unknown[1], ctx, error.ctx), error.ctx) from error
        except CitejuryError as error:
            if ctx.params["debug"]:
                raise
            raise plain_error(error) from error
        except click.Abort as error:
            from pipeline.cli.options import STUDY

            if ctx.obj == STUDY or not isinstance(error.__context__, EOFError):
                raise
            click.echo(err=True)  # behind the question
            raise click.ClickException(
                "Nobody is here to answer. Give the command in a terminal, or with the option that answers; `--help` "
                "names it."
            ) from error
        except OSError as error:
            if ctx.params["debug"] or error.errno == errno.EPIPE:  # click ends quietly when nobody reads on
                raise
            _give_up_unwritable_output()
            place = f"`{error.filename}`" if error.filename else "A file or the output"
            raise click.ClickException(f"{place} cannot be used: {error.strerror or error}.") from error


def _give_up_unwritable_output() -> None:
    """Let go of what stdout cannot take: at its end Python would try once more, complain, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def plain_error(error: CitejuryError) -> click.ClickException:
    """The error as a command shows it: names of people and of files are in it, and act on no terminal."""
    return click.ClickException("\n".join(map(printable, str(error).split("\n"))))


def _unknown_command(name: str, root: click.Context, here: click.Context) -> str:
    """The sentences about a command that is not there: those of its name elsewhere, else those of a name like it."""
    from difflib import get_close_matches

    inside = tuple(here.command_path.split()[1:])
    paths = [path for path in _command_paths(root) if path]
    meant = sorted((path for path in paths if path[-1] == name), key=len)
    if not meant:
        near = get_close_matches(name, {path[-1] for path in paths}, n=_SUGGESTIONS)
        meant = sorted(
            (path for path in paths if path[-1] in near),
            key=lambda path: (path[:-1] != inside, near.index(path[-1]), path),
        )
    said = " or ".join(f"`{' '.join((root.info_name or 'citejury', *path))}`" for path in meant[:_SUGGESTIONS])
    hint = f"Did you mean {said}?" if said else f"`{here.command_path} --help` lists those that there are."
    return f"There is no command {name!r} in `{here.command_path}`. {hint}"


def _command_paths(ctx: click.Context, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, name)
            if command and not command.hidden:
                yield from _command_paths(click.Context(command, parent=ctx, info_name=name), (*path, name))


class LazyRoot(_ErrorBoundary):
    """The root command: each command is imported when it is asked for, so that the help comes at once.

    Source: click's documentation, "Complex Applications", lazily loading subcommands.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        words = " ".join((*args, ""))
        if former := next((each for each in FORMER if words.startswith(f"{each} ")), ""):
            raise click.UsageError(f"`{former}` is gone: {FORMER[former]}.")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*(lazy.name for lazy in COMMANDS), *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for lazy in COMMANDS:
            if lazy.name == cmd_name and cmd_name not in self.commands:
                self.add_command(getattr(importlib.import_module(lazy.module), lazy.name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(lazy.name, lazy.summary) for lazy in COMMANDS])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"citejury {version('citejury')}")
    for package in ("pipeline", "annotation", "exports"):
        click.echo(f"{package}: {importlib.import_module(package).__path__[0]}")
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


def read_labels(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    from annotation.argilla.labels import LABELS

    known = [label for labels in LABELS.values() for label in labels]
    for value in values:
        if value not in known:
            raise click.BadParameter(f"{value!r} is no label. The labels are {', '.join(known)}.", ctx, param)
    return values
