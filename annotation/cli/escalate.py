"""The command `escalate`: one annotator more for what annotators are split on."""

from collections import Counter
from typing import TYPE_CHECKING

import click

from annotation.cli.options import api_url_option, rounds_option, tasks_option, workspaces_option
from pipeline.cli.options import SectionedCommand
from pipeline.tables import Table
from pipeline.terminal import counted

if TYPE_CHECKING:
    from annotation.labels import TaskName


@click.command(cls=SectionedCommand, rare="--again --api-url")
@workspaces_option
@tasks_option
@rounds_option
@click.option("--dry-run", is_flag=True, help="Say what would be escalated, and change nothing.")
@click.option(
    "--again", is_flag=True, help="Also units that were escalated before, have that answer too and are still split."
)
@api_url_option
def escalate(
    workspaces: tuple[str, ...],
    tasks: "tuple[TaskName, ...]",
    rounds: tuple[str, ...],
    dry_run: bool,
    again: bool,
    api_url: str | None,
) -> None:
    """Give units on which annotators are split to one annotator more, before anybody adjudicates.

    A unit is split when it has all the submissions that it waits for and they differ in a label. Somebody who has not
    answered it gets it through her ordinary queue, and nothing tells her that it is split. Running it again changes
    nothing. It works with citejury's own server only. The API key comes from ARGILLA_API_KEY; it must be an owner's, or
    that of an admin of the workspace.

    \b
    Examples:
        citejury annotation escalate --dry-run
        citejury annotation escalate --task grounding --round production
    """
    from annotation.campaign.file import read_campaign
    from annotation.campaign.standing import standing_workspaces
    from annotation.client import open_argilla
    from annotation.status.escalation import escalate as escalate_split_units
    from pipeline.settings import read_settings

    settings = read_settings(api_url=api_url)
    campaign = read_campaign()
    languages = (
        {each.name: () if each.role == "adjudicator" else campaign.locales_of(each) for each in campaign.annotators}
        if campaign
        else {}
    )
    with open_argilla(settings) as argilla:
        found = escalate_split_units(
            argilla,
            workspaces or standing_workspaces(argilla, campaign, settings.workspace),
            tasks=tasks,
            rounds=rounds,
            languages=languages,
            again=again,
            dry_run=dry_run,
        )
    rows = [
        (f"{each.workspace}/{each.dataset}", each.split, each.escalated, each.before, each.nobody_left)
        for each in found
        if each.split
    ]
    if rows:
        head = ("dataset", "split", "would go to one more" if dry_run else "to one more", "before", "nobody left")
        click.echo(Table([head, *rows], left=1).terminal())
    takers = sum((Counter(each.takers) for each in found), Counter[str]())
    if takers:
        click.echo("")
        click.echo(Table([("who can take them", "units"), *sorted(takers.items())], left=1).terminal())
    escalated = sum(each.escalated for each in found)
    if not escalated:
        click.echo(
            "No unit is escalated: none with all its submissions is split that was not escalated before.", err=True
        )
    else:
        units = "1 unit waits" if escalated == 1 else f"{escalated} units wait"
        click.echo(f"{units} for one submission more{' if run without `--dry-run`' if dry_run else ''}.", err=True)
    stuck = sum(each.nobody_left for each in found)
    if stuck:
        click.echo(
            f"Split, with nobody left who could take them: {counted(stuck, 'unit')}. They are for adjudicators: "
            "citejury exports adjudicate push EXPORT --blind",
            err=True,
        )
    click.echo(
        "Next: citejury annotation escalate" if dry_run and escalated else "Next: citejury annotation status", err=True
    )
