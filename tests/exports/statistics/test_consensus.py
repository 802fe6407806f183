import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from annotation.argilla.labels import LABELS
from exports.statistics.consensus import ConsensusLabel, consensus, unused_decisions
from exports.statistics.ratings import Ratings

NAMES = ("anna", "ben", "carla", "dora")


def ratings(*rows: str, task: str = "generation") -> Ratings:
    """One row a unit, one character an annotator: 1 or 0 for every label, - for a blank, a space for no response."""
    given = [(unit, rater, mark) for unit, row in enumerate(rows) for rater, mark in enumerate(row) if mark != " "]
    marks, width = {"1": 1, "0": 0, "-": -1}, len(LABELS[task])  # type: ignore[index]
    return Ratings(
        task=task,  # type: ignore[arg-type]
        annotators=NAMES,
        records=tuple(f"r{unit:03}" for unit in range(len(rows))),
        unit_records=np.arange(len(rows)),
        unit_chunks=("",) * len(rows) if task != "retrieval" else ("c1",) * len(rows),
        unit_languages=("en",) * len(rows),
        units=np.array([unit for unit, _, _ in given], dtype=np.int64),
        response_annotators=np.array([rater for _, rater, _ in given], dtype=np.int64),
        values=np.repeat(np.array([[marks[mark]] for *_, mark in given], dtype=np.int8).reshape(-1, 1), width, axis=1),
        moments=np.zeros(len(given), dtype=np.int64),
        rounds=(),
        response_rounds=np.full(len(given), -1),
        n_duplicates=0,
        discards=None,
    )


def helpful(found: Iterable[ConsensusLabel]) -> list[ConsensusLabel]:
    return [item for item in found if item.label == "helpful"]


@pytest.mark.parametrize(
    ("votes", "share", "majority", "source"),
    [
        ("1", 1.0, True, "single"),
        ("0", 0.0, False, "single"),
        ("11", 1.0, True, "unanimous"),
        ("000", 0.0, False, "unanimous"),
        ("110", 2 / 3, True, "majority"),
        ("1000", 0.25, False, "majority"),
        ("10", 0.5, None, None),
        ("1100", 0.5, None, None),
        ("-1-", 1.0, True, "single"),
        ("--", None, None, None),
    ],
)
def test_votes_become_a_label_with_its_source(
    votes: str, share: float | None, majority: bool | None, source: str | None
) -> None:
    (found,) = helpful(consensus(ratings(votes)))
    assert (found.vote_share, found.majority, found.consensus, found.consensus_source) == (
        share,
        majority,
        majority,
        source,
    )
    assert found.posterior is None


def test_units_come_in_their_order_and_within_them_the_labels_of_the_task() -> None:
    found = consensus(ratings("1", "0"))
    expected = list(itertools.product(("r000", "r001"), LABELS["generation"]))
    assert [(item.record_uuid, item.label) for item in found] == expected


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize("votes", ["10", "111", "1", "000"])
def test_a_decision_comes_before_every_vote(votes: str, decided: bool) -> None:
    found = consensus(ratings(votes), {("r000", "", "helpful"): decided})
    settled = [item for item in found if item.consensus_source == "adjudicated"]
    assert [(item.label, item.consensus) for item in settled] == [("helpful", decided)]


def test_decisions_on_units_without_response_are_told() -> None:
    decisions = {("r000", "", "helpful"): True, ("gone", "", "helpful"): True, ("gone", "", "source_cited"): True}
    assert unused_decisions([ratings("11")], decisions) == [("gone", "", "helpful"), ("gone", "", "source_cited")]


def test_decisions_in_retrieval_name_the_passage() -> None:
    found = consensus(ratings("10", task="retrieval"), {("r000", "c2", "misleading"): True})
    assert not [item for item in found if item.consensus_source]
    found = consensus(ratings("10", task="retrieval"), {("r000", "c1", "misleading"): True})
    assert [item.label for item in found if item.consensus] == ["misleading"]


def test_dawid_skene_settles_ties_where_three_annotators_identify_it() -> None:
    votes = ["111 ", "000 ", "111 ", "000 ", "110 "] * 8 + ["1 0 "]
    found = helpful(consensus(ratings(*votes), rule="ds"))
    assert {item.consensus_source for item in found} == {"ds"}
    assert found[-1].majority is None
    assert found[-1].consensus is True  # carla has missed a yes before, anna has called none wrongly
    assert found[-1].posterior is not None
    assert found[-1].posterior > 0.5


def test_the_posterior_is_there_whatever_the_rule() -> None:
    votes = ["111", "000", "110"] * 8
    by_majority, by_model = (helpful(consensus(ratings(*votes), rule=rule)) for rule in ("majority", "ds"))  # type: ignore[arg-type]
    assert [item.posterior for item in by_majority] == [item.posterior for item in by_model]
    assert {item.consensus_source for item in by_majority} == {"unanimous", "majority"}


def test_dawid_skene_gives_way_to_the_majority_where_it_is_not_identified() -> None:
    found = helpful(consensus(ratings(*["11", "00", "10"] * 20), rule="ds"))
    assert {item.consensus_source for item in found} == {"unanimous", None}


def test_no_response_at_all_gives_no_labels() -> None:
    assert list(consensus(ratings())) == []
