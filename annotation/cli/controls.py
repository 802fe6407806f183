"""The commands `controls` and `practice`: units whose answers are known, mixed among the others or practised before."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotation.cli import options
from pipeline.cli.options import SectionedCommand, log
from pipeline.core.errors import BadRowsError, InputError, NotFoundError
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table
from pipeline.core.terminal import ProgressBars, counted, printable

if TYPE_CHECKING:
    from annotation.argilla.client import Argilla
    from annotation.campaign.datasets import JuryDataset
    from annotation.campaign.file import Campaign
    from annotation.quality.control_files import KnownUnits
    from annotation.quality.control_push import ControlReport, RepeatReport

_say = sentences(__file__)

_workspace_option = click.option("--workspace", help="Argilla workspace; the setting `workspace` if not given.")


@click.command()
@_workspace_option
@options.api_url_option
def controls(workspace: str | None, api_url: str | None) -> None:
    """Show which units with known answers, and which repeats, the next push would mix into the annotators' work.

    `[campaign.controls]` of citejury.toml names them, and `annotation push` puts them there. `known` is a file with
    `record_uuid`, in retrieval `chunk_id`, and a column for each label whose answer is known; `records` has the records
    that it names, best ones that annotators do not get. Each control goes, under an id of its own, to all annotators of
    its language, at `rate`, and nobody can tell it from other records. Each label has both answers among its controls,
    at least a third each: what would be too many is not counted, and nothing of a label with one answer only.

    `repeats` is the share of what each person submitted that they get again once they have submitted `distance` units
    since; nobody else gets these. It takes citejury's own server.

    Exports leave controls and repeats out; `citejury annotation status` and the report of `citejury exports results`
    say how each annotator answers them. Keep the file from annotators. The API key comes from ARGILLA_API_KEY.

    \b
    Example:
        citejury annotation controls
    """
    with options.named_server(workspace, api_url) as (argilla, settings, campaign), ProgressBars("records") as bars:
        if campaign is None or campaign.controls is None:
            raise InputError("There are no controls: citejury.toml has no `[campaign.controls]`.")
        refused = put_controls(argilla, settings.workspace, campaign, known_units(campaign), bars, dry_run=True)
    log("Next: citejury annotation push RECORDS.jsonl")
    if refused:
        raise BadRowsError(f"Controls refused: {len(refused)}:", refused)


def known_units(campaign: "Campaign | None") -> "KnownUnits | None":
    """The units of the campaign's file of known answers; None where it names none."""
    from annotation.push.record_sources import read_source
    from annotation.quality.control_files import read_controls, records_path

    if campaign is None or campaign.controls is None or campaign.controls.known is None:
        return None
    path = Path(campaign.controls.known)
    beside = Path(campaign.controls.records) if campaign.controls.records else records_path(path)
    for key, named in (("known", path), ("records", beside)):
        if not named.is_file():
            raise InputError(f"`{key}` in `[campaign.controls]`: there is no file `{named}`.")
    problems: list[str] = []
    records = {record.record_uuid: record for record in read_source(beside, problems)}
    if problems:
        raise BadRowsError(f"Lines of `{beside}` that are no records: {len(problems)}; nothing was done:", problems)
    return read_controls(path, records)


def put_controls(
    argilla: "Argilla", home: str, campaign: "Campaign", held: "KnownUnits | None", bars: ProgressBars, *, dry_run: bool
) -> tuple[str, ...]:
    """Put the campaign's controls and repeats in, and say what became of them; a line for each that was refused."""
    from annotation.campaign.routing import standing_workspaces
    from annotation.quality.control_push import push_controls, push_repeats

    wanted = campaign.controls
    refused: tuple[str, ...] = ()
    if wanted is None:
        return refused
    if held:
        where = (argilla, home, campaign, held.units, wanted.rate)
        report = push_controls(*where, dry_run=dry_run, progress=bars.report)
        bars.clear()
        _tell_controls(report)
        log(f"Controls: {len(held.units):,}; not confirmed in the file and left out: {held.unconfirmed:,}.")
        refused = report.refused
    if wanted.repeats:
        names = standing_workspaces(argilla, campaign, home)
        size = (wanted.repeats, wanted.distance, wanted.rate)
        reports = push_repeats(argilla, names, *size, dry_run=dry_run, progress=bars.report)
        bars.clear()
        _tell_repeats(reports, argilla.usernames())
    log(f"About {wanted.rate:.0%} of each annotator's units are controls and repeats, as long as there are any.")
    return refused


def _tell_controls(report: "ControlReport") -> None:
    from annotation.quality.control_push import KINDS

    rows = [
        (task, place.locale, place.workspace, *(found.get(kind, 0) for kind in KINDS), report.people[place])
        for (place, task), found in report.counts.items()
    ]
    click.echo(Table([("controls", "language", "workspace", *KINDS, "annotators"), *rows], left=3).terminal())
    for found in report.balance.values():
        for line in found.dropped:
            log(f"Not counted: {printable(line)}.")
        if found.few:
            log("Too few to notice who always says the same to one label; five of each answer are needed:")
            for line in found.few:
                log(f"  {printable(line)}")
    if report.met_twice:
        log(_say("met_twice", controls=counted(report.met_twice, "control")))
    if report.is_stock:
        log(_say("stock"))


def _tell_repeats(reports: "list[RepeatReport]", usernames: "dict[str, str]") -> None:
    rows = [
        (printable(usernames.get(who, who)), each.dataset.name, each.new.get(who, 0), each.there.get(who, 0))
        for each in reports
        for who in sorted({*each.new, *each.there}, key=lambda who: usernames.get(who, who))
    ]
    if rows:
        click.echo(Table([("repeats", "dataset", "new", "there"), *rows], left=2).terminal())
    for each in reports:
        if each.idle:
            who = ", ".join(printable(usernames.get(user, user)) for user in each.idle)
            log(_say("idle", name=each.dataset.name, who=who))
    new = sum(sum(each.new.values()) for each in reports)
    log(f"Repeats: {counted(new, 'unit')} new{'' if new else '; nobody has submitted enough since'}.")


@click.command(cls=SectionedCommand, rare="--task --locale --workspace --api-url")
@options.several("--open", "names", metavar="NAME", help="Open production to this user, who has not passed")
@click.option(
    "--task", "tasks", multiple=True, type=click.Choice(options.TASK_NAMES), help="Only this task; all if not given."
)
@click.option("--locale", help="Only the practice in this language; all if not given.")
@_workspace_option
@options.api_url_option
def practice(
    names: tuple[str, ...], tasks: tuple[str, ...], locale: str | None, workspace: str | None, api_url: str | None
) -> None:
    """Print who has passed which practice, and how far the others are; works with citejury's own server only.

    A task and language is closed to people who have not passed its practice. `--open NAME` opens it to one of them;
    what they answered in practice stays. The API key comes from ARGILLA_API_KEY; it must be an owner's, or, to look
    only, that of an admin of the workspace.

    \b
    Examples:
        citejury annotation practice
        citejury annotation practice --open anna --task grounding
    """
    from annotation.campaign.people import find_user
    from annotation.quality.practice import below_marks, open_for, standings_of

    rows = []
    with options.named_server(workspace, api_url) as (argilla, settings, campaign):
        users = [find_user(argilla, name) for name in names]
        chosen = [
            dataset
            for dataset in _practices(argilla, campaign, settings.workspace)
            if (not tasks or dataset.task in tasks) and locale in (None, dataset.locale)
        ]
        if not chosen:
            raise NotFoundError("There is no practice of that task and language. Leave `--task` or `--locale` out.")
        for dataset in chosen:
            for user in users:
                done = "opened" if open_for(argilla, dataset, user.id) else "was open already"
                log(f"{dataset.task} ({dataset.locale}) {done} to {user.name}")
            for each in standings_of(argilla, dataset):
                right = f"{each['right']} of {each['known']}, {each['wanted']} wanted{below_marks(each)}"
                answered = f"{each['answered']} of {each['cases']}"
                is_open = "by the lead" if each["opened"] else "yes" if each["opens"] else "no"
                who = (dataset.task, dataset.locale, printable(each["username"]))
                rows.append((*who, answered, right, str(each["attempts"] + 1), is_open))
    click.echo(Table([("task", "language", "user", "cases", "answers right", "try", "open"), *rows]).terminal())
    closed = any(row[-1] == "no" for row in rows)
    log(f"Next: citejury annotation {'practice --open NAME' if closed else 'status'}")


def _practices(argilla: "Argilla", campaign: "Campaign | None", workspace: str) -> "tuple[JuryDataset, ...]":
    from annotation.campaign.routing import standing_workspaces
    from annotation.quality.practice import practice_datasets

    known = argilla.workspaces()
    named = standing_workspaces(argilla, campaign, workspace)
    found = practice_datasets(argilla, [name for name in named if name in known])
    if not found:
        raise NotFoundError(_say("no_practice", workspace=workspace))
    return found
