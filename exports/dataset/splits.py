"""Records in groups that stay together, and groups dealt to the splits so that shares are as wanted.

Source: exports/README.md#a-dataset-for-training-and-analysis.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from pipeline.core.schema import Frozen

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

_ROUNDING = 1e-6  # shares are decimal fractions, so a quota of 8 records may be 7.999999999


class SplitShares(Frozen):
    train: float
    validation: float
    test: float


class RecordLink(NamedTuple):
    """What ties a record to others; several links of one record all count."""

    record_uuid: str
    narrative_id: str
    query: str
    passage: str = ""  # what stands for one of its passages; empty without one


class Placed(NamedTuple):
    split: SplitName
    group: str  # 16 hexadecimal digits, the same for all records that must stay together


def read_shares(text: str) -> SplitShares:
    """The shares that a text such as `80,10,10` names; ValueError where they do not make 100, or train gets none."""
    numbers = [float(part) for part in text.split(",")]
    if len(numbers) != len(SPLITS) or not all(0 <= number <= 100 for number in numbers) or numbers[0] == 0:
        raise ValueError(f"{text!r} is not three shares from 0 with some for train")
    if abs(sum(numbers) - 100) > 1e-9:
        raise ValueError(f"{text!r} does not make 100")
    train, validation, test = (number / 100 for number in numbers)
    return SplitShares(train=train, validation=validation, test=test)


def group_records(links: Iterable[RecordLink]) -> dict[str, str]:
    """The group of each record: records that share a narrative, a query or a passage, directly or through others.

    A group is named after its smallest narrative id; where it has none, after its smallest query; else after its
    smallest passage or its record. So it keeps its name when records of other narratives are added.
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
        # The digits sort narratives before queries, those before passages, and those before records.
        nodes += [f"1 {link.narrative_id}"] if link.narrative_id else []
        nodes += [f"2 {digest(link.query)}"] if link.query else []
        nodes += [f"3 {link.passage}"] if link.passage else []
        first, *others = sorted(root(node) for node in nodes)
        for other in others:
            parents[other] = first
    return {record: digest(root(own)) for record, own in records.items()}


def digest(text: str) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def place_records(
    groups: Mapping[str, str], shares: SplitShares, seed: int, earlier: Mapping[str, SplitName] | None = None
) -> dict[str, Placed]:
    """The split of each record; a group is in one split as a whole.

    A split has more records than its share by less than its smallest group, and fewer by less than the smallest group
    of any split that has more. Each group goes where a hash of seed and group points if there is room for all of it,
    else to the split with the most room.

    Where there are earlier placements, all of them are kept if the rule above allows it, and the other groups dealt
    into what room is left. If it does not, a group goes to its earlier split where there is room.

    Both `groups` and `earlier` are by record; of the latter, records that are no more do not count.
    """
    sizes = Counter(groups.values())
    order = sorted(sizes, key=lambda group: (-sizes[group], digest(f"{seed} {group}")))
    votes: dict[str, Counter[SplitName]] = {}
    for record, group in groups.items():
        if earlier and record in earlier and getattr(shares, earlier[record]):
            votes.setdefault(group, Counter())[earlier[record]] += 1
    # The earlier split of a group is that of most of its records.
    known = {
        group: max(SPLITS, key=lambda split: (found[split], -SPLITS.index(split))) for group, found in votes.items()
    }
    wishes = {group: _hashed_split(group, shares, seed) for group in order} | known
    dealing = next(dealing for dealing in _dealings(sizes, shares, order, wishes, known) if dealing.is_fair())
    return {record: Placed(dealing.splits[group], group) for record, group in groups.items()}


def _hashed_split(group: str, shares: SplitShares, seed: int) -> SplitName:
    """When the splits share the numbers from 0 to 1 as wanted."""
    place = int.from_bytes(hashlib.sha256(f"{seed} {group}".encode()).digest()[:8], "big") / 2**64
    if place < shares.test:
        return "test"
    return "validation" if place < shares.test + shares.validation else "train"


def _dealings(
    sizes: Mapping[str, int],
    shares: SplitShares,
    order: Sequence[str],
    wishes: Mapping[str, SplitName],
    known: Mapping[str, SplitName],
) -> Iterator["_Dealing"]:
    """Ways to deal all groups, the one that moves the fewest first; the last is always fair.

    `order` has the largest group first, `wishes` the split that each is to have if there is room, `known` the one that
    each group of the earlier dataset had.
    """
    if known:
        keeping = _Dealing(sizes, shares)
        for group, split in known.items():
            keeping.put(group, split)
        keeping.deal([group for group in order if group not in known], wishes)
        yield keeping
    fitting = _Dealing(sizes, shares)
    fitting.deal([group for group in order if not fitting.fit(group, wishes[group])], wishes)
    yield fitting
    largest_first = _Dealing(sizes, shares)
    largest_first.deal(order, wishes)
    yield largest_first


class _Dealing:
    def __init__(self, sizes: Mapping[str, int], shares: SplitShares) -> None:
        total = sum(sizes.values())
        self.sizes = sizes
        self.room: dict[SplitName, float] = {
            split: getattr(shares, split) * total for split in SPLITS if getattr(shares, split)
        }
        """Records that each split still lacks; below 0 where it has too many."""
        self.smallest: dict[SplitName, int] = {}  # Size of the smallest group of each split that has one
        self.splits: dict[str, SplitName] = {}  # The split of each group so far

    def put(self, group: str, split: SplitName) -> None:
        self.splits[group] = split
        self.room[split] -= self.sizes[group]
        self.smallest[split] = min(self.smallest.get(split, self.sizes[group]), self.sizes[group])

    def fit(self, group: str, split: SplitName) -> bool:
        """Whether there was room for all of it."""
        fits = self.room[split] > self.sizes[group] - _ROUNDING
        if fits:
            self.put(group, split)
        return fits

    def deal(self, order: Sequence[str], wishes: Mapping[str, SplitName]) -> None:
        """Put each group where it wishes to go if there is room for it, else where the most room is.

        Where the largest come first, the result is fair: a split with too many got its last and smallest group when it
        had the most room of all, so that no other lacks as much as that group.
        """
        for group in order:
            if not self.fit(group, wishes[group]):
                self.put(group, max(self.room, key=self.room.__getitem__))

    def is_fair(self) -> bool:
        """Whether no split has too many or too few records by as much as `place_records` allows."""
        over = [split for split, room in self.room.items() if room < -_ROUNDING]
        limit = min((self.smallest[split] for split in over), default=_ROUNDING)
        return all(-self.room[split] < self.smallest[split] for split in over) and all(
            room < limit for room in self.room.values()
        )
