"""The commands `setup`, which makes what a campaign needs in Argilla, and `share`, a sheet for each annotator."""

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from annotation.cli.options import FILE, FOLDER, OLD_FILE, api_url_option, flag, named_server, several, workspace_option
from pipeline.cli.options import SectionedCommand, log, tell_next
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table
from pipeline.core.terminal import counted, printable

if TYPE_CHECKING:
    from annotation.argilla.client import Argilla
    from annotation.argilla.labels import Evidence
    from annotation.campaign.file import Campaign
    from annotation.campaign.people import NewUser, Stranger
    from annotation.campaign.setup_plan import Plan

_say = sentences(__file__)

_IN_CAMPAIGN = {"locale": "--locale", "annotators": "--annotator", "overlap": "--overlap", "evidence": "--evidence"}
_TO_DO = dict(created="create", finished="finish", updated="update", added="add", removed="take out", kept="keep")


@click.command(cls=SectionedCommand, rare="--round --evidence --new-version --api-url")
@click.option("--workspace", help="Argilla workspace to make; the setting `workspace` (citejury) if not given.")
@click.option("--locale", help="Language of questions and guidelines: en, de or ja; the setting `locale` if not given.")
@several("--annotator", "annotators", help="User name of an annotator")
@click.option("--overlap", type=click.IntRange(1), help=_say("help_overlap"))
@click.option("--round", "round_name", default="production", metavar="NAME", help=_say("help_round"))
@click.option("--evidence", type=click.Choice(("off", "optional", "required")), help=_say("help_evidence"))
@several("--new-version", "new_versions", metavar="TASK", help=_say("help_new_version"))
@click.option("--passwords", type=FILE, help="File that keeps the passwords of new annotators, readable for you only.")
@click.option("--remove-people/--keep-people", "removes", default=None, help=_say("help_people"))
@flag("--dry-run", help="Show the plan, and change nothing.")
@flag("--yes", help="Do not ask before a change that touches what has been answered.")
@api_url_option
@click.pass_context
def setup(
    ctx: click.Context,
    workspace: str | None,
    locale: str | None,
    annotators: tuple[str, ...],
    overlap: int | None,
    round_name: str,
    evidence: "Evidence | None",
    new_versions: tuple[str, ...],
    passwords: Path | None,
    removes: bool | None,
    dry_run: bool,
    yes: bool,
    api_url: str | None,
) -> None:
    """Make workspaces, datasets and annotators in Argilla, or change what differs there.

    What there is to be stands in the table `[campaign]` of citejury.toml; `citejury init` writes one to begin with.
    Without that table the options name a language, a round, an overlap and annotators; with it, `--round` makes a
    round beside the campaign's own, such as `pilot`.

    The plan is shown first. Titles, descriptions, guidelines and overlap are changed where they differ; you are asked
    first where responses are there already. Fields and questions cannot be changed in Argilla: `--new-version` makes a
    new dataset with the same records, and the old one stays with its responses. Running it again changes nothing, and
    finishes what was interrupted. Nothing is ever deleted. New annotators get a password, which is printed once unless
    `--passwords` names a file to keep it. Who is in the campaign's workspaces and not in citejury.toml is listed; you
    say whether they are taken out (what they answered stays) or kept. The API key comes from ARGILLA_API_KEY; it must
    be an owner's.

    \b
    Examples:
        citejury annotation setup --dry-run
        citejury annotation setup --passwords passwords.json
        citejury annotation setup --locale de --annotator ana --annotator ben --overlap 2
        citejury annotation setup --round pilot
    """
    from annotation.argilla.client import open_argilla
    from annotation.argilla.labels import OWN_TASKS
    from annotation.argilla.tasks import refuse_suggested
    from annotation.campaign.file import read_campaign
    from annotation.campaign.people import Passwords, remove_user
    from annotation.campaign.routing import as_it_stands
    from annotation.campaign.setup import apply_plan, plan_campaign, wanted_of, wanted_of_round
    from annotation.campaign.setup_plan import plan_setup
    from annotation.quality.practice import cases_of, prepare_practice
    from pipeline.settings import read_settings

    refuse_suggested(round_name)
    campaign = read_campaign()
    settings = read_settings(workspace=workspace, locale=locale, api_url=api_url)
    chosen = _chosen_tasks(new_versions, campaign.tasks if campaign else OWN_TASKS)
    beside = ctx.get_parameter_source("round_name") is not ParameterSource.DEFAULT
    if campaign:
        _refuse_options(ctx, {"annotators", "evidence"} if beside else set(_IN_CAMPAIGN))
    cases = cases_of(campaign) if campaign and not beside else ()  # what is wrong with them is said first
    kept = Passwords(passwords, _show_password)
    with open_argilla(settings) as argilla:
        campaign = as_it_stands(argilla, campaign, settings.workspace) if campaign else None
        if campaign and beside:
            wanted = wanted_of_round(campaign, settings.workspace, round_name, locale, overlap)
            plan = plan_setup(argilla, wanted, chosen)
        elif campaign:
            plan = plan_campaign(argilla, campaign, settings.workspace, chosen)
        else:
            wanted = wanted_of(settings.workspace, settings.locale, annotators, overlap, round_name, evidence)
            plan = plan_setup(argilla, wanted, chosen)
        _show_plan(plan, campaign)
        strangers = _strangers(argilla, campaign, settings.workspace)
        if campaign and not beside:
            _log_empty(argilla, plan)
        if dry_run:
            log("Nothing was changed (dry run).")
            return
        leaving = strangers if _may_go_on(plan, yes, bool(strangers), removes) else ()
        for each in leaving:
            remove_user(argilla, each.name, each.workspaces)
            log(f"{printable(each.name)} left: {', '.join(each.workspaces)}.")
        apply_plan(argilla, plan, kept)
        practice = prepare_practice(argilla, campaign, settings.workspace, cases) if campaign and cases else None
    if practice:
        said = f"Practice: {practice.new} cases new, {practice.updated} changed, {practice.unchanged} there already."
        if practice.left_over:
            said += f" {practice.left_over} earlier ones stay, and count as well: setup deletes nothing."
        log(said)
    log("Set up." if plan.changed or leaving else "Everything was there already; nothing was changed.")
    if passwords and passwords.exists():
        log(f"Passwords are in {passwords}, which only you can read.")
    tell_next(f"citejury annotation push RECORDS.jsonl{named_again(workspace, round_name)}")


def _may_go_on(plan: "Plan", yes: bool, strangers: bool, removes: bool | None) -> bool:
    """Ask what has to be asked before anything is changed; whether people who are not in the file are taken out."""
    if plan.affected and not yes:
        _log_lines("This touches what has been answered:", plan.affected)
        click.confirm("Go on? (`--yes` does not ask)", abort=True, err=True)
    if strangers and removes is None:
        answer = click.prompt("Take them out, or keep them?", type=click.Choice(("remove", "keep")), err=True)
        return bool(answer == "remove")
    return bool(removes)


def _chosen_tasks(named: Collection[str], known: Sequence[str]) -> list[str]:
    if unknown := [task for task in named if task not in known]:
        raise click.UsageError(f"`--new-version {unknown[0]}`: name one of the tasks here, {', '.join(known)}.")
    return [task for task in known if task in named]


def named_again(workspace: str | None, round_name: str = "production") -> str:
    """The options that the next command needs as well; empty where workspace and round are those without options."""
    words = ["--workspace", workspace] if workspace else []
    words += ["--round", round_name] if round_name != "production" else []
    return f" {shlex.join(words)}" if words else ""


def _refuse_options(ctx: click.Context, names: Collection[str]) -> None:
    used = {name for name in names if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if given := [option for name, option in _IN_CAMPAIGN.items() if name in used]:
        raise click.UsageError(_say("in_campaign", options=" and ".join(given)))


def _show_plan(plan: "Plan", campaign: "Campaign | None") -> None:
    rows = [("what", "name", "to do", "note")]
    for step in plan.steps:
        is_qualified = campaign and step.workspace and step.kind != "workspace"
        name = f"{step.workspace}/{step.name}" if is_qualified else step.name
        rows.append((step.kind, name, _TO_DO[step.done], step.note))
    click.echo(Table(rows).terminal())


def _strangers(argilla: "Argilla", campaign: "Campaign | None", workspace: str) -> "tuple[Stranger, ...]":
    """Who is there and not in the file, listed with what that means."""
    from annotation.campaign.people import find_strangers
    from annotation.campaign.routing import standing_workspaces

    workspaces = standing_workspaces(argilla, campaign, workspace)
    strangers = find_strangers(argilla, campaign, workspaces) if campaign else ()
    lines = [
        f"{printable(each.name)} ({each.role}) in {', '.join(each.workspaces)}: "
        f"{counted(each.waiting, 'unit')} wait{'s' * (each.waiting == 1)} for them"
        for each in strangers
    ]
    if lines:
        _log_lines("On the server and not in citejury.toml:", lines)
        log(_say("strangers"))
    return strangers


def _log_empty(argilla: "Argilla", plan: "Plan") -> None:
    """Say which languages and rounds have no work, once anything was pushed; a dataset that is not there is empty."""
    from annotation.argilla.tasks import PRACTICE, locale_of, round_of
    from annotation.campaign.datasets import count_records, empty_rounds
    from annotation.campaign.file import Place

    counts = {}
    for each in plan.datasets:
        described = {"metadata": each.definition.metadata}
        place = Place(each.workspace, locale_of(described), round_of(described))
        if place.round_name == PRACTICE:
            continue  # set-up itself fills it
        held = each.existing or each.earlier
        counts[place, each.definition.task] = count_records(argilla, str(held["id"])) if held else 0
    if lines := empty_rounds(counts):
        _log_lines("No work so far; sheets leave it out:", lines)


def _log_lines(heading: str, lines: Sequence[str]) -> None:
    log("\n  ".join([heading, *lines]))


def _show_password(user: "NewUser") -> None:
    click.echo(f"Annotator {user.username} has the password {user.password} (shown only now)")


@click.command()
@click.option("--out", "folder", required=True, type=FOLDER, help="Folder to write into.")
@click.option("--passwords", type=OLD_FILE, help=_say("share_passwords"))
@workspace_option
@click.option("--api-url", help="Address of Argilla as annotators reach it; ARGILLA_API_URL if not given.")
def share(folder: Path, passwords: Path | None, workspace: str | None, api_url: str | None) -> None:
    """Write a sheet for each annotator, to be sent or printed.

    A sheet names the address, the user name and the datasets in order of the work, in her language; the guideline
    pages lie beside it. Passwords are on it only with `--passwords`, and then only you can read the files. Who has
    which datasets stands in the table `[campaign]` of citejury.toml; without it, all annotators of the workspace get
    a sheet. The API key comes from ARGILLA_API_KEY.

    \b
    Example:
        citejury annotation share --out sheets --passwords passwords.json
    """
    from annotation.argilla.client import is_loopback
    from annotation.campaign.people import read_passwords
    from annotation.campaign.share import share_sheets

    known = read_passwords(passwords) if passwords else None
    with named_server(workspace, api_url) as (argilla, settings, campaign):
        written = share_sheets(argilla, settings.workspace, campaign, folder, known)
    for path in (*written.sheets, *written.guidelines):
        click.echo(path)
    if known is not None and written.without_password:
        log(f"No password is known of: {', '.join(written.without_password)}")
    if written.without_work:
        names = ", ".join(map(printable, written.without_work))
        log(f"No record is there yet for {names}; push first, then write the sheets again.")
    if is_loopback(urlsplit(settings.api_url).hostname or ""):
        log(fill(_say("loopback", api_url=settings.api_url), 80, break_on_hyphens=False))
    tell_next("send each annotator her sheet with the guideline pages of her language.")
