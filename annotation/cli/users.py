"""The group `users`: who is on the server, and who joins, leaves and is forgotten."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotation.cli.options import FILE, api_url_option, confirm_by_name, flag, named_server, preset, several
from pipeline.cli.options import log
from pipeline.core.errors import InputError
from pipeline.core.tables import Table
from pipeline.core.terminal import printable

if TYPE_CHECKING:
    from annotation.argilla.client import Argilla
    from annotation.campaign.file import Annotator, Campaign, Member
    from annotation.campaign.people import NewUser, Revocation

_passwords_option = click.option(
    "--passwords",
    type=FILE,
    metavar="FILE",
    help="Keep the password in this file, which only you can read, instead of printing it.",
)
_DONE = {"created": "created", "added": "added", "kept": "there already"}
_OUT_OF_REACH = """What this cannot reach:
  - exports, sheets and password files written so far; an export with --anonymize, made again, also takes her name
    out of its key file;
  - backups of the server;
  - the server's logs, until it has been started twice;
  - notes in which somebody wrote her name, and citejury.toml."""


@click.group()
def users() -> None:
    """Look after the people on the server; works with any Argilla."""


@users.command("add")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@several(
    "--workspace",
    "workspaces",
    metavar="NAME",
    help="Workspace to join; those of the campaign in citejury.toml for the people that it lists, else the setting "
    "`workspace` (citejury).",
)
@preset(
    "--role",
    type=click.Choice(["annotator", "admin", "adjudicator"]),
    default="annotator",
    help="Role of a new user; an admin may read what the others answer, an adjudicator joins no workspace of "
    "annotators.",
)
@_passwords_option
@api_url_option
def add(
    names: tuple[str, ...], workspaces: tuple[str, ...], role: str, passwords: Path | None, api_url: str | None
) -> None:
    """Make users where they are missing, and let them join workspaces.

    A new user's password is printed once unless `--passwords` names a file to keep it. Run again, it changes nothing.
    The API key comes from ARGILLA_API_KEY; it must be an owner's.

    \b
    Example:
        citejury annotation users add ana ben --passwords passwords.json
    """
    from annotation.campaign.file import Annotator
    from annotation.campaign.people import Passwords, checked_names
    from annotation.campaign.setup import add_users

    people = [Annotator.model_validate({"name": name, "role": role}) for name in checked_names(names)]
    kept = Passwords(passwords, _show_password)
    with named_server(api_url=api_url) as (argilla, settings, campaign):
        wanted = _memberships(argilla, people, workspaces, settings.workspace, None if workspaces else campaign)
        plans = add_users(argilla, wanted, kept)
        roles = {user["username"]: user["role"] for user in argilla.users()}
    rows = [(printable(plan.member.person.name), plan.step.workspace or "-", _DONE[plan.step.done]) for plan in plans]
    click.echo(Table([("user", "workspace", "done"), *rows]).terminal())
    for person in people:
        if roles[person.name] != ("admin" if role == "admin" else "annotator"):
            log(f"{printable(person.name)} stays {roles[person.name]}: `add` changes nobody's role.")
    if passwords and passwords.exists():
        log(f"Passwords are in {passwords}, which only you can read.")
    listed = {each.name for each in campaign.annotators} if campaign else set()
    if unlisted := [person.name for person in people if campaign and person.name not in listed]:
        log(f"citejury.toml does not list {', '.join(map(printable, unlisted))}; write them into `[campaign]` too.")
    log("Next: citejury annotation share --out sheets")


def _memberships(
    argilla: "Argilla", people: "Sequence[Annotator]", named: Sequence[str], workspace: str, campaign: "Campaign | None"
) -> "list[Member]":
    """Who is to be where: in the workspaces that are named, else where the campaign has her, else in the common one."""
    from annotation.campaign.file import Member, members
    from annotation.campaign.routing import as_it_stands

    standing = as_it_stands(argilla, campaign, workspace) if campaign else None
    listed = [each for each in members(standing, workspace) if not each.person.left] if standing else []
    found: list[Member] = []
    for person in people:
        hers = [each for each in listed if each.person.name == person.name]
        if standing and standing.parts_languages and not hers and person.role != "adjudicator":
            raise InputError(
                f"citejury.toml does not list {person.name!r}, and each language of its campaign has a workspace of "
                "its own. Write her into `[campaign]` and run `citejury annotation setup`, or name a `--workspace`."
            )
        if person.role == "adjudicator" and not hers:
            found += [Member(name, person) for name in named] or [Member("", person, belongs=False)]
            continue
        belonging = [each for each in hers if each.belongs] or hers[:1]
        found += belonging or [Member(name, person) for name in named or (workspace,)]
    return found


@users.command("list")
@api_url_option
def show(api_url: str | None) -> None:
    """Print every user with role and workspaces.

    The API key comes from ARGILLA_API_KEY; it must be an owner's.

    \b
    Example:
        citejury annotation users list
    """
    from annotation.campaign.people import list_users

    with named_server(api_url=api_url) as (argilla, _, _):
        found = list_users(argilla)
    rows = [(printable(user.name), user.role, ", ".join(map(printable, user.workspaces)) or "-") for user in found]
    click.echo(Table([("user", "role", "workspaces"), *rows]).terminal())
    log("Next: citejury annotation status")


@users.command("passwd")
@click.argument("name")
@_passwords_option
@api_url_option
def passwd(name: str, passwords: Path | None, api_url: str | None) -> None:
    """Give a user a new password.

    It is printed once unless `--passwords` names a file to keep it. On our own server all that she is logged in with
    ends and her API key is a new one; any other Argilla has no way to do either. The API key of an owner comes from
    ARGILLA_API_KEY.

    \b
    Example:
        citejury annotation users passwd ana
    """
    from annotation.campaign.people import Passwords, renew_password

    with named_server(api_url=api_url) as (argilla, _, _):
        revocation = renew_password(argilla, name, Passwords(passwords, _show_password))
    if passwords:
        log(f"The password is in {passwords}, which only you can read.")
    if revocation.ended:
        log(f"{printable(name)} has to log in again, wherever she is logged in.")
    if revocation.new_key:
        log("If she uses an API key: it is a new one, which Argilla shows her under My settings.")
    _say_what_stays(revocation, name)
    if revocation.role == "owner":
        log("What was written down at the server's first start as an owner's password is not changed.")
    log(f"Next: give it to {printable(name)}; her old password no longer opens anything.")


@users.command("remove")
@click.argument("name")
@several("--workspace", "workspaces", metavar="NAME", help="Workspace to leave; all of them if not given.")
@api_url_option
def remove(name: str, workspaces: tuple[str, ...], api_url: str | None) -> None:
    """Take a user out of the workspaces; everything that she answered stays, under her name.

    `users add` takes her back in, with the password that she has. On our own server all that she is logged in with
    ends, and her API key too. The API key of an owner comes from ARGILLA_API_KEY.

    \b
    Example:
        citejury annotation users remove ana
    """
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
        log("All that she was logged in with has ended, and her API key opens nothing.")
    _say_what_stays(revocation, name)
    if joins_again:
        log("Set `left = true` for her in citejury.toml, or the next set-up takes her back in.")
    log("Next: citejury annotation status")


@users.command("forget")
@click.argument("name")
@click.option(
    "--as", "pseudonym", metavar="NAME", help="The pseudonym; a random one such as former-4f7a21c0 if not given."
)
@flag("--yes", help="Do not ask.")
@api_url_option
def forget(name: str, pseudonym: str | None, yes: bool, api_url: str | None) -> None:
    """Replace a user's names by a pseudonym on the server, for good, and take her out of the workspaces.

    Her answers stay and remain one person's: each later export has the pseudonym where her name was. Exports with
    `--anonymize` go on with the pseudonym that they gave her. The API key of an owner comes from ARGILLA_API_KEY.

    \b
    Example:
        citejury annotation users forget ana
    """
    from annotation.campaign.people import checked_names, find_user, forget_user, refuse_owner, still_in_campaign

    checked = checked_names([pseudonym])[0] if pseudonym is not None else None
    with named_server(api_url=api_url) as (argilla, _, campaign):
        refuse_owner(find_user(argilla, name))
        confirm_by_name(name, yes, "Type her name to forget it for good", "Nobody was forgotten")
        chosen, revocation = forget_user(argilla, name, checked)
    click.echo(chosen)
    _say_what_stays(revocation, name)
    log(_OUT_OF_REACH)
    if campaign and still_in_campaign(campaign.annotators, name):
        log("Take her out of citejury.toml, or the next set-up makes a new user of her name.")
    log("Next: citejury exports csv export")


def _say_what_stays(revocation: "Revocation", name: str) -> None:
    if not revocation.ended:
        log(
            f"What this server cannot: who is logged in as {printable(name)} stays so for up to a day, and the API key "
            "still works, for what that user answered too. Only citejury's own server ends both."
        )
    elif not revocation.new_key:
        log(
            "An owner's API key stays, for the server's own files hold it. Change `owner_api_key` in `secrets.json` "
            "of its home, or `CITEJURY_OWNER_API_KEY` in docker/.env, and start it again."
        )


def _show_password(user: "NewUser") -> None:
    click.echo(f"{printable(user.username)} has the password {user.password} (shown only now)")
