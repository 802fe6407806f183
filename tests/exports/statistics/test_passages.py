"""How well passages fit their queries: precision and hits of any, ranking of those that came with their records."""

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest

from exports.statistics.results import measure_results
from exports.statistics.results_schema import Passages
from exports.statistics.study import Study
from tests.support import oracles
from tests.support.study_data import Answer, study_of
from tests.support.told_answers import Told, told_answers

Votes = tuple[int, int]  # How many of two annotators say yes to `topically_relevant`, and to `evidence_sufficient`


def ranked(
    records: dict[tuple[str, str], Sequence[Votes]], contexts: str = "supplied", unjudged: frozenset[int] = frozenset()
) -> Study:
    """A study of passages by narrative and model, in the order of their ranks; some ranks are left out everywhere."""
    answers = [
        Answer(
            narrative,
            model,
            {},
            passages=[
                [
                    {"topically_relevant": int(who < relevant), "evidence_sufficient": int(who < enough)}
                    for who in (0, 1)
                ]
                for relevant, enough in passages
            ],
        )
        for (narrative, model), passages in records.items()
    ]
    study = study_of(answers)
    (table,) = study.tables
    ranks = np.array([int(chunk[1:]) + 1 for chunk in table.unit_chunks], np.int64)
    ranks += sum(ranks >= rank for rank in sorted(unjudged)) if unjudged else 0
    provenance = {record: {**row, "contexts": contexts} for record, row in study.provenance.items()}
    return study._replace(tables=(table._replace(unit_ranks=ranks),), provenance=provenance)


def only(study: Study) -> Passages:
    (found,) = measure_results(study).passages
    return found


# Ranks 1, 2, 3 of three records: relevant votes and sufficient votes of two annotators.
RECORDS: dict[tuple[str, str], Sequence[Votes]] = {
    ("n1", "a"): ((0, 0), (2, 2), (1, 0)),
    ("n2", "a"): ((1, 1), (1, 0), (0, 0)),
    ("n1", "b"): ((2, 2), (2, 0), (0, 0)),
}


def test_precision_hits_and_ranks_of_contexts_that_came_with_their_records() -> None:
    found = only(ranked(RECORDS))
    assert (found.contexts, found.n_records, found.n_passages, found.n_gaps) == ("supplied", 3, 9, 0)
    # Shares of yes: n1/a 0, 1, .5; n2/a .5, .5, 0; n1/b 1, 1, 0.
    assert found.precision["topically_relevant"].rate == pytest.approx((1.5 / 3 + 1 / 3 + 2 / 3) / 3)
    # A tie is no hit: n2/a has none.
    assert found.hit_rate["topically_relevant"].rate == pytest.approx(2 / 3)
    assert found.reciprocal_rank["topically_relevant"].rate == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert found.reciprocal_rank["evidence_sufficient"].rate == pytest.approx((1 / 2 + 0 + 1) / 3)
    by_model = {each.by["model_name"]: each.rate for each in found.reciprocal_rank["topically_relevant"].groups}
    assert by_model == {"a": pytest.approx(1 / 4), "b": 1}
    # Gains n1/a 0, 2, .5: DCG 2/log2(3) + .5/2, best 2 + .5/log2(3).
    first = (2 / np.log2(3) + 0.25) / (2 + 0.5 / np.log2(3))
    assert found.ndcg.rate == pytest.approx((first + 1 + 1) / 3)
    assert [each.n_narratives for each in found.ndcg.differences] == [1]
    found = only(ranked({("n1", "a"): ((0, 0), (0, 0))}))
    assert (found.ndcg.rate, found.reciprocal_rank["topically_relevant"].rate) == (0, 0)
    orders = list(itertools.permutations([(2, 0), (1, 0), (0, 0)]))
    records = {(f"n{at}", "a"): order for at, order in enumerate(orders)}
    found = only(ranked(records)).reciprocal_rank["topically_relevant"]
    assert found.rate == pytest.approx(np.mean([1 / (order.index((2, 0)) + 1) for order in orders]))


@pytest.mark.parametrize("contexts", ["selected", "", "of another version"])
def test_our_own_selection_and_contexts_of_unknown_origin_have_no_ranking_and_no_groups(contexts: str) -> None:
    found = only(ranked(RECORDS, contexts=contexts))
    assert found.contexts == ("selected" if contexts == "selected" else "")
    assert found.precision["topically_relevant"].rate == pytest.approx(0.5)
    assert found.hit_rate["evidence_sufficient"].rate == pytest.approx(2 / 3)
    assert (found.reciprocal_rank, found.ndcg) == ({}, None)
    for label in (*found.precision.values(), *found.hit_rate.values()):
        assert (label.groups, label.differences) == ((), ())


def test_kinds_are_apart_weights_count_and_a_passage_nobody_judged_leaves_precision_only() -> None:
    study = ranked({("n1", "a"): ((2, 2),), ("n2", "a"): ((0, 0),), ("n1", "b"): ((2, 2),)})
    kinds = {
        name: row | {"contexts": "selected" if "/a/" in name else "supplied"} for name, row in study.provenance.items()
    }
    odds = {"n1/a/en": 0.25, "n2/a/en": 1.0, "n1/b/en": 1.0}
    found = measure_results(study._replace(provenance=kinds, probabilities=odds)).passages
    assert [(each.contexts, each.n_records, each.precision["topically_relevant"].rate) for each in found] == [
        ("selected", 2, pytest.approx(0.8)),
        ("supplied", 1, 1),
    ]
    found = only(ranked({**RECORDS, ("n3", "a"): ((2, 2),)}, unjudged=frozenset({2})))
    units = (found.precision["topically_relevant"].n_units, found.hit_rate["topically_relevant"].n_units)
    assert (found.n_records, found.n_gaps, units, found.ndcg.n_units) == (4, 3, (4, 1), 1)
    # Runs tell of passages after the last that was judged.
    study = ranked({("n1", "a"): ((2, 2), (0, 0))})
    answers = told_answers([Told("a", "n1")])._replace(record_uuids=("n1/a/en",))
    told = (answers._replace(n_passages=np.array([count], np.int64)) for count in (2, 3))
    assert [only(study._replace(answers=each)).n_gaps for each in told] == [0, 1]
    # Ratings without ranks.
    study = ranked(RECORDS)
    found = only(study._replace(tables=(study.tables[0]._replace(unit_ranks=None),)))
    assert (found.n_gaps, found.ndcg.rate, found.ndcg.undefined) == (3, None, "no_units")
    assert found.precision["topically_relevant"].rate == pytest.approx(0.5)


def test_ndcg_is_that_of_scikit_learn() -> None:
    chance = random.Random(3)
    records = {
        (f"n{at}", "a"): [(chance.randrange(3), chance.randrange(3)) for _ in range(chance.randrange(2, 8))]
        for at in range(80)
    }
    found = only(ranked(records)).ndcg
    each = []
    for passages in records.values():
        gains = [[(relevant + enough) / 2 for relevant, enough in passages]]
        order = [list(range(len(passages), 0, -1))]
        each.append(float(oracles.metrics.ndcg_score(gains, order)))
    assert found.rate == pytest.approx(np.mean(each), abs=1e-9)
