"""How a dataset in Argilla differs from its definition: what can be changed there, and what cannot."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.campaign.routing import ROUTING
from annotation.client import Argilla
from annotation.tasks import DatasetDefinition, schema_part, task_of
from pipeline.errors import ArgillaError

DIFFERENCES_SHOWN = 6
CHANGEABLE = frozenset({"title", "description", "settings"})
RESPONSES = ("submitted", "discarded", "draft")

Part = tuple[str, dict[str, Any]]
"""Path and body of a change to a field or question."""


def refuse_strangers(described: Sequence[Mapping[str, Any]], definition: DatasetDefinition) -> None:
    """Nothing where no dataset of somebody else's has the name.

    Raises:
        ArgillaError: one has.
    """
    if any(each["name"] == definition.name and task_of(each) != definition.task for each in described):
        raise ArgillaError(
            f"The workspace already has a dataset {definition.name!r} that citejury did not make. Rename it in "
            "Argilla, or choose another `--workspace`."
        )


def refuse_other_schema(
    argilla: Argilla, existing: Mapping[str, Any], definition: DatasetDefinition, way_out: str
) -> None:
    """Nothing where the existing dataset fits; a draft may lack fields and questions.

    Raises:
        ArgillaError: it has other fields or questions; the message lists them and ends in the way out.
    """
    differences = schema_differences(
        [*parts_of(argilla, existing["id"], "fields"), *parts_of(argilla, existing["id"], "questions")],
        [*definition.fields, *definition.questions],
        is_draft=existing["status"] == "draft",
    )
    if differences:
        raise ArgillaError(
            f"The dataset {existing['name']!r} differs from what this version of citejury asks for, and Argilla cannot "
            f"change a published dataset: {'; '.join(differences[:DIFFERENCES_SHOWN])}. {way_out}"
        )


def schema_differences(
    theirs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]], is_draft: bool
) -> list[str]:
    """Each difference in words; in a draft what is missing is none."""
    there = {part["name"]: schema_part(part) for part in theirs}
    wanted = {part["name"]: schema_part(part) for part in ours}
    missing = [] if is_draft else [f"`{name}` is missing" for name in wanted if name not in there]
    extra = [f"`{name}` is not asked for" for name in there if name not in wanted]
    changed = [
        f"`{name}` has {key} {there[name].get(key)!r} instead of {value!r}"
        for name in wanted
        if name in there
        for key, value in wanted[name].items()
        if there[name].get(key) != value
    ]
    return missing + extra + changed


def parts_of(argilla: Argilla, dataset_id: str, kind: str) -> list[dict[str, Any]]:
    """The dataset's `fields` or `questions` as the server describes them."""
    parts: list[dict[str, Any]] = argilla.request("GET", f"/datasets/{dataset_id}/{kind}")["items"]
    return parts


def changed_parts(argilla: Argilla, existing: Mapping[str, Any], definition: DatasetDefinition) -> tuple[Part, ...]:
    """The fields and questions whose title, description or texts of answers differ, as changes to send."""
    found: list[Part] = []
    for kind, wanted in (("fields", definition.fields), ("questions", definition.questions)):
        there = {part["name"]: part for part in parts_of(argilla, existing["id"], kind)}
        for part in wanted:
            if part["name"] in there and wording_of(there[part["name"]]) != wording_of(part):
                body = {each: part[each] for each in sorted(CHANGEABLE & part.keys())}
                found.append((f"/{kind}/{there[part['name']]['id']}", body))
    return tuple(found)


def wording_of(part: Mapping[str, Any]) -> tuple[Any, ...]:
    """What annotators read of a field or question; takes ours and the server's description alike."""
    options = part["settings"].get("options") or ()
    return part["title"], part.get("description"), [(each["value"], each["text"]) for each in options]


def changed_body(existing: Mapping[str, Any], definition: DatasetDefinition) -> dict[str, Any]:
    """What of the dataset itself differs, as a change to send: guidelines, overlap, metadata; empty where nothing does.

    Metadata that the definition does not have stay as they are.
    """
    wanted, metadata = definition.body, existing["metadata"] or {}
    body: dict[str, Any] = {}
    if existing["guidelines"] != wanted["guidelines"]:
        body["guidelines"] = wanted["guidelines"]
    if existing["distribution"]["min_submitted"] != wanted["distribution"]["min_submitted"]:
        body["distribution"] = wanted["distribution"]
    watched = [name for name in ("guideline_version", ROUTING) if name in wanted["metadata"]]
    if any(metadata.get(name) != wanted["metadata"][name] for name in watched):
        body["metadata"] = {**metadata, **wanted["metadata"]}
    return body


def described_changes(existing: Mapping[str, Any], parts: Sequence[Part], body: Mapping[str, Any]) -> list[str]:
    """The changes in words, those that annotators notice first; empty where there are none."""
    found = ["titles and descriptions"] if parts else []
    found += ["guidelines"] if "guidelines" in body else []
    if "distribution" in body:
        now, then = existing["distribution"]["min_submitted"], body["distribution"]["min_submitted"]
        found.append(f"overlap {now} becomes {then}")
    there = existing["metadata"] or {}
    if "metadata" in body and there.get(ROUTING) != body["metadata"].get(ROUTING):
        found.append("how records are split")
    return found or (["version of the wording"] if body else [])


def count_responses(argilla: Argilla, dataset_id: str) -> int:
    """How many responses of any kind the dataset holds, by the server's tables."""
    progress = argilla.request("GET", f"/datasets/{dataset_id}/users/progress")["users"]
    return sum(int(user[state][kind]) for user in progress for state in ("completed", "pending") for kind in RESPONSES)
