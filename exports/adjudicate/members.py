"""Who adjudicates what: the workspaces whose split units go to one workspace of adjudicators, and its members."""

import shlex
from collections.abc import Collection, Sequence
from typing import NamedTuple

from annotation.campaign.file import Campaign, language_workspace
from annotation.campaign.people import checked_names
from annotation.campaign.routing import as_it_stands, standing_workspaces
from annotation.client import Argilla
from exports.adjudicate.adjudication import AdjudicationKind, adjudication_workspace
from pipeline.errors import InputError


class Home(NamedTuple):
    """Annotators' workspaces whose split units go to one workspace of adjudicators."""

    workspace: str
    """The one that gives it its name."""
    sources: tuple[str, ...]
    """All of them."""
    adjudicators: tuple[str, ...]
    """User names of those whom the campaign has for it."""


def find_homes(argilla: Argilla, campaign: Campaign | None, workspace: str) -> tuple[Home, ...]:
    """Where the split units of a campaign as it stands go: one home, or one for each language with its workspace.

    Without a campaign it is the workspace itself.

    Raises:
        SettingsError: the campaign is another than Argilla's.
    """
    if campaign is None:
        return (Home(workspace, (workspace,), ()),)
    standing, known = as_it_stands(argilla, campaign, workspace), argilla.workspaces()
    sources = [name for name in standing_workspaces(argilla, campaign, workspace) if name in known]
    homes: dict[str, list[str]] = {}
    for locale in standing.locales:
        people = [person.name for person in standing.adjudicators(locale)]
        homes.setdefault(language_workspace(standing, workspace, locale), []).extend(people)
    return tuple(
        Home(
            home, tuple(each for each in sources if _is_at(each, home, homes)) or (home,), tuple(dict.fromkeys(people))
        )
        for home, people in homes.items()
    )


def _is_at(name: str, home: str, homes: Collection[str]) -> bool:
    """Whether the workspace is a home or a group's beside it, the longest name of a home deciding."""
    fitting = [each for each in homes if name == each or name.startswith(f"{each}-")]
    return max(fitting, key=len, default="") == home


class Members(NamedTuple):
    """Who adjudicates, and who of them is new."""

    names: dict[str, str]
    """User names by id, of members and of those who are to be."""
    new: tuple[str, ...]
    """Names of those who are to be."""


def find_members(
    argilla: Argilla,
    target: str,
    target_id: str | None,
    annotators: Sequence[str],
    of_campaign: Sequence[str],
    kind: AdjudicationKind,
) -> Members:
    """The adjudicators there are, with those who are named and those of the campaign.

    Raises:
        InputError: there are none, a user does not exist, or she is no annotator and the adjudication is blind.
    """
    names = [*dict.fromkeys([*checked_names(annotators), *of_campaign])]
    users = {user["username"]: user for user in argilla.users()} if names else {}
    missing = [name for name in names if name not in users]
    if missing:
        way = (
            "Run `citejury annotation setup`, which makes the campaign's adjudicators."
            if missing[0] in of_campaign
            else f"Make the user with `citejury annotation users add {shlex.quote(missing[0])} --role adjudicator`."
        )
        raise InputError(f"Argilla at {argilla.api_url} has no user {missing[0]!r}. {way}")
    knowing = [name for name in names if users[name]["role"] != "annotator"]
    if kind == "blind" and knowing:
        raise InputError(
            f"{knowing[0]!r} has the role {users[knowing[0]]['role']} in Argilla and may read everybody's responses. "
            "Name somebody with the role annotator, or push with `--votes`."
        )
    present = argilla.workspace_users(target_id) if target_id else []
    found = {str(user["id"]): str(user["username"]) for user in present if user["role"] == "annotator"}
    new = tuple(name for name in names if name not in {user["username"] for user in present})
    found |= {str(users[name]["id"]): name for name in names}
    if not found:
        raise InputError(
            f"Nobody adjudicates in the workspace {target!r} yet. Name somebody with `--annotator`, or write somebody "
            'into `[campaign]` of citejury.toml with `role = "adjudicator"` and run `citejury annotation setup`.'
        )
    return Members(found, new)


def refuse_annotators(campaign: Campaign | None, named: Collection[str]) -> None:
    """Refuse annotators of the campaign as its adjudicators.

    Raises:
        InputError: one of those who are named is one; nobody settles what she has labelled herself.
    """
    people = campaign.annotators if campaign else ()
    listed = {each.name for each in people if each.role == "annotator" and not each.left}
    hers = [name for name in named if name in listed]
    if hers:
        raise InputError(
            f"{hers[0]!r} is an annotator of the campaign in citejury.toml, and nobody settles what she has labelled "
            "herself. Name somebody else, or add `--allow-own`. Nothing was done."
        )


def refuse_both_kinds(argilla: Argilla, home: Home, kind: AdjudicationKind, members: Members) -> None:
    """Refuse adjudicators who are in a workspace where the votes are shown, or must not be.

    Raises:
        InputError: one of them is; it does not matter for which units, as the next push may bring any.
    """
    known = argilla.workspaces()
    unfit: tuple[AdjudicationKind, ...] = ("blind", "quotes") if kind == "votes" else ("votes",)
    for other in (adjudication_workspace(home.workspace, each) for each in unfit):
        there = {str(user["id"]) for user in argilla.workspace_users(known[other])} if other in known else set()
        both = sorted(name for user, name in members.names.items() if user in there)
        if both:
            raise InputError(
                f"{both[0]!r} adjudicates in the workspace {other!r}: with the votes before her she would not be "
                "blind. Go on with that kind of adjudication, or name somebody else with `--annotator`."
            )
