"""Calibration that is done: no record is added to it, and only who joins later still gets what is in it.

Source: annotation/contracts/datasets.md#closed-calibration.
"""

from collections.abc import Callable, Mapping, Sequence

from annotation.argilla.client import Argilla
from annotation.argilla.tasks import CALIBRATION
from annotation.argilla.units import Assignment, Unit, read_units, write_needed
from annotation.campaign.datasets import JuryDataset, Newcomers, datasets_in
from annotation.campaign.file import Campaign, Place, places

Held = Mapping[str, tuple[JuryDataset, Sequence[Unit]]]  # a calibration's datasets by id, with the units in them


def closed_calibrations(
    argilla: Argilla, campaign: Campaign, workspace: str, slowly: Callable[[], object] = lambda: None
) -> dict[Place, Held]:
    """The calibrations that are done; `slowly` is called where the server is a stock Argilla.

    A unit is done once as many people as its dataset waits for submitted or discarded it, and stays so where only
    somebody who joined later still gets it.
    """
    known = argilla.workspaces()
    found: dict[Place, Held] = {}
    for place in places(campaign, workspace) if campaign.calibration else ():
        if place.round_name != CALIBRATION or place.workspace not in known:
            continue
        held = {
            each.id: (each, [unit for unit in read_units(argilla, each.id, slowly) if unit.is_to_label])
            for each in datasets_in(argilla, place.workspace)
            if (each.locale, each.round) == (place.locale, CALIBRATION)
        }
        pairs = [(dataset, unit) for dataset, units in held.values() for unit in units]
        if pairs and all(_is_done(dataset, unit) for dataset, unit in pairs):
            found[place] = held
    return found


def _is_done(dataset: JuryDataset, unit: Unit) -> bool:
    return bool(unit.assignment.users) or len(unit.settled) >= dataset.min_submitted


def find_newcomers(argilla: Argilla, campaign: Campaign, closed: Mapping[Place, Held]) -> tuple[Newcomers, ...]:
    """Nobody where the file says how many people answer each record of calibration, or names nobody."""
    if campaign.calibration is None or campaign.calibration.overlap or not closed:
        return ()
    ids = {user["username"]: str(user["id"]) for user in argilla.users()}
    found = []
    for place, held in closed.items():
        jury = {person.name: ids.get(person.name, "") for person in campaign.jury(place.locale)}
        for dataset, units in held.values() if jury else ():
            begun = {user_id for unit in units for user_id in unit.settled}
            names = {}
            for unit in units:
                waiting = {*unit.assignment.users} - unit.settled
                new = {name: at for name, at in jury.items() if at in waiting or at not in begun}
                if waiting != {*new.values()}:
                    names[unit.record_id] = tuple(new)
            if names:
                found.append(Newcomers(dataset, names))
    return tuple(found)


def give_calibration(argilla: Argilla, newcomers: Sequence[Newcomers]) -> None:
    """Let the units wait for the newcomers, who are users by now, and for nobody else."""
    ids = {user["username"]: str(user["id"]) for user in argilla.users()} if newcomers else {}
    for dataset, names in newcomers:
        assignments = {
            record_id: (Assignment(users=tuple(ids[name] for name in new)), len(new))
            for record_id, new in names.items()
        }
        write_needed(argilla, dataset.id, assignments)
