"""What must not change the figures, what must change them and how: for any ratings at all."""

import random
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.argilla.labels import LABELS
from exports.statistics.agreement import measure_figures, measure_task
from exports.statistics.agreement_schema import LabelAgreement
from exports.statistics.ratings import MISSING, NO, YES, FloatArray, count_votes
from exports.statistics.resampling import Estimator, bootstrap, distinct_rows
from exports.statistics.table import alpha_sums, alphas
from tests.support.agreement_data import START, Row, ratings_of

RESAMPLES = 40
COEFFICIENTS = ("krippendorff_alpha", "fleiss_kappa", "gwet_ac1", "brennan_prediger", "percent_agreement")
ANSWERS = st.tuples(*[st.sampled_from([YES, NO, MISSING])] * 3)
ROWS = st.lists(
    st.builds(
        lambda unit, person, answers, week, named: Row(
            f"r{unit // 2}",
            f"anna{person}",
            answers,
            chunk=f"c{unit % 2}",
            at=START + timedelta(weeks=week),
            round=named,
            language="de" if unit % 3 else "en",
        ),
        st.integers(0, 9),
        st.integers(0, 3),
        ANSWERS,
        st.integers(0, 2),
        st.sampled_from(["", "pilot", "main"]),
    ),
    max_size=30,
    unique_by=lambda row: (row.record, row.chunk, row.annotator),
)
fewer = settings(max_examples=15)


def labels_of(rows: list[Row]) -> dict[str, LabelAgreement]:
    return measure_figures(ratings_of(rows, "retrieval"), RESAMPLES, 0).labels


@fewer
@given(ROWS, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_names_of_annotators_matter(rows: list[Row], order: random.Random) -> None:
    shuffled = list(rows)
    order.shuffle(shuffled)
    ratings, again = ratings_of(rows, "retrieval"), ratings_of(shuffled, "retrieval")
    first, second = measure_task(ratings, RESAMPLES, 0), measure_task(again, RESAMPLES, 0)
    assert first.model_dump_json() == second.model_dump_json()
    names = {"anna0": "zoë", "anna1": "=1+1", "anna2": "ben", "anna3": "Ünal"}
    assert labels_of([row._replace(annotator=names[row.annotator]) for row in rows]) == labels_of(rows)


@fewer
@given(ROWS)
def test_flipping_every_answer_and_doubling_every_record_keep_what_they_must(rows: list[Row]) -> None:
    turned = {YES: NO, NO: YES, MISSING: MISSING}
    flipped = labels_of([row._replace(labels=tuple(turned[answer] for answer in row.labels)) for row in rows])
    for label, found in labels_of(rows).items():
        for name in COEFFICIENTS:
            assert getattr(flipped[label], name) == pytest.approx(getattr(found, name), abs=1e-9)
        assert flipped[label].positive_agreement == found.negative_agreement
        assert flipped[label].negative_agreement == found.positive_agreement
        one, other = (each.intervals.get("krippendorff_alpha") for each in (found, flipped[label]))
        assert (one is None) == (other is None)
        if one and other:
            assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-9)
    doubled = labels_of([*rows, *(row._replace(record=f"{row.record} again") for row in rows)])
    for label, found in labels_of(rows).items():
        of_several = ("fleiss_kappa", "gwet_ac1") if found.n_pairable_items > 1 else ()
        for name in (*of_several, "percent_agreement", "positive_agreement", "prevalence"):
            assert getattr(doubled[label], name) == pytest.approx(getattr(found, name), abs=1e-9)


def test_doubling_every_record_halves_the_squared_standard_error() -> None:
    # Percent agreement is a mean over n units, so its jackknife se² is s²/n with s² = Σ(a − ā)²/(n − 1):
    # over the same units twice it is 2Σ(a − ā)²/((2n − 1)·2n), which is (n − 1)/(2n − 1) of the former.
    agreement = (np.random.default_rng(0).integers(0, 3, 60) != 1).astype(np.float64)

    def squared_error(values: FloatArray) -> float:
        sums = np.stack([values, np.ones(len(values))], axis=1)
        estimator = Estimator(sums, lambda totals: totals[..., :1] / totals[..., 1:], np.ones(len(values), dtype=bool))
        return float(bootstrap([estimator], 10, 0)[estimator].jackknife_se[0] ** 2)

    assert squared_error(np.tile(agreement, 2)) / squared_error(agreement) == pytest.approx(59 / 119)


@fewer
@given(ROWS, st.lists(ANSWERS, max_size=4))
def test_units_answered_once_change_no_alpha_nor_interval(rows: list[Row], single: list[tuple[int, ...]]) -> None:
    added = [Row(f"single{place}", "anna0", answers, chunk="c0") for place, answers in enumerate(single)]
    more = labels_of([*rows, *added])
    for label, found in labels_of(rows).items():
        assert more[label].krippendorff_alpha == found.krippendorff_alpha
        assert more[label].percent_agreement == found.percent_agreement
        assert more[label].intervals.get("krippendorff_alpha") == found.intervals.get("krippendorff_alpha")


@fewer
@given(ROWS)
def test_what_is_undefined_has_a_reason_and_alpha_is_that_of_the_vectorised_formula(rows: list[Row]) -> None:
    ratings = ratings_of(rows, "retrieval")
    figures = measure_task(ratings, RESAMPLES, 0)
    slices = [found for part in (*figures.weeks, *figures.rounds, *figures.languages) for found in part.labels.values()]
    for found in (*figures.labels.values(), *figures.pairs, *figures.annotators_vs_rest, *figures.conditional, *slices):
        values = found.model_dump()
        for name in values["undefined"]:
            assert values[name] is None, name
        for name in (*COEFFICIENTS, "cohen_kappa", "alpha_without", "prevalence", "positive_agreement"):
            if name in values and values[name] is None:
                assert name in values["undefined"], name
    votes = count_votes(ratings.values, ratings.units, len(ratings.unit_records))
    found = alphas(alpha_sums(votes, ratings.unit_records, len(ratings.records)).sum(axis=0))
    measured = measure_figures(ratings, RESAMPLES, 0).labels
    for label, alpha in zip(LABELS["retrieval"], found, strict=True):
        expected = measured[label].krippendorff_alpha
        assert np.isnan(alpha) if expected is None else alpha == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=40))
def test_rows_that_are_alike_are_counted_together_and_none_is_lost(rows: list[tuple[int, int]]) -> None:
    kinds, counts = distinct_rows(np.array(rows, dtype=np.float64))
    found = {(int(one), int(other)): int(count) for (one, other), count in zip(kinds, counts, strict=True)}
    assert (len(found), found) == (len(kinds), Counter(rows))
