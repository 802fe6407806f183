"""Train, validation and test: a narrative with all its records is in one of them, in every task the same."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

from pipeline.schema import Frozen

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)


class SplitShares(Frozen):
    """How much of the narratives each split is meant to get; together 1."""

    train: float
    """Share of the train split."""
    validation: float
    """Share of the validation split."""
    test: float
    """Share of the test split."""


class RecordLink(NamedTuple):
    """What ties a record to others; several links of one record all count."""

    record_uuid: str
    """Id of the record."""
    narrative_id: str
    """Id of its narrative; empty where the export does not tell."""
    query: str
    """Its query; empty where the row has none."""


class Placed(NamedTuple):
    """Where a record belongs."""

    split: SplitName
    """Its split."""
    group: str
    """16 hexadecimal digits, the same for all records that must stay together."""


def read_shares(text: str) -> SplitShares:
    """The shares that a text such as `80,10,10` names, for train, validation and test.

    Raises:
        ValueError: these are not three numbers from 0 that make 100, with something for train.
    """
    numbers = [float(part) for part in text.split(",")]
    if len(numbers) != len(SPLITS) or not all(0 <= number <= 100 for number in numbers) or numbers[0] == 0:
        raise ValueError(f"{text!r} is not three shares from 0 with some for train")
    if abs(sum(numbers) - 100) > 1e-9:
        raise ValueError(f"{text!r} does not make 100")
    train, validation, test = (number / 100 for number in numbers)
    return SplitShares(train=train, validation=validation, test=test)


def group_records(links: Iterable[RecordLink]) -> dict[str, str]:
    """The group of each record: records that share a narrative id or a query, directly or through others, share it.

    A group is named after its smallest narrative id; where it has none, after its smallest query; else after the
    record. So it keeps its name when records of other narratives are added.
    """
    parents: dict[str, str] = {}

    def root(node: str) -> str:
        while parents.setdefault(node, node) != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    records: dict[str, str] = {}
    for link in links:
        records[link.record_uuid] = own = f"record {link.record_uuid}"
        nodes = [own]
        # The digits sort narratives before queries, and those before records.
        nodes += [f"1 {link.narrative_id}"] if link.narrative_id else []
        nodes += [f"2 {digest(link.query)}"] if link.query else []
        first, *others = sorted(root(node) for node in nodes)
        for other in others:
            parents[other] = first
    return {record: digest(root(own)) for record, own in records.items()}


def digest(text: str) -> str:
    """16 hexadecimal digits that stand for the text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def place_records(groups: Mapping[str, str], shares: SplitShares, seed: int) -> dict[str, Placed]:
    """The split of each record, by a hash of seed and group: adding records moves none that is there already."""
    return {record: Placed(split_of(group, shares, seed), group) for record, group in groups.items()}


def split_of(group: str, shares: SplitShares, seed: int) -> SplitName:
    """The split of a group: where its hash falls between 0 and 1."""
    place = int.from_bytes(hashlib.sha256(f"{seed} {group}".encode()).digest()[:8], "big") / 2**64
    if place < shares.test:
        return "test"
    return "validation" if place < shares.test + shares.validation else "train"
