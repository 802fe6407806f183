import itertools
from collections.abc import Iterable

import pytest

from annotation.argilla.labels import LABELS, TaskName
from exports.statistics.consensus import ConsensusLabel, consensus, unused_decisions
from exports.statistics.ratings import Ratings
from tests.support.agreement_data import Row, ratings_of


def ratings(*rows: str, task: TaskName = "generation") -> Ratings:
    """One row a unit, one character an annotator: 1 or 0 for every label, - for a blank, a space for no response."""
    width, chunk = len(LABELS[task]), "c1" if task == "retrieval" else ""
    return ratings_of(
        [
            Row(f"r{unit:03}", name, ({"1": 1, "0": 0, "-": -1}[mark],) * width, chunk)
            for unit, row in enumerate(rows)
            for name, mark in zip(("anna", "ben", "carla", "dora"), row, strict=False)
            if mark != " "
        ],
        task,
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
def test_votes_become_a_label(votes: str, share: float | None, majority: bool | None, source: str | None) -> None:
    (found,) = helpful(consensus(ratings(votes)))
    told = (found.vote_share, found.majority, found.consensus, found.consensus_source, found.posterior)
    assert told == (share, majority, majority, source, None)


def test_units_and_labels_keep_their_order_and_unused_decisions_are_named_by_passage() -> None:
    found = consensus(ratings("1", "0"))
    assert [(item.record_uuid, item.label) for item in found] == [
        *itertools.product(("r000", "r001"), LABELS["generation"])
    ]
    assert list(consensus(ratings())) == []
    decisions = {("r000", "", "helpful"): True, ("gone", "", "helpful"): True, ("gone", "", "source_cited"): True}
    assert unused_decisions([ratings("11")], decisions) == [("gone", "", "helpful"), ("gone", "", "source_cited")]
    passages = ratings("10", task="retrieval")
    found = {
        chunk: [item.label for item in consensus(passages, {("r000", chunk, "misleading"): True}) if item.consensus]
        for chunk in ("c1", "c2")
    }
    assert found == {"c1": ["misleading"], "c2": []}


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize("votes", ["10", "111", "1", "000"])
def test_a_decision_comes_before_every_vote(votes: str, decided: bool) -> None:
    found = consensus(ratings(votes), {("r000", "", "helpful"): decided})
    settled = [item for item in found if item.consensus_source == "adjudicated"]
    assert [(item.label, item.consensus) for item in settled] == [("helpful", decided)]


def test_dawid_skene_settles_ties_where_three_annotators_identify_it() -> None:
    votes = ["111 ", "000 ", "111 ", "000 ", "110 "] * 8 + ["1 0 "]
    found = helpful(consensus(ratings(*votes), rule="ds"))
    assert {item.consensus_source for item in found} == {"ds"}
    # carla has missed a yes before, anna has called none wrongly
    assert (found[-1].majority, found[-1].consensus, (found[-1].posterior or 0) > 0.5) == (None, True, True)
    by_majority = helpful(consensus(ratings(*votes)))
    assert [item.posterior for item in by_majority] == [item.posterior for item in found]
    assert {item.consensus_source for item in by_majority} == {"unanimous", "majority", None}
    unidentified = helpful(consensus(ratings(*["11", "00", "10"] * 20), rule="ds"))
    assert {item.consensus_source for item in unidentified} == {"unanimous", None}
