"""The root command `citejury` and its group `exports`."""

import errno
import io
import sys

import click

from annotation.cli import annotation
from exports.cli_adjudicate import adjudicate
from exports.cli_agreement import agreement
from exports.cli_csv import csv_command
from exports.cli_dataset import dataset
from exports.cli_demo import demo
from exports.cli_doctor import doctor
from exports.cli_init import init
from exports.cli_teardown import teardown
from pipeline.cli import pipeline
from pipeline.errors import CitejuryError


class ErrorBoundary(click.Group):
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


def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
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


@click.group(cls=ErrorBoundary, context_settings={"auto_envvar_prefix": "CITEJURY", "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
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


@main.group()
def exports() -> None:
    """Bring annotators' responses back as CSV files, and compute agreement on them."""


exports.add_command(csv_command)
exports.add_command(dataset)
exports.add_command(agreement)
exports.add_command(adjudicate)
main.add_command(demo)
main.add_command(init)
main.add_command(doctor)
main.add_command(pipeline)
annotation.add_command(teardown)
main.add_command(annotation)
