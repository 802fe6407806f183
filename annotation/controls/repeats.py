"""Repeats: units that somebody submitted some time ago, before her again, to see whether she says the same.

Each person has repeats of her own, which nobody else gets. In retrieval the passages of an answer come together, so
they are repeated together.

Source: annotation/contracts/controls.md#repeats.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.campaign.datasets import JuryDataset, jury_dataset
from annotation.campaign.versions import newest_versions
from annotation.client import Argilla
from annotation.controls.planting import control_uuid
from annotation.display import HIDDEN
from annotation.push.diff import Progress
from annotation.push.send import Batch
from annotation.units import ASSIGNMENT, DEFAULT_RATE, MIXED_IN, Assignment, Unit, read_units
from pipeline.errors import NotFoundError


class Repeat(NamedTuple):
    """One person's units of one answer, to be shown to her again."""

    user_id: str
    """Who."""
    units: tuple[Unit, ...]
    """The units: one, or all passages of an answer in retrieval."""


class RepeatReport(NamedTuple):
    """What is repeated in one dataset."""

    dataset: JuryDataset
    new: Mapping[str, int]
    """New repeats by user id; who gets none is missing."""
    there: Mapping[str, int]
    """Repeats that were there already, by user id."""
    rate: float
    """The rate at which they come."""
    idle: tuple[str, ...]
    """Ids of those with new repeats and nothing else to label here, among which these could come up."""


class _Done(NamedTuple):
    """An answer of which somebody submitted all units in the dataset."""

    units: tuple[Unit, ...]
    place: int
    """How many of her submissions came after the last of them."""


def _draw_repeats(
    dataset: JuryDataset, units: Sequence[Unit], people: Iterable[str], share: float, distance: int, seed: int = 0
) -> tuple[list[Repeat], dict[str, int]]:
    """What is to be repeated, drawn by lot, and the repeats that are there, by user id.

    As many as make `share` of the units that each of the people submitted in the dataset, those that are there
    included; only of answers after which she submitted `distance` units or more, and none twice.
    """
    sizes: dict[str, int] = {}
    for unit in units:
        if unit.assignment.purpose == "label":
            sizes[_answer_of(dataset, unit)] = sizes.get(_answer_of(dataset, unit), 0) + 1
    there: dict[str, int] = {}
    repeated: set[tuple[str, str]] = set()
    for unit in units:
        if unit.assignment.purpose == "repeat":
            for user_id in unit.assignment.users:
                there[user_id] = there.get(user_id, 0) + 1
                repeated.add((user_id, unit.assignment.repeats))
    drawn: list[Repeat] = []
    for user_id in sorted(people):
        submitted = _submitted(dataset, units, user_id)
        wanting = int(share * sum(len(each.units) for each in submitted)) - there.get(user_id, 0)
        free = [
            each
            for each in submitted
            if each.place >= distance
            and len(each.units) == sizes[_answer_of(dataset, each.units[0])]
            and not any((user_id, unit.external_id) in repeated for unit in each.units)
        ]
        for each in sorted(free, key=lambda each: _lot(seed, user_id, each.units[0].external_id)):
            if wanting < len(each.units):
                continue
            drawn.append(Repeat(user_id, each.units))
            wanting -= len(each.units)
    return drawn, there


def _answer_of(dataset: JuryDataset, unit: Unit) -> str:
    """What comes together with the unit: in retrieval the answer that its passage is of."""
    return unit.external_id.partition(":")[0] if dataset.task == "retrieval" else unit.external_id


def _submitted(dataset: JuryDataset, units: Iterable[Unit], user_id: str) -> list[_Done]:
    """What the person submitted of units that are to be labelled, by answer, the earliest last."""
    by_answer: dict[str, list[Unit]] = {}
    last: dict[str, Any] = {}
    for unit in units:
        hers = next((each for each in unit.answers if each.user_id == user_id and each.status == "submitted"), None)
        if hers and unit.assignment.purpose == "label":
            answer = _answer_of(dataset, unit)
            by_answer.setdefault(answer, []).append(unit)
            last[answer] = max(last.get(answer, hers.at), hers.at)
    found, after = [], 0
    for answer in sorted(by_answer, key=lambda each: (last[each], each), reverse=True):
        found.append(_Done(tuple(by_answer[answer]), after))
        after += len(by_answer[answer])
    return found


def _lot(seed: int, user_id: str, external_id: str) -> bytes:
    """What answers are drawn by."""
    return hashlib.sha256(f"{seed} {user_id} {external_id}".encode()).digest()


def datasets_of(
    argilla: Argilla, workspaces: Iterable[str], round_name: str, locale: str | None
) -> tuple[list[JuryDataset], dict[str, list[str]]]:
    """The datasets of a round in their newest versions, and the ids of the annotators of each workspace by its name.

    Raises:
        NotFoundError: a workspace is missing, or none of them has such a dataset.
    """
    datasets: list[JuryDataset] = []
    people: dict[str, list[str]] = {}
    for name in workspaces:
        workspace_id = argilla.find_workspace(name)
        ready = [each for each in argilla.datasets(workspace_id) if each["status"] == "ready"]
        ours = [found for each in newest_versions(ready).values() if (found := jury_dataset(each, name))]
        datasets += [each for each in ours if each.round == round_name and locale in (None, each.locale)]
        people[name] = [each["id"] for each in argilla.workspace_users(workspace_id) if each["role"] == "annotator"]
    if not datasets:
        raise NotFoundError(
            f"There is no dataset of the round {round_name!r}{f' in {locale!r}' if locale else ''} in "
            f"{', '.join(map(repr, people))} on Argilla at {argilla.api_url}. Run `citejury annotation setup`."
        )
    return datasets, people


def push_repeats(
    argilla: Argilla,
    datasets: Iterable[JuryDataset],
    people: Mapping[str, Iterable[str]],
    share: float,
    distance: int,
    rate: float | None = None,
    *,
    seed: int = 0,
    dry_run: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> list[RepeatReport]:
    """What is repeated in each dataset; run again, only what is wanting to the share by then.

    `people` are ids by the name of their workspace. `share` is of the units that each person submitted, `distance` how
    many units they submitted since, at least. `rate` is that of controls and repeats together, as for controls.

    Raises:
        NotFoundError: the server is a stock Argilla, which would show repeats to everybody.
        ArgillaError: Argilla refused a batch.
    """
    reports = []
    for dataset in datasets:
        units = list(read_units(argilla, dataset.id, lambda: _refuse(argilla)))
        drawn, there = _draw_repeats(dataset, units, people[dataset.workspace], share, distance, seed)
        hers = [unit.assignment.rate or 0.0 for unit in units if unit.assignment.purpose in MIXED_IN]
        at = rate or max(hers, default=0.0) or DEFAULT_RATE
        batch = Batch(argilla, dataset)
        for done, repeat in enumerate(() if dry_run else drawn, start=1):
            for unit in repeat.units:
                batch.add(_body(argilla.request("GET", f"/records/{unit.record_id}"), repeat.user_id, at))
            progress(dataset.name, done, len(drawn))
        batch.send()
        new: dict[str, int] = {}
        for repeat in drawn:
            new[repeat.user_id] = new.get(repeat.user_id, 0) + len(repeat.units)
        idle = tuple(who for who in new if not any(_is_left(unit, who) for unit in units))
        reports.append(RepeatReport(dataset, new, there, at, idle))
    return reports


def _is_left(unit: Unit, user_id: str) -> bool:
    """Whether the unit is to be labelled, and by this person too."""
    settled = any(each.user_id == user_id and each.status != "draft" for each in unit.answers)
    is_hers = not unit.assignment.users or user_id in unit.assignment.users
    return unit.assignment.purpose == "label" and unit.is_open and is_hers and not settled


def _refuse(argilla: Argilla) -> None:
    """Refuse to work with a stock Argilla.

    Raises:
        NotFoundError: always.
    """
    raise NotFoundError(
        f"The server at {argilla.api_url} is a stock Argilla: it would show a person's repeats to everybody. Use "
        "`citejury annotation serve`."
    )


def _body(record: Mapping[str, Any], user_id: str, rate: float) -> dict[str, Any]:
    """The record once more under another id, for this person only, shown as it was shown to her."""
    hidden = record["metadata"][HIDDEN]
    uuid = control_uuid(hidden["record_uuid"], f"repeat {user_id}")
    external_id = f"{uuid}:{hidden['chunk_id']}" if hidden.get("chunk_id") else uuid
    again = Assignment(
        purpose="repeat", needed=1, users=(user_id,), rate=rate, repeats=record["external_id"] or record["id"]
    )
    metadata = {HIDDEN: {**hidden, "record_uuid": uuid}, ASSIGNMENT: again.model_dump(mode="json")}
    return {"external_id": external_id, "fields": record["fields"], "metadata": metadata}
