"""The people of a campaign: who is made a user, who joins a workspace, who leaves one, and where passwords are kept."""

import json
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.client import Argilla, connected, unless_done, user_handle, workspace_handle
from annotation.argilla.sdk import load_sdk
from annotation.argilla.units import read_units
from annotation.campaign.datasets import datasets_in
from annotation.campaign.file import LONGEST_NAME, Annotator, Campaign
from pipeline.core.errors import InputError, NotFoundError
from pipeline.core.files import locked_folder, output_errors, write_private
from pipeline.core.sentences import sentences

_say = sentences(__file__)

REVOCATION_PATH = "/citejury/users/{user_id}/revocation"


class NewUser(NamedTuple):
    username: str
    password: str


def checked_names(annotators: Sequence[str]) -> list[str]:
    """The names, trimmed; InputError where one is empty, too long, not printable, or named twice."""
    names = [name.strip() for name in annotators]
    if not all(names):
        raise InputError("An annotator's name is empty. Give every `--annotator` a name.")
    if odd := [name for name in names if not name.isprintable()]:
        raise InputError(f"An annotator's name holds characters that cannot be seen: {odd[0]!r}. Leave them out.")
    if long := [name for name in names if len(name) > LONGEST_NAME]:
        raise InputError(_say("long", length=len(long[0]), longest_name=LONGEST_NAME, start=long[0][:20]))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"Annotators are named twice: {', '.join(map(repr, twice))}. Name each once.")
    return names


class Passwords:
    """The passwords of new users: in a file that only its owner can read where one is named, else announced once."""

    def __init__(self, file: Path | None = None, announce: Callable[[NewUser], None] = lambda user: None) -> None:
        """The file's passwords are taken, so that one written before an interruption is used again."""
        self.file = file
        self.announce = announce
        self.kept = read_passwords(file) if file is not None and file.exists() else {}

    def make(self, name: str, anew: bool = False) -> str:
        """A password for a new user, written down before it is used; one that the file has is taken, unless `anew`."""
        password = secrets.token_urlsafe(15)  # 20 characters
        if self.file is None:
            return password
        with self._file_alone() as kept:
            if anew or name not in kept:
                kept[name] = password
        return kept[name]

    def drop(self, name: str) -> None:
        """Forget a password that was never the user's."""
        if self.file is not None:
            with self._file_alone() as kept:
                kept.pop(name, None)

    @contextmanager
    def _file_alone(self) -> Iterator[dict[str, str]]:
        """What the file has, to be changed; another set-up may keep its passwords there at the same time."""
        assert self.file is not None
        wrong = f"The passwords cannot be written to `{self.file}`", "Name another `--passwords`; no user was made."
        with output_errors(*wrong), locked_folder(self.file.parent, "annotation setup", 10):
            self.kept = read_passwords(self.file) if self.file.exists() else {}
            before = dict(self.kept)
            yield self.kept
            if self.kept != before:
                write_private(self.file, json.dumps(self.kept, ensure_ascii=False, indent=2) + "\n")

    def tell(self, user: NewUser) -> None:
        if self.file is None:
            self.announce(user)


def read_passwords(file: Path) -> dict[str, str]:
    """The passwords in the file, by user name."""
    if file.exists() and not file.is_file():  # from a device or a pipe nobody gets a password back
        raise InputError(f"`{file}` is no file, and passwords are kept in one. Check `--passwords`.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"`{file}` cannot be read: {error.strerror or error}. Check `--passwords`.") from error
    except ValueError as error:
        raise InputError(f"`{file}` holds no passwords: it is not JSON. Check `--passwords`.") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InputError(f"`{file}` holds no passwords: expected one text for each user name. Check `--passwords`.")
    return found


def create_user(argilla: Argilla, person: Annotator, passwords: Passwords) -> str:
    password = passwords.make(person.name)
    role = "admin" if person.role == "admin" else "annotator"  # Argilla knows no adjudicators
    name, found = person.name, dict[str, str]()

    def is_made() -> bool:
        found.update({user["username"]: user["id"] for user in argilla.users()})
        return name in found

    with unless_done(is_made):
        user = load_sdk().User(name, name, role=role, password=password, client=connected(argilla)).create()
        passwords.tell(NewUser(name, password))
        return str(user.id)
    if not argilla.lets_in(name, password):  # whoever made the user has another one
        passwords.drop(name)
    return found[name]


class _User(NamedTuple):
    id: str
    name: str
    role: str
    workspaces: tuple[str, ...]


def list_users(argilla: Argilla) -> tuple[_User, ...]:
    users = argilla.users()
    member_of: dict[str, list[str]] = {user["id"]: [] for user in users}
    for workspace, workspace_id in sorted(argilla.workspaces().items()):
        for member in argilla.workspace_users(workspace_id):
            member_of.setdefault(member["id"], []).append(workspace)
    found = (_User(user["id"], user["username"], user["role"], tuple(member_of[user["id"]])) for user in users)
    return tuple(sorted(found, key=lambda user: user.name))


class Stranger(NamedTuple):
    """Somebody in a campaign's workspaces whom its file does not name."""

    name: str
    role: str
    workspaces: tuple[str, ...]
    waiting: int  # units in those workspaces that they could still answer


def find_strangers(argilla: Argilla, campaign: Campaign, workspaces: Collection[str]) -> tuple[Stranger, ...]:
    """Sorted by name, members of adjudicators' workspaces included; nobody where the file names no annotators."""
    listed = {person.name for person in campaign.annotators}
    found = [
        (user, tuple(each for each in user.workspaces if _belongs_to(each, workspaces)))
        for user in (list_users(argilla) if listed else ())
        if user.role != "owner" and user.name not in listed
    ]
    strangers = [(user, theirs) for user, theirs in found if theirs]
    waiting: Counter[str] = Counter()
    for workspace in {each for _, theirs in strangers for each in theirs}:
        here = {user.id for user, theirs in strangers if workspace in theirs}
        for dataset in datasets_in(argilla, workspace):
            for unit in read_units(argilla, dataset.id):
                may = here.intersection(unit.assignment.users) if unit.assignment.users else here
                waiting.update(may - unit.settled if unit.is_open else ())
    return tuple(Stranger(user.name, user.role, theirs, waiting[user.id]) for user, theirs in strangers)


def _belongs_to(name: str, workspaces: Collection[str]) -> bool:
    """Whether it is one of them, or where its split units are adjudicated."""
    return name in workspaces or any(name.startswith(f"{each}-adjudication") for each in workspaces)


class Revocation(NamedTuple):
    role: str
    ended: bool  # False where the server cannot, which is no server of ours
    new_key: bool  # whether there is a new API key, so that the one before opens nothing


def _revoke(argilla: Argilla, user: _User) -> Revocation:
    """On our own server all log-ins end; an owner's key stays."""
    try:
        said = argilla.request("POST", REVOCATION_PATH.format(user_id=user.id))
    except NotFoundError:
        return Revocation(user.role, ended=False, new_key=False)
    return Revocation(user.role, ended=True, new_key=bool(said["api_key_renewed"]))


def renew_password(argilla: Argilla, name: str, passwords: Passwords) -> Revocation:
    """What became of the user's other ways in, now that they have a new password, kept or announced by `passwords`."""
    user = find_user(argilla, name)
    password = passwords.make(name, anew=True)
    argilla.request("PATCH", f"/users/{user.id}", json={"password": password})
    passwords.tell(NewUser(name, password))
    return _revoke(argilla, user)


def remove_user(argilla: Argilla, name: str, workspaces: Sequence[str] = ()) -> tuple[tuple[str, ...], Revocation]:
    """The workspaces that the user left, those named or all that they were in, and what became of their ways in."""
    user = find_user(argilla, name)
    refuse_owner(user)
    ids = argilla.workspaces()
    for workspace in workspaces:
        argilla.find_workspace(workspace)
    leaving = tuple(each for each in user.workspaces if not workspaces or each in workspaces)
    client = connected(argilla)
    for workspace in leaving:
        user_handle(client, user.id).remove_from_workspace(workspace_handle(client, ids[workspace]))
    return leaving, _revoke(argilla, user)


def forget_user(argilla: Argilla, name: str, pseudonym: str | None = None) -> tuple[str, Revocation]:
    """What the user is called from now on, and what became of their ways in.

    They leave every workspace first and are renamed last, so that whoever is interrupted can say the name again. Their
    id stays, so that all their answers remain one person's. Nobody knows their password afterwards.
    """
    users = list_users(argilla)
    chosen = f"former-{secrets.token_hex(4)}" if pseudonym is None else pseudonym
    if any(user.name == chosen for user in users):
        raise InputError(f"A user {chosen!r} is there already. Choose another pseudonym with `--as`.")
    _, revocation = remove_user(argilla, name)
    body = {"username": chosen, "first_name": chosen, "last_name": None, "password": secrets.token_urlsafe(32)}
    argilla.request("PATCH", f"/users/{next(user.id for user in users if user.name == name)}", json=body)
    return chosen, revocation


def find_user(argilla: Argilla, name: str) -> _User:
    for user in list_users(argilla):
        if user.name == name:
            return user
    raise NotFoundError(_say("no_user", api_url=argilla.api_url, name=name))


def refuse_owner(user: _User) -> None:
    if user.role == "owner":
        raise InputError(_say("owner", name=user.name))


def still_in_campaign(people: Sequence[Annotator], name: str) -> bool:
    """Whether the next set-up would take the user back in."""
    return any(person.name == name and not person.left for person in people)
