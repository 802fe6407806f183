"""Which datasets a record goes to: decided by who reads its languages and a hash of its id, and then for good.

All units of a record go to one place. A record that is in Argilla already stays where it is, so that every machine sees
the same split, whatever it pushes first. Whether each language has a workspace of its own, and by which rule records
are chosen for calibration, is decided once and stands in the metadata of the campaign's datasets.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.tasks import CALIBRATION, PRODUCTION, lot, round_of, task_of
from annotation.campaign.file import Calibration, Campaign, Place, language_workspace, places, production_place
from pipeline.core.errors import InputError, SettingsError
from pipeline.core.sentences import sentences
from pipeline.text.words import Languages

_say = sentences(__file__)

_HASH_BYTES = 6  # a float holds them exactly, so that no share is rounded up to 1
_FLOOR = 3  # so many records of each language and task are for calibration at least, but no more than half of them
_NEWEST_RULE = 2  # the rule of calibration for new campaigns
LANGUAGE_WORKSPACES = "language_workspaces"
"""Where the split of a campaign says that each language has a workspace of its own."""
ROUTING = "routing"  # where a dataset's metadata say how the records were split


class Home(NamedTuple):
    locale: str
    groups: tuple[str, ...]  # whose people all read what goes there
    reads_everybody: bool  # whether everybody of the list does, whatever their group


def home_of(languages: Languages, campaign: Campaign) -> Home | None:
    """The list whose people read query and answer alike, that of the answer's language first; None where nobody does.

    What neither tells is read by everybody.
    """
    wanted = set(languages) - {"und"}
    if not wanted.issubset(campaign.locales):
        return None
    for locale in (languages.answered, languages.asked) if wanted else campaign.locales:
        groups = tuple(group for group in campaign.groups_for(locale) if campaign.reads(wanted, locale, group))
        reads_everybody = campaign.reads(wanted, locale)
        if groups or reads_everybody:
            return Home(locale, groups, reads_everybody)
    return None


def plan_routes(
    records: Iterable[tuple[str, Languages]],
    stored: Mapping[str, Place],
    campaign: Campaign,
    workspace: str,
    without_passages: Collection[str] = (),
    closed: Collection[str] = (),
) -> dict[str, Place]:
    """The place of each record, by `record_uuid`, in the order given; `records` are pairs of id and languages.

    `stored` is the place of each record that Argilla holds, in any dataset of the campaign; such a record stays there.
    Of the others, those that `assign` names go to their group; then calibration takes its share: each record whose hash
    is below `fraction`, or as many of the lowest hashes of each language as `records` lacks, and more where a task
    would have too few. The rest is for production, where the hash chooses one of the groups whose people all read
    the record. One that nobody reads has no place; one that not everybody of the list reads is none for calibration.
    `without_passages` are the ids, stored ones included, of those for generation only, and `closed` the languages whose
    calibration takes none any more.
    """
    told = dict(records)
    of_languages = {languages: home_of(languages, campaign) for languages in set(told.values())}
    homes = {record_uuid: of_languages[languages] for record_uuid, languages in told.items()}
    assigned = {record_uuid: group for group, uuids in campaign.assign.items() for record_uuid in uuids}
    new = [(record_uuid, home) for record_uuid, home in homes.items() if home and record_uuid not in stored]
    eligible = [(each, home) for each, home in new if home.reads_everybody and home.locale not in closed]
    free = [(each, home.locale) for each, home in eligible if each not in assigned]
    calibrating = _calibration_share(free, stored, campaign, frozenset(without_passages))
    routes: dict[str, Place] = {}
    for record_uuid, home in homes.items():
        if record_uuid in stored:
            routes[record_uuid] = stored[record_uuid]
        elif home and record_uuid in calibrating:
            routes[record_uuid] = Place(language_workspace(campaign, workspace, home.locale), home.locale, CALIBRATION)
        elif home:
            chosen = _group_for(record_uuid, home, assigned.get(record_uuid), campaign)
            routes[record_uuid] = production_place(campaign, workspace, home.locale, chosen)
    return routes


def _calibration_share(
    new: Iterable[tuple[str, str]], stored: Mapping[str, Place], campaign: Campaign, without_passages: frozenset[str]
) -> frozenset[str]:
    rule = campaign.calibration
    if rule is None:
        return frozenset()
    chosen: set[str] = set()
    for locale in campaign.locales:
        found = [record_uuid for record_uuid, of in new if of == locale]
        there = {record_uuid: place.round_name for record_uuid, place in stored.items() if place.locale == locale}
        chosen.update(_chosen(rule, found, there, without_passages))
    return frozenset(chosen)


def _chosen(rule: Calibration, new: Sequence[str], there: Mapping[str, str], bare: frozenset[str]) -> list[str]:
    """Of the new records of a language, beside those in Argilla with their rounds.

    Retrieval and grounding need records with passages, generation takes all. Where too few are in calibration, those of
    the lowest hashes follow; with `records` they take the places of the highest hashes without passages, so that the
    number stays.
    """
    shares = {record_uuid: _share(rule.seed, record_uuid) for record_uuid in new}
    ordered = sorted(new, key=lambda record_uuid: (shares[record_uuid], record_uuid))
    calibrated = [record_uuid for record_uuid, round_name in there.items() if round_name == CALIBRATION]
    if rule.fraction is not None:
        found = [record_uuid for record_uuid in ordered if shares[record_uuid] < rule.fraction]
    else:
        found = ordered[: max(0, (rule.records or 0) - len(calibrated))]
    for passed_over in (bare, frozenset[str]()) if rule.rule != 1 else ():
        concerned = sum(each not in passed_over for each in (*there, *ordered))
        missing = _floor(concerned, rule) - sum(each not in passed_over for each in (*calibrated, *found))
        more = [each for each in ordered if each not in passed_over and each not in found][: max(0, missing)]
        spare = [each for each in found if each in passed_over][-len(more) :] if more and rule.records else []
        found = [each for each in found if each not in spare] + more
    return found


def _floor(concerned: int, rule: Calibration) -> int:
    return min(_FLOOR, max(1, concerned // 2), concerned, rule.records or _FLOOR)


def expected_calibration(rule: Calibration | None, new: float) -> float:
    """How many of so many new records of a language `plan_routes` chooses for calibration, about.

    Argilla holds none of the language yet, and all are taken to have passages.
    """
    if rule is None:
        return 0.0
    wanted = new * rule.fraction if rule.fraction is not None else float(rule.records or 0)
    if rule.rule != 1:
        wanted = max(wanted, _floor(round(new), rule))
    return min(new, wanted)


def _group_for(record_uuid: str, home: Home, assigned: str | None, campaign: Campaign) -> str | None:
    # The highest hash of group and record wins: a new group takes its share from all others and moves nothing between
    # them (rendezvous hashing, Thaler and Ravishankar 1998).
    if assigned is not None and assigned not in home.groups:
        raise InputError(_say("no_reader", record_uuid=record_uuid, assigned=assigned, locale=home.locale))
    seed = campaign.calibration.seed if campaign.calibration else 0
    return assigned or max(home.groups, key=lambda group: (_share(seed, f"{group} {record_uuid}"), group), default=None)


def _share(seed: int, text: str) -> float:
    """A number from 0 up to but not 1 that only seed and text decide, evenly spread over texts (sha256)."""
    return int.from_bytes(lot(f"{seed} {text}")[:_HASH_BYTES], "big") / (1 << 8 * _HASH_BYTES)


def routing_metadata(campaign: Campaign) -> dict[str, Any]:
    """What decides the split, as each dataset's metadata have it; earlier campaigns have the same metadata still."""
    rule = campaign.calibration
    size = None if rule is None else {"fraction": rule.fraction, "records": rule.records, "seed": rule.seed}
    if rule and size and rule.rule != 1:
        size["rule"] = _NEWEST_RULE
    parted = {LANGUAGE_WORKSPACES: True} if campaign.parts_languages else {}
    return {"calibration": size, "locales": list(campaign.locales), "groups": sorted(campaign.groups), **parted}


def check_routing(
    described: Iterable[Mapping[str, Any]],
    campaign: Campaign,
    keys: Collection[str] = ("calibration", "locales", "groups", LANGUAGE_WORKSPACES),
) -> None:
    """Raise SettingsError where a dataset of ours was set up for another split than the campaign's.

    Pass them as `datasets.current_datasets` describes them. Datasets that are in no campaign, such as those of rounds
    by hand, are passed over. `keys` names what is compared.
    """
    wanted = routing_metadata(campaign)
    for dataset in described:
        there = (dataset.get("metadata") or {}).get(ROUTING)
        if there is None:
            continue
        for key in keys:
            if there.get(key) != wanted.get(key):
                advice = _say("stays" if key in ("calibration", LANGUAGE_WORKSPACES) else "newer")
                found, said = (_shown(each.get(key)) for each in (there, wanted))
                told = {"key": key, "found": found, "wanted": said, "advice": advice}
                raise SettingsError(_say("other_split", dataset=dataset["name"], **told))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        shown = {**value, "rule": value.get("rule", 1)}
        return ", ".join(f"{name} {each}" for name, each in shown.items() if each is not None)
    if isinstance(value, bool):
        return "true"
    return "none" if not value else ", ".join(map(str, value))


def as_it_stands(argilla: Argilla, campaign: Campaign, workspace: str) -> Campaign:
    """The campaign with what Argilla has of it decided; where it has nothing, with what a new campaign gets."""
    known = argilla.workspaces()
    splits: dict[bool, list[Mapping[str, Any]]] = {}
    for parts in (False, True):  # of datasets whose languages share workspaces, or have workspaces of their own
        names = _every_workspace(campaign.model_copy(update={"language_workspaces": parts}), workspace)
        described = [each for name in names if name in known for each in argilla.datasets(known[name]) if task_of(each)]
        own = (each["metadata"].get(ROUTING) or {} for each in described if round_of(each) in (CALIBRATION, PRODUCTION))
        splits[parts] = [each for each in own if bool(each.get(LANGUAGE_WORKSPACES)) is parts]
    parts = bool(splits[True]) if any(splits.values()) else campaign.parts_languages
    if campaign.language_workspaces not in (None, parts):
        raise SettingsError(_say("own_workspaces" if parts else "shared_workspaces"))
    rules = [int(each[CALIBRATION].get("rule", 1)) for each in splits[parts] if each.get(CALIBRATION)]
    calibration = campaign.calibration
    if calibration and calibration.rule is None:  # one that the file names is left to be compared with Argilla's
        calibration = calibration.model_copy(update={"rule": min(rules, default=_NEWEST_RULE)})
    return campaign.model_copy(update={"language_workspaces": parts, "calibration": calibration})


def _every_workspace(campaign: Campaign, workspace: str) -> tuple[str, ...]:
    """The names of all workspaces that the campaign may have, those of groups that everybody has left included."""
    shared = [f"{workspace}-{locale}" for locale in campaign.locales] if campaign.parts_languages else [workspace]
    return (*shared, *(f"{home}-{group}" for group in campaign.groups for home in shared))


def standing_workspaces(argilla: Argilla, campaign: Campaign | None, workspace: str) -> tuple[str, ...]:
    """Where people work or worked, and what the campaign needs even where Argilla lacks it."""
    if campaign is None:
        return (workspace,)
    standing, known = as_it_stands(argilla, campaign, workspace), argilla.workspaces()
    needed = {place.workspace for place in places(standing, workspace)}
    return tuple(name for name in _every_workspace(standing, workspace) if name in needed or name in known)
