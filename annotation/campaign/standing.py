"""A campaign as it stands in Argilla: what was decided once, at its first set-up, and holds from then on.

Two things are: whether each language has a workspace of its own, and by which rule records were chosen for calibration.
Both stand in the metadata of the campaign's datasets, so that it goes on as it began, whoever joins and whatever a
later version would do.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from annotation.campaign.file import Campaign, places
from annotation.campaign.routing import LANGUAGE_WORKSPACES, NEWEST_RULE, ROUTING, rule_of
from annotation.client import Argilla
from annotation.tasks import CALIBRATION, PRODUCTION, round_of, task_of
from pipeline.errors import SettingsError


def as_it_stands(argilla: Argilla, campaign: Campaign, workspace: str) -> Campaign:
    """The campaign with what Argilla has of it decided; where it has nothing, with what a new campaign gets.

    `workspace` is the common one of the settings.

    Raises:
        SettingsError: `language_workspaces` or `calibration.rule` says otherwise than Argilla; records do not move.
    """
    shared = campaign.model_copy(update={"language_workspaces": False})
    parted = campaign.model_copy(update={"language_workspaces": True})
    known = argilla.workspaces()
    in_parted = [each for each in _own_datasets(argilla, parted, workspace, known) if _routing(each, parts=True)]
    in_shared = [each for each in _own_datasets(argilla, shared, workspace, known) if _routing(each, parts=False)]
    if not in_parted and not in_shared:
        return _decided(campaign, campaign.parts_languages, NEWEST_RULE)
    parts = bool(in_parted)
    if campaign.language_workspaces not in (None, parts):
        raise SettingsError(
            f"`campaign.language_workspaces` in citejury.toml is {str(not parts).lower()}, and the languages of the "
            f"campaign in Argilla {'have workspaces of their own' if parts else 'share workspaces'}. Take the value "
            "out, or begin a campaign in another `workspace`: records do not move."
        )
    rules = {rule for each in in_parted or in_shared if (rule := _rule_of(each))}
    return _decided(campaign, parts, min(rules, default=NEWEST_RULE))


def _decided(campaign: Campaign, parts: bool, rule: int) -> Campaign:
    """The campaign with both decisions; a rule that the file names is left to be compared with Argilla's."""
    calibration = campaign.calibration
    if calibration and calibration.rule is None:
        calibration = calibration.model_copy(update={"rule": rule})
    return campaign.model_copy(update={"language_workspaces": parts, "calibration": calibration})


def _own_datasets(
    argilla: Argilla, campaign: Campaign, workspace: str, known: Mapping[str, str]
) -> Iterator[Mapping[str, Any]]:
    """Our datasets of calibration and production in the workspaces that the campaign may have."""
    for name in _every_workspace(campaign, workspace):
        for each in argilla.datasets(known[name]) if name in known else ():
            if task_of(each) and round_of(each) in (CALIBRATION, PRODUCTION):
                yield each


def _routing(dataset: Mapping[str, Any], parts: bool) -> bool:
    """Whether the dataset is of a campaign whose languages have workspaces of their own, or of one that share them."""
    return bool((dataset["metadata"].get(ROUTING) or {}).get(LANGUAGE_WORKSPACES)) is parts


def _rule_of(dataset: Mapping[str, Any]) -> int | None:
    """The rule by which the dataset's campaign chose records for calibration; None where it has no such round."""
    calibration = (dataset["metadata"].get(ROUTING) or {}).get(CALIBRATION)
    return None if calibration is None else rule_of(calibration)


def _every_workspace(campaign: Campaign, workspace: str) -> tuple[str, ...]:
    """The names of all workspaces that the campaign may have, those of groups that everybody has left included."""
    shared = [f"{workspace}-{locale}" for locale in campaign.locales] if campaign.parts_languages else [workspace]
    return (*shared, *(f"{home}-{group}" for group in campaign.groups for home in shared))


def standing_workspaces(argilla: Argilla, campaign: Campaign | None, workspace: str) -> tuple[str, ...]:
    """The names of the workspaces in which people work or worked; the common one where there is no campaign.

    Those that the campaign needs are there even where Argilla lacks them, so that nothing is left out unseen.

    Raises:
        SettingsError: as for `as_it_stands`.
    """
    if campaign is None:
        return (workspace,)
    standing, known = as_it_stands(argilla, campaign, workspace), argilla.workspaces()
    needed = {place.workspace for place in places(standing, workspace)}
    return tuple(name for name in _every_workspace(standing, workspace) if name in needed or name in known)
