"""The command `status`: how far the annotators are."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotation.cli.options import api_url_option, rounds_option, workspaces_option

if TYPE_CHECKING:
    from collections.abc import Iterable


@click.command()
@workspaces_option
@rounds_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, with each half-done answer.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write everything as one HTML page, too; an earlier one is replaced.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 where something needs a look.")
@api_url_option
@click.pass_context
def status(
    ctx: click.Context,
    workspaces: tuple[str, ...],
    rounds: tuple[str, ...],
    as_json: bool,
    html: Path | None,
    strict: bool,
    api_url: str | None,
) -> None:
    """Show how far the annotators are: done, pending, pace, expected finish, and what needs a look.

    A record is done when as many different annotators have submitted it as its dataset waits for (`by`). `today` are
    the 24 hours before now, whatever the time zone; `/h` are records in an hour of one annotator's work, pauses above
    half an hour left out. The finish takes it that each day brings as much work as the last 24 hours, and that
    datasets with the same annotators are worked off in the order shown; all of it is finished with the last of them.
    `queue` are the records that wait for an annotator, `broken` her answers that break a rule between labels.
    Notes that begin with a question mark are questions to you.

    What needs a look is said at the end: answers too fast to have been read, many at once, nearly all the same or wrong
    on controls, empty rounds, records that nobody is left for. `--strict` makes that the exit code. No text is
    downloaded from `citejury annotation serve`; a stock Argilla sends all of them, which takes longer. The API key
    comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation status
        citejury annotation status --round calibration --html status.html
        citejury annotation status --json --strict
    """
    from datetime import UTC, datetime

    from annotation.campaign.file import read_campaign
    from annotation.campaign.standing import standing_workspaces
    from annotation.client import open_argilla
    from annotation.status.page import write_page
    from annotation.status.summary import read_status
    from annotation.status.text import status_lines
    from pipeline.settings import read_settings

    settings = read_settings(api_url=api_url)
    campaign = read_campaign()
    languages = {person.name: campaign.locales_of(person) for person in campaign.annotators} if campaign else {}
    told: list[None] = []

    def tell_once() -> None:
        """Say why it takes longer, once."""
        if not told:
            told.append(None)
            click.echo("This Argilla sends all texts along, so it takes longer.", err=True)

    with open_argilla(settings) as argilla:
        found = read_status(
            argilla,
            workspaces or standing_workspaces(argilla, campaign, settings.workspace),
            datetime.now(UTC),
            rounds=rounds,
            languages=languages,
            slowly=tell_once,
        )
    if html is not None:
        write_page(html, found)
        click.echo(f"Written to {html}.", err=True)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        for line in status_lines(found):
            click.echo(line)
    datasets = found.datasets
    step = _next_step([each.records + each.apart for each in datasets], [each.done for each in datasets])
    click.echo(f"Next: citejury {step}", err=True)
    if strict and found.notices:
        ctx.exit(1)


def _next_step(records: "Iterable[int]", answers: "Iterable[int]") -> str:
    """The command that brings what the campaign lacks first: records, answers, or their export."""
    if not any(records):
        return "annotation push RECORDS.jsonl"
    if not any(answers):
        return "annotation share --out sheets"
    return "exports csv export"
