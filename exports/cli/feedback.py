"""The command `exports feedback`."""

import signal
from pathlib import Path

import click

from annotation.cli.options import api_url_option, decisions_option
from exports.cli.dataset import source_of
from pipeline.cli.options import SectionedCommand
from pipeline.terminal import interrupted_by


@click.command(cls=SectionedCommand, rare="--others --key-file --api-url")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--from",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Export folder or CSV file to read instead of Argilla; may be given more than once.",
)
@decisions_option
@click.option(
    "--others",
    "fewest",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="How many others have to have answered a question for their majority to count.",
)
@click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    metavar="NAME",
    help="Argilla workspace; the setting `workspace` if not given. May be given more than once.",
)
@api_url_option
def feedback(
    out: Path,
    paths: tuple[Path, ...],
    decisions: Path | None,
    fewest: int,
    workspaces: tuple[str, ...],
    api_url: str | None,
) -> None:
    """Write each annotator a page with her own differences from the others, and the rules concerned, into OUT.

    A difference is an answer that most others gave otherwise, or that adjudicators decided otherwise. The page is in
    her language and names nobody, neither people nor models. Controls, repeats and practice are never in it. An answer
    that only one other person gave otherwise is left out and counted: nobody can say who of the two is right.

    Responses are read from Argilla as by `exports csv`, or from export folders and CSV files named by --from.

    \b
    Examples:
        citejury exports feedback feedback --from export
        citejury exports feedback feedback --from export --decisions decisions.csv
    """
    from annotation.campaign.file import read_campaign
    from exports.feedback.write import write_feedback
    from pipeline.terminal import counted, printable

    if paths and (workspaces or api_url):
        raise click.UsageError("`--workspace` and `--api-url` say what to read from Argilla; leave `--from` out.")
    server = {"workspaces": workspaces, "key_file": None, "api_url": api_url}
    with interrupted_by(signal.SIGTERM), source_of(paths, out, **server) as source:  # type: ignore[arg-type]
        written = write_feedback(out, source, read_campaign(), decisions, fewest)
    for path in written.pages.values():
        click.echo(printable(str(path)))
    if written.feedback.too_few:
        left_out = counted(written.feedback.too_few, "answer")
        click.echo(
            f"Left out: {left_out} that differ from those of fewer than {fewest} others. Have them decided with "
            "`citejury exports adjudicate`.",
            err=True,
        )
    if written.alone:
        click.echo(f"No page, because nothing could be compared: {', '.join(map(printable, written.alone))}.", err=True)
    click.echo("Next: read a page yourself, then send each annotator hers and nobody else's.", err=True)
