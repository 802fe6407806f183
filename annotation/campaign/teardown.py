"""Removing a workspace with what is in it: what would be lost, and the removal; the export in between is the caller's.

Datasets go first, then users who were asked for, then workspaces, so that a removal that was killed can be seen and
finished. Argilla deletes a user's responses with them wherever they are; so only those go who have none elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from annotation.argilla.client import Argilla, connected, dataset_handle, user_handle, workspace_handle
from annotation.argilla.tasks import task_of
from annotation.argilla.units import HISTORY_PATH, read_units
from pipeline.core.errors import ArgillaError, NotAllowedError, NotFoundError
from pipeline.core.sentences import sentences
from pipeline.core.terminal import counted

if TYPE_CHECKING:
    import argilla as rg

_say = sentences(__file__)


class _Contents(NamedTuple):
    """Two that differ show that somebody worked in between."""

    counts: Counter[str]  # of records (`record`) and of responses by their status
    annotators: frozenset[str]
    latest: datetime | None


class DatasetToDelete(NamedTuple):
    id: str
    name: str
    contents: _Contents


class UserToDelete(NamedTuple):
    id: str
    username: str
    stays: str  # why they are not deleted; empty where they are


class Teardown(NamedTuple):
    workspace: str
    workspace_id: str
    datasets: tuple[DatasetToDelete, ...]
    is_whole: bool
    users: tuple[UserToDelete, ...]  # the members, where users were asked for; none otherwise

    def total(self, status: Literal["submitted", "draft", "discarded"]) -> int:
        return sum(each.contents.counts[status] for each in self.datasets)


def plan_teardown(
    argilla: Argilla, workspace: str, names: Collection[str] = (), users: bool = False, others: Collection[str] = ()
) -> Teardown:
    """What goes: the datasets named, or all of them with the workspace; and its members, if `users`.

    `others` are workspaces that go as well, so that nobody stays because of them.
    """
    workspace_id = argilla.find_workspace(workspace)
    if (users or not names) and argilla.me()["role"] != "owner":  # better told before anything is gone
        raise NotAllowedError(_say("only_owner", workspace=workspace))
    there = argilla.datasets(workspace_id)
    missing = sorted(set(names) - {dataset["name"] for dataset in there})
    if missing:
        names_there = ", ".join(dataset["name"] for dataset in there) or "none"
        raise NotFoundError(_say("no_dataset", workspace=workspace, missing=missing[0], there=names_there))
    chosen = [dataset for dataset in there if not names or dataset["name"] in names]
    strangers = [dataset["name"] for dataset in chosen if task_of(dataset) is None]
    if strangers:
        raise ArgillaError(_say("stranger", workspace=workspace, dataset=strangers[0]))
    doomed = tuple(DatasetToDelete(each["id"], each["name"], _contents(argilla, each["id"])) for each in chosen)
    fates = _plan_users(argilla, workspace_id, others) if users else ()
    return Teardown(workspace, workspace_id, doomed, not names, fates)


def _contents(argilla: Argilla, dataset_id: str) -> _Contents:
    counts: Counter[str] = Counter()
    people: set[str] = set()
    latest: datetime | None = None
    for unit in read_units(argilla, dataset_id):
        counts.update(("record", *(each.status for each in unit.answers)))
        people.update(each.user_id for each in unit.answers)
        latest = max((each.at for each in unit.answers if latest is None or each.at > latest), default=latest)
    return _Contents(counts, frozenset(people), latest)


def _plan_users(argilla: Argilla, workspace_id: str, others: Collection[str] = ()) -> tuple[UserToDelete, ...]:
    """Owners stay, and so do members of other workspaces and whoever answered in one; `others` do not count."""
    elsewhere = [each for name, each in argilla.workspaces().items() if each != workspace_id and name not in others]
    members = {user["id"] for each in elsewhere for user in argilla.workspace_users(each)}
    answered = {
        person["username"]
        for each in elsewhere
        for dataset in argilla.datasets(each)
        for person in argilla.request("GET", f"/datasets/{dataset['id']}/users/progress")["users"]
    }
    own_id = argilla.me()["id"]
    found = []
    for user in sorted(argilla.workspace_users(workspace_id), key=lambda user: str(user["username"])):
        stays = "has answered in another workspace" if user["username"] in answered else ""
        stays = "a member of another workspace" if user["id"] in members else stays
        stays = "an owner" if user["role"] == "owner" or user["id"] == own_id else stays
        found.append(UserToDelete(user["id"], user["username"], stays))
    return tuple(found)


def check_exported(plan: Teardown, rows: Mapping[tuple[str, str], int]) -> None:
    """Raise ArgillaError where the export, its rows by dataset id and status, lacks a response."""
    for dataset in plan.datasets:
        for status in ("submitted", "discarded"):
            held, exported = dataset.contents.counts[status], rows.get((dataset.id, status), 0)
            if exported != held:
                raise ArgillaError(_say("lacks", exported=exported, status=status, held=held, dataset=dataset.name))


def tear_down(argilla: Argilla, plans: Sequence[Teardown], report: Callable[[str], object] = lambda line: None) -> None:
    """Remove what was planned, each dataset only if nobody worked in it since; `report` gets a line for each removal.

    All datasets go before anybody does: with a person, Argilla deletes their responses in every workspace. Killed at
    any moment, a new plan has what is left.
    """
    client = connected(argilla)
    workspaces = {plan.workspace: workspace_handle(client, plan.workspace_id) for plan in plans}
    for workspace, dataset in [(plan.workspace, each) for plan in plans for each in plan.datasets]:
        if _contents(argilla, dataset.id) != dataset.contents:
            raise ArgillaError(_say("worked_on", dataset=dataset.name))
        _remove(dataset_handle(workspaces[workspace], dataset.id))
        is_erased = _erase_history(argilla, workspace, dataset.id)
        stays = "" if is_erased else " Its history stays on the server; only an owner may remove that."
        report(f"Removed the dataset {dataset.name!r}.{stays}")
    agreed = {user.id for plan in plans for user in plan.users if not user.stays}
    for plan in plans if agreed else ():
        for user in _plan_users(argilla, plan.workspace_id, workspaces):
            if user.id in agreed and not user.stays:  # they may have joined another workspace meanwhile
                _remove(user_handle(client, user.id))
                report(f"Removed the user {user.username!r}.")
    for plan in plans:
        if plan.is_whole:
            _erase_history(argilla, plan.workspace)  # also what a removal that was killed left
            _remove(workspaces[plan.workspace])
            report(f"Removed the workspace {plan.workspace!r}.")


def _erase_history(argilla: Argilla, workspace: str, dataset_id: str | None = None) -> bool:
    """Of a dataset that is gone, or of all; False where the key is not an owner's. A stock server keeps none."""
    named = {} if dataset_id is None else {"dataset_id": dataset_id}
    try:
        argilla.request("DELETE", HISTORY_PATH, params={"workspace": workspace, **named})
    except NotAllowedError:
        return False
    except NotFoundError:
        pass
    return True


def _remove(thing: "rg.Dataset | rg.User | rg.Workspace") -> None:
    """One that a cut-off call removed already is no error."""
    with suppress(NotFoundError):
        thing.delete()


def loss_lines(plan: Teardown) -> Iterator[str]:
    for dataset in plan.datasets:
        found, people = dataset.contents.counts, counted(len(dataset.contents.annotators), "annotator")
        yield (
            f"the dataset {dataset.name!r}: {counted(found['record'], 'record')}, "
            f"{counted(found['submitted'], 'submitted response')}, {counted(found['draft'], 'draft')}, "
            f"{found['discarded']} discarded, by {people}"
        )
    if plan.is_whole:
        yield f"the workspace {plan.workspace!r}"
    for user in plan.users:
        yield f"the user {user.username!r}" if not user.stays else f"(the user {user.username!r} stays: {user.stays})"
