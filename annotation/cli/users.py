"""The commands `users`, for people whom citejury.toml does not name, and `forget`, which takes a name off for good."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from annotation.cli.options import FILE, api_url_option, confirm_by_name, flag, named_server, several
from pipeline.cli.options import SectionedCommand, log
from pipeline.core.errors import InputError
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table
from pipeline.core.terminal import printable

if TYPE_CHECKING:
    from annotation.argilla.client import Argilla
    from annotation.campaign.file import Annotator, Campaign, Member
    from annotation.campaign.people import NewUser, Revocation

_say = sentences(__file__)

Role = Literal["annotator", "admin", "adjudicator"]
_DONE = {"created": "created", "added": "added", "kept": "there already"}


@click.command(cls=SectionedCommand, rare="--role --workspace --api-url")
@several("--add", "added", metavar="NAME", help="Make this user where missing, and let them join")
@click.option("--password", "renewed", metavar="NAME", help="Give this user a new password.")
@click.option("--remove", "removed", metavar="NAME", help="Take this user out of the workspaces; answers stay.")
@click.option("--passwords", type=FILE, metavar="FILE", help=_say("help_passwords"))
@click.option("--role", type=click.Choice(["annotator", "admin", "adjudicator"]), help=_say("help_role"))
@several("--workspace", "workspaces", metavar="NAME", help=_say("help_workspace"))
@api_url_option
def users(
    added: tuple[str, ...],
    renewed: str | None,
    removed: str | None,
    passwords: Path | None,
    role: Role | None,
    workspaces: tuple[str, ...],
    api_url: str | None,
) -> None:
    """Print every user with role and workspaces, or change one on any Argilla.

    The people of a campaign stand in citejury.toml, and `citejury annotation setup` makes them, lets them join and
    takes them out. This is for all others. `--add` run again changes nothing, and takes back in whom `--remove` took
    out, with the password that they have. On our own server, all log-ins of who is removed or gets a new password end,
    and their API key too; any other Argilla has no way to end either. The API key of an owner comes from
    ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation users
        citejury annotation users --add ana --add ben --passwords passwords.json
        citejury annotation users --password ana
        citejury annotation users --remove ana
    """
    if sum(map(bool, (added, renewed, removed))) > 1:
        raise click.UsageError("`--add`, `--password` and `--remove` are one at a time.")
    if (role and not added) or (workspaces and not (added or removed)) or (passwords and not (added or renewed)):
        raise click.UsageError(_say("together"))
    if added:
        _add(added, workspaces, role or "annotator", passwords, api_url)
    elif renewed:
        _renew_password(renewed, passwords, api_url)
    elif removed:
        _remove(removed, workspaces, api_url)
    else:
        _list(api_url)


def _add(names: tuple[str, ...], homes: tuple[str, ...], role: Role, path: Path | None, api_url: str | None) -> None:
    from annotation.campaign.file import Annotator
    from annotation.campaign.people import Passwords, checked_names
    from annotation.campaign.setup import add_users

    people = [Annotator.model_validate({"name": name, "role": role}) for name in checked_names(names)]
    kept = Passwords(path, _show_password)
    with named_server(api_url=api_url) as (argilla, settings, campaign):
        wanted = _memberships(argilla, people, homes, settings.workspace, None if homes else campaign)
        plans = add_users(argilla, wanted, kept)
        roles = {user["username"]: user["role"] for user in argilla.users()}
    rows = [(printable(plan.member.person.name), plan.step.workspace or "-", _DONE[plan.step.done]) for plan in plans]
    click.echo(Table([("user", "workspace", "done"), *rows]).terminal())
    for person in people:
        if roles[person.name] != ("admin" if role == "admin" else "annotator"):
            log(f"{printable(person.name)} stays {roles[person.name]}: `--add` changes nobody's role.")
    if path and path.exists():
        log(f"Passwords are in {path}, which only you can read.")
    listed = {each.name for each in campaign.annotators} if campaign else set()
    if unlisted := [person.name for person in people if campaign and person.name not in listed]:
        log(f"citejury.toml does not list {', '.join(map(printable, unlisted))}; write them into `[campaign]` too.")
    log("Next: citejury annotation share --out sheets")


def _memberships(
    argilla: "Argilla", people: "Sequence[Annotator]", named: Sequence[str], workspace: str, campaign: "Campaign | None"
) -> "list[Member]":
    """Who is to be where: in the workspaces that are named, else those of the campaign, else the common one."""
    from annotation.campaign.file import Member, members
    from annotation.campaign.routing import as_it_stands

    standing = as_it_stands(argilla, campaign, workspace) if campaign else None
    listed = [each for each in members(standing, workspace) if not each.person.left] if standing else []
    found: list[Member] = []
    for person in people:
        own = [each for each in listed if each.person.name == person.name]
        if standing and standing.parts_languages and not own and person.role != "adjudicator":
            raise InputError(_say("unlisted", person=person.name))
        if person.role == "adjudicator" and not own:
            found += [Member(name, person) for name in named] or [Member("", person, belongs=False)]
            continue
        belonging = [each for each in own if each.belongs] or own[:1]
        found += belonging or [Member(name, person) for name in named or (workspace,)]
    return found


def _list(api_url: str | None) -> None:
    from annotation.campaign.people import list_users

    with named_server(api_url=api_url) as (argilla, _, _):
        found = list_users(argilla)
    rows = [(printable(user.name), user.role, ", ".join(map(printable, user.workspaces)) or "-") for user in found]
    click.echo(Table([("user", "role", "workspaces"), *rows]).terminal())
    log("Next: citejury annotation status")


def _renew_password(name: str, passwords: Path | None, api_url: str | None) -> None:
    from annotation.campaign.people import Passwords, renew_password

    with named_server(api_url=api_url) as (argilla, _, _):
        revocation = renew_password(argilla, name, Passwords(passwords, _show_password))
    if passwords:
        log(f"The password is in {passwords}, which only you can read.")
    if revocation.ended:
        log(f"{printable(name)} has to log in again, wherever they are logged in.")
    if revocation.new_key:
        log("If they use an API key: it is a new one, which Argilla shows them under My settings.")
    _say_what_stays(revocation, name)
    if revocation.role == "owner":
        log("What was written down at the server's first start as an owner's password is not changed.")
    log(f"Next: give it to {printable(name)}; the old password no longer opens anything.")


def _remove(name: str, workspaces: tuple[str, ...], api_url: str | None) -> None:
    from annotation.campaign.people import remove_user, still_in_campaign
    from annotation.campaign.routing import standing_workspaces

    with named_server(api_url=api_url) as (argilla, settings, campaign):
        joins_again = campaign is not None and still_in_campaign(campaign.annotators, name)
        if joins_again and workspaces:  # a set-up takes nobody back into a workspace of adjudicators
            joins_again = not set(workspaces).isdisjoint(standing_workspaces(argilla, campaign, settings.workspace))
        left, revocation = remove_user(argilla, name, workspaces)
    who = printable(name)
    log(f"{who} left: {', '.join(left)}." if left else f"{who} was in none of the workspaces.")
    if revocation.ended:
        log("All that they were logged in with has ended, and their API key opens nothing.")
    _say_what_stays(revocation, name)
    if joins_again:
        log("Set `left = true` for them in citejury.toml, or the next set-up takes them back in.")
    log("Next: citejury annotation status")


@click.command()
@click.argument("name")
@click.option("--as", "pseudonym", metavar="NAME", help=_say("help_as"))
@flag("--yes", help="Do not ask.")
@api_url_option
def forget(name: str, pseudonym: str | None, yes: bool, api_url: str | None) -> None:
    """Replace a user's names by a pseudonym on the server, for good, and take them out of the workspaces.

    Their answers stay and remain one person's: each later export has the pseudonym where their name was. Exports with
    `--anonymize` go on with the pseudonym that they gave them. The API key of an owner comes from ARGILLA_API_KEY.

    \b
    Example:
        citejury annotation forget ana
    """
    from annotation.campaign.people import checked_names, find_user, forget_user, refuse_owner, still_in_campaign

    checked = checked_names([pseudonym])[0] if pseudonym is not None else None
    with named_server(api_url=api_url) as (argilla, _, campaign):
        refuse_owner(find_user(argilla, name))
        confirm_by_name(name, yes, "Type the name to forget it for good", "Nobody was forgotten")
        chosen, revocation = forget_user(argilla, name, checked)
    click.echo(chosen)
    _say_what_stays(revocation, name)
    log(_say("out_of_reach"))
    if campaign and still_in_campaign(campaign.annotators, name):
        log("Take them out of citejury.toml, or the next set-up makes a new user of that name.")
    log("Next: citejury exports csv export")


def _say_what_stays(revocation: "Revocation", name: str) -> None:
    if not revocation.ended:
        log(_say("stays", name=printable(name)))
    elif not revocation.new_key:
        log(_say("owner_key"))


def _show_password(user: "NewUser") -> None:
    click.echo(f"{printable(user.username)} has the password {user.password} (shown only now)")
