"""The users of an Argilla server: who they are, new passwords, leaving the workspaces, and being forgotten.

By REST only, so that a stock server does the same. Nobody is ever deleted: Argilla deletes a user's responses with her.
"""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from annotation.campaign.file import Annotator, Member
from annotation.campaign.people import MemberPlan, NewUser, Passwords, apply_members, plan_members
from annotation.client import Argilla
from pipeline.errors import InputError, NotFoundError

PSEUDONYM_BYTES = 4


class User(NamedTuple):
    """A user of the server."""

    id: str
    """Her id, which never changes."""
    name: str
    """Her user name."""
    role: str
    """`owner`, `admin` or `annotator`."""
    workspaces: tuple[str, ...]
    """Names of the workspaces that she is a member of, sorted; an owner sees the others, too."""


def list_users(argilla: Argilla) -> tuple[User, ...]:
    """Every user of the server, in order of names.

    Raises:
        NotAllowedError: the key is not an owner's.
    """
    users = argilla.users()
    member_of: dict[str, list[str]] = {user["id"]: [] for user in users}
    for workspace, workspace_id in sorted(argilla.workspaces().items()):
        for member in argilla.workspace_users(workspace_id):
            member_of.setdefault(member["id"], []).append(workspace)
    found = (User(user["id"], user["username"], user["role"], tuple(member_of[user["id"]])) for user in users)
    return tuple(sorted(found, key=lambda user: user.name))


def add_users(
    argilla: Argilla, annotators: Sequence[Annotator], workspaces: Sequence[str], passwords: Passwords
) -> tuple[MemberPlan, ...]:
    """What was done about each person in each workspace; who is there already is left as she is.

    Raises:
        NotFoundError: there is no such workspace.
        OutputError: the passwords cannot be written; nobody was made.
    """
    ids = {workspace: argilla.find_workspace(workspace) for workspace in workspaces}
    wanted = [Member(workspace, person) for workspace in workspaces for person in annotators]
    plans = plan_members(argilla, wanted, ids)
    apply_members(argilla, plans, ids, passwords)
    return plans


def renew_password(argilla: Argilla, name: str, passwords: Passwords) -> User:
    """The user, who now has a new password, kept or told as `passwords` says.

    Raises:
        NotFoundError: there is no such user.
        OutputError: the password cannot be written; the old one holds.
    """
    user = find_user(argilla, name)
    passwords.kept.pop(name, None)
    password = passwords.make(name)
    argilla.request("PATCH", f"/users/{user.id}", json={"password": password})
    passwords.tell(NewUser(name, password))
    return user


def remove_user(argilla: Argilla, name: str, workspaces: Sequence[str] = ()) -> tuple[str, ...]:
    """The workspaces that the user is no longer a member of: those named, or all of them; hers may be none.

    What she answered stays, under her name.

    Raises:
        NotFoundError: there is no such user or workspace.
        InputError: she is an owner, who sees every workspace anyway.
    """
    user = find_user(argilla, name)
    refuse_owner(user)
    ids = argilla.workspaces()
    for workspace in workspaces:
        argilla.find_workspace(workspace)
    leaving = tuple(each for each in user.workspaces if not workspaces or each in workspaces)
    for workspace in leaving:
        argilla.request("DELETE", f"/workspaces/{ids[workspace]}/users/{user.id}")
    return leaving


def forget_user(argilla: Argilla, name: str, pseudonym: str | None = None) -> str:
    """The pseudonym that stands for the user on the server from now on, in place of her user name and her names.

    She leaves every workspace first and is renamed last, so that whoever is interrupted can say the name again. Her id
    stays, so that all her answers remain one person's. Nobody knows her password afterwards.

    Raises:
        NotFoundError: there is no such user.
        InputError: she is an owner, or somebody has the pseudonym.
    """
    users = list_users(argilla)
    chosen = f"former-{secrets.token_hex(PSEUDONYM_BYTES)}" if pseudonym is None else pseudonym
    if any(user.name == chosen for user in users):
        raise InputError(f"A user {chosen!r} is there already. Choose another pseudonym with `--as`.")
    remove_user(argilla, name)
    body = {
        "username": chosen,
        "first_name": chosen,
        "last_name": None,
        "password": secrets.token_urlsafe(32),
    }
    argilla.request("PATCH", f"/users/{found_among(users, name, argilla.api_url).id}", json=body)
    return chosen


def find_user(argilla: Argilla, name: str) -> User:
    """The user of the name.

    Raises:
        NotFoundError: there is no such user.
    """
    return found_among(list_users(argilla), name, argilla.api_url)


def found_among(users: Sequence[User], name: str, api_url: str) -> User:
    """The user of the name.

    Raises:
        NotFoundError: she is not among them.
    """
    for user in users:
        if user.name == name:
            return user
    raise NotFoundError(
        f"Argilla at {api_url} has no user {name!r}. `citejury annotation users list` shows who is there."
    )


def refuse_owner(user: User) -> None:
    """Nothing where the user is no owner.

    Raises:
        InputError: she is one.
    """
    if user.role == "owner":
        raise InputError(
            f"{user.name!r} is an owner, who sees every workspace without being a member. Only admins and annotators "
            "can be removed or forgotten."
        )


def still_in_campaign(people: Sequence[Annotator], name: str) -> bool:
    """Whether the next set-up would take the user back in, because the campaign lists her as one who has not left."""
    return any(person.name == name and not person.left for person in people)
