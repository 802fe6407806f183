"""One annotator more for units on which all that they waited for are there and a label is split, before adjudication.

They get such a unit through their ordinary queue, blind. Source: annotation/contracts/datasets.md#assignments.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TaskName
from annotation.argilla.tasks import PRACTICE
from annotation.argilla.units import Unit, read_units, write_needed
from annotation.quality.tally import find_watched, is_split
from pipeline.core.errors import InputError
from pipeline.core.sentences import sentences

_say = sentences(__file__)


class EscalatedDataset(NamedTuple):
    workspace: str
    dataset: str
    split: int  # units with all their submissions on which some label has both answers
    escalated: int  # those of them that wait for one submission more now, or would
    before: int  # those of them that were escalated before, and are left as they are
    nobody_left: int  # those of them that everybody who could take them has submitted or discarded
    takers: Mapping[str, int]  # how many of the escalated ones each annotator can take, by user name


def escalate(
    argilla: Argilla,
    workspaces: Sequence[str],
    *,
    tasks: Collection[TaskName] = (),
    languages: Mapping[str, Collection[str]] | None = None,
) -> list[EscalatedDataset]:
    """Let the units of these workspaces on which annotators are split wait for one submission more.

    Controls, repeats and practice are none of them, nor is what an earlier version of a dataset holds. Without `tasks`
    all count. `languages` says in which somebody labels, by user name: all for those
    who are not named.
    """
    names = argilla.usernames()
    found, chosen, goes_on = [], {}, False
    closed_to: set[str] = set()
    for watched in find_watched(argilla, workspaces, (), languages or {}):
        dataset = watched.dataset
        closed = not dataset.is_ready or watched.is_superseded or dataset.round == PRACTICE
        if closed or (tasks and dataset.task not in tasks):
            continue
        units = [each for each in read_units(argilla, dataset.id, _refuse_stock) if each.assignment.purpose == "label"]
        goes_on |= any((unit.assignment.needed or 0) > dataset.min_submitted for unit in units)
        split = [unit for unit in units if is_split(unit, dataset.min_submitted)]
        new = [unit for unit in split if (unit.assignment.needed or 0) <= dataset.min_submitted]
        takers = {unit.record_id: _takers(unit, watched.open_to) for unit in new}
        chosen[dataset.id] = [unit for unit in new if takers[unit.record_id]]
        closed_to.update(names.get(who, who) for unit in new for who in _takers(unit, watched.kept_out.keys()))
        can_take = Counter(names.get(user_id, user_id) for users in takers.values() for user_id in users)
        escalated, before = len(chosen[dataset.id]), len(split) - len(new)
        counts = (len(split), escalated, before, len(new) - escalated)
        found.append(EscalatedDataset(dataset.workspace, dataset.name, *counts, dict(sorted(can_take.items()))))
    stuck = sum(each.nobody_left for each in found)
    if stuck and not any(each.escalated for each in found) and not goes_on:
        kept_out = "" if not closed_to else f" or has not passed its practice ({', '.join(sorted(closed_to))})"
        are, them = ("unit is", "it") if stuck == 1 else ("units are", "them")
        raise InputError(_say("nobody_left", stuck=stuck, units=are, them=them, kept_out=kept_out))
    for dataset_id, units in chosen.items():
        write_needed(argilla, dataset_id, {unit.record_id: (unit.assignment, 1) for unit in units})
    return found


def _refuse_stock() -> None:
    raise InputError(_say("stock"))


def _takers(unit: Unit, members: Collection[str]) -> set[str]:
    return set(unit.assignment.users or members).intersection(members) - unit.settled
