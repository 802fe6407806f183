import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.dataset.splits import (
    SPLITS,
    Placed,
    RecordLink,
    SplitName,
    SplitShares,
    group_records,
    place_records,
    read_shares,
)

SHARES = SplitShares(train=0.8, validation=0.1, test=0.1)
LINKS = st.lists(
    st.builds(
        RecordLink,
        record_uuid=st.integers(0, 30).map(lambda number: f"r{number}"),
        narrative_id=st.sampled_from(["", "n1", "n2", "n3"]),
        query=st.sampled_from(["", "q1", "q2", "q3", "q4"]),
        passage=st.sampled_from(["", "", "p1", "p2", "p3"]),
    )
)


@given(LINKS, st.integers())
def test_records_that_share_narrative_query_or_passage_are_in_one_split(links: list[RecordLink], seed: int) -> None:
    places = place_records(group_records(links), SHARES, seed)
    for kind in ("narrative_id", "query", "passage"):
        for name in {getattr(link, kind) for link in links} - {""}:
            assert len({places[link.record_uuid] for link in links if getattr(link, kind) == name}) == 1


@given(LINKS, st.randoms())
def test_the_order_of_rows_does_not_matter(links: list[RecordLink], chance: random.Random) -> None:
    assert group_records(sorted(links, key=lambda _: chance.random())) == group_records(links)


def test_links_hold_through_other_records_and_tasks_and_name_the_group_after_its_narrative() -> None:
    groups = group_records([RecordLink("a", "n1", "q1"), RecordLink("b", "", "q1"), RecordLink("c", "n1", "q2")])
    assert len(set(groups.values())) == 1
    assert len(set(group_records([RecordLink("a", "", ""), RecordLink("b", "", "")]).values())) == 2
    of_tasks = group_records([RecordLink("a", "", ""), RecordLink("a", "", "q"), RecordLink("b", "", "q")])
    assert of_tasks["a"] == of_tasks["b"]
    (plain,) = set(group_records([RecordLink("b", "n1", "")]).values())
    tied = group_records([RecordLink("b", "n1", ""), RecordLink("b", "", "", "0"), RecordLink("a", "", "", "0")])
    assert tied == {"a": plain, "b": plain}  # whatever passages it has


def splits_of(places: dict[str, Placed]) -> dict[str, SplitName]:
    return {record: place.split for record, place in places.items()}


def sizes_by_split(places: dict[str, Placed]) -> dict[str, Counter[str]]:
    """Size of each group by its name, for each split."""
    found: dict[str, Counter[str]] = {split: Counter() for split in SPLITS}
    for place in places.values():
        found[place.split][place.group] += 1
    return found


def check_shares(places: dict[str, Placed], shares: SplitShares) -> None:
    """No split has too many records by its smallest group or more, none too few by that of one that has too many."""
    found = sizes_by_split(places)
    surplus = {split: sum(found[split].values()) - getattr(shares, split) * len(places) for split in SPLITS}
    over = [split for split in SPLITS if surplus[split] > 1e-6]
    for split in SPLITS:
        assert surplus[split] < min(found[split].values(), default=1e-6)
        assert -surplus[split] < min((min(found[other].values()) for other in over), default=1e-6)
        assert bool(found[split]) <= bool(getattr(shares, split))


GROUPS = st.lists(st.integers(1, 40), min_size=1, max_size=60).map(
    lambda sizes: {f"r{n}-{m}": f"g{n}" for n, size in enumerate(sizes) for m in range(size)}
)
WANTED = st.tuples(st.integers(1, 100), st.integers(0, 50), st.integers(0, 50)).map(
    lambda parts: SplitShares(**{split: part / sum(parts) for split, part in zip(SPLITS, parts, strict=True)})
)


@given(GROUPS, GROUPS, WANTED, st.integers(0, 3))
def test_no_split_is_off_by_as_much_as_one_group_nor_where_an_earlier_dataset_has_placed_some(
    groups: dict[str, str], before: dict[str, str], shares: SplitShares, seed: int
) -> None:
    places = place_records(groups, shares, seed)
    check_shares(places, shares)
    assert place_records(groups, shares, seed, splits_of(places)) == places  # over their own dataset they stay
    check_shares(place_records(groups, shares, seed, splits_of(place_records(before, shares, seed))), shares)


@pytest.mark.parametrize("seed", range(20))
def test_narratives_of_one_size_are_dealt_exactly_and_a_large_group_goes_where_it_fits(seed: int) -> None:
    groups = group_records(RecordLink(f"r{n}-{m}", f"n{n}", "") for n in range(80) for m in range(5))
    counts = Counter(place.split for place in place_records(groups, SHARES, seed).values())
    assert counts == {"train": 320, "validation": 40, "test": 40}
    places = place_records({f"r{n}": "hub" if n < 60 else f"g{n}" for n in range(100)}, SHARES, seed)
    assert places["r0"].split == "train"
    assert Counter(place.split for place in places.values()) == {"train": 80, "validation": 10, "test": 10}
    places = place_records({f"r{n}": "hub" if n < 96 else f"g{n}" for n in range(100)}, SHARES, 0)
    assert Counter(place.split for place in places.values()) == {"train": 96, "validation": 2, "test": 2}


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 3))
def test_narratives_that_are_added_over_an_earlier_dataset_move_none(first: int, more: int, seed: int) -> None:
    links = [RecordLink(f"r{n}-{m}", f"n{n}", f"q{n}") for n in range(first + more) for m in range(5)]
    before = place_records(group_records(links[: first * 5]), SHARES, seed)
    after = place_records(group_records(links), SHARES, seed, splits_of(before))
    assert before.items() <= after.items()


def test_few_move_when_records_are_added_or_groups_grow_together_and_size_decides_no_split() -> None:
    links = [RecordLink(f"r{number}", f"n{number // 3}", f"q{number // 3}") for number in range(600)]
    before = place_records(group_records(links[:300]), SHARES, 0)
    after = place_records(group_records(links), SHARES, 0)
    assert sum(after[record].split != place.split for record, place in before.items()) < 30
    assert all(after[record].group == place.group for record, place in before.items())
    links = [RecordLink(f"r{n}-{m}", f"n{n}", "") for n in range(80) for m in range(5)]
    before = place_records(group_records(links), SHARES, 0)
    one, other = (next(r for r, place in before.items() if place.split == split) for split in ("train", "test"))
    tie = [RecordLink(one, "", "", "passage"), RecordLink(other, "", "", "passage")]
    after = place_records(group_records([*links, *tie]), SHARES, 0, splits_of(before))
    check_shares(after, SHARES)
    assert after[one].split == after[other].split
    assert sum(after[record].split != place.split for record, place in before.items()) <= 10
    groups = {f"r{n}-{m}": f"g{n}" for n in range(2000) for m in range(1 + n % 5)}
    found = sizes_by_split(place_records(groups, SHARES, 0))
    means = {split: sum(sizes.values()) / len(sizes) for split, sizes in found.items()}
    # Three standard errors of a mean of 200 sizes, whose deviation is sqrt(2), are .3; all together have 3.
    assert all(abs(mean - 3) < 0.3 for mean in means.values()), means


def test_another_seed_deals_otherwise_and_a_share_of_nothing_gets_nothing() -> None:
    groups = group_records(RecordLink(f"r{number}", f"n{number}", "") for number in range(500))
    assert place_records(groups, SHARES, 0) != place_records(groups, SHARES, 1)
    places = place_records(groups, read_shares("70,0,30"), 0)
    assert {place.split for place in places.values()} == {"train", "test"}
    for text in ("80,20", "80,10,20", "0,50,50", "110,-5,-5", "a,b,c", "", "nan,50,50"):
        with pytest.raises(ValueError, match=r"100|three shares|could not convert"):
            read_shares(text)
