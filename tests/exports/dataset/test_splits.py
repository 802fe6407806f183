import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.dataset.rows import SPLITS, RecordLink, SplitShares, group_records, place_records, read_shares

SHARES = SplitShares(train=0.8, validation=0.1, test=0.1)
LINKS = st.lists(
    st.builds(
        RecordLink,
        record_uuid=st.integers(0, 30).map(lambda number: f"r{number}"),
        narrative_id=st.sampled_from(["", "n1", "n2", "n3"]),
        query=st.sampled_from(["", "q1", "q2", "q3", "q4"]),
    )
)


@given(LINKS, st.integers())
def test_records_that_share_a_narrative_or_a_query_are_in_one_split(links: list[RecordLink], seed: int) -> None:
    places = place_records(group_records(links), SHARES, seed)
    for kind in ("narrative_id", "query"):
        for name in {getattr(link, kind) for link in links} - {""}:
            assert len({places[link.record_uuid] for link in links if getattr(link, kind) == name}) == 1


@given(LINKS, st.randoms())
def test_the_order_of_rows_does_not_matter(links: list[RecordLink], chance: random.Random) -> None:
    assert group_records(sorted(links, key=lambda _: chance.random())) == group_records(links)


def test_links_hold_through_other_records() -> None:
    groups = group_records([RecordLink("a", "n1", "q1"), RecordLink("b", "", "q1"), RecordLink("c", "n1", "q2")])
    assert len(set(groups.values())) == 1


def test_records_without_narrative_and_query_stand_alone() -> None:
    groups = group_records([RecordLink("a", "", ""), RecordLink("b", "", "")])
    assert len(set(groups.values())) == 2


def test_a_record_of_one_task_follows_its_query_in_another() -> None:
    groups = group_records([RecordLink("a", "", ""), RecordLink("a", "", "q"), RecordLink("b", "", "q")])
    assert groups["a"] == groups["b"]


def test_records_that_are_added_move_none() -> None:
    links = [RecordLink(f"r{number}", f"n{number // 3}", f"q{number // 3}") for number in range(600)]
    before = place_records(group_records(links[:300]), SHARES, 0)
    after = place_records(group_records(links), SHARES, 0)
    assert before.items() <= after.items()


def test_each_split_gets_about_its_share_and_another_seed_another_one() -> None:
    groups = group_records(RecordLink(f"r{number}", f"n{number}", "") for number in range(5000))
    places = place_records(groups, SHARES, 0)
    counts = Counter(place.split for place in places.values())
    # Three standard deviations of a share of .1 among 5000 are 64.
    assert [abs(counts[split] - 5000 * getattr(SHARES, split)) < 85 for split in SPLITS] == [True] * 3
    assert place_records(groups, SHARES, 1) != places


def test_a_share_of_nothing_gets_nothing() -> None:
    groups = group_records(RecordLink(f"r{number}", "", "") for number in range(500))
    places = place_records(groups, read_shares("70,0,30"), 0)
    assert {place.split for place in places.values()} == {"train", "test"}


@pytest.mark.parametrize("text", ["80,20", "80,10,20", "0,50,50", "110,-5,-5", "a,b,c", "", "nan,50,50"])
def test_shares_that_do_not_make_100_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"100|three shares|could not convert"):
        read_shares(text)
