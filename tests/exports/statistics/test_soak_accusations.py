"""How often interchangeable annotators are named, and how often a careless one is found: simulated reports.

A report has the three tasks of the demo with all their labels: 46 passages of 23 records, 23 and 57 answers. A share of
yes of 0 stands for labels on a scale.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest

from annotation.argilla.labels import TASKS
from exports.report.words import annotator_sentences
from exports.statistics.agreement import SIGNIFICANT, measure_agreement
from exports.statistics.agreement_schema import LEAST_EXCESS
from exports.statistics.annotators import Exchange, measure_exchange
from exports.statistics.ratings import Ratings, ScaledLabel
from tests.support.agreement_data import ratings_of_matrix
from tests.support.juries import Jury, jury_ratings

SEED = 20261122
REPORTS, SAMPLE = 400, 60
LEAST_FOUND = 0.9
SHAPES = {"retrieval": (23, 2), "grounding": (23, 1), "generation": (57, 1)}  # Records and passages of each task
JURIES = {
    "three judge all": Jury(57, annotators=3),
    "three of four": Jury(57, annotators=4),
    "three of four, by passage": Jury(57, annotators=4, by_passage=True),
    "five judge all": Jury(57, annotators=5, seats=5),
    "two to five of six": Jury(57, annotators=6, seats=0),
    "five of eight": Jury(57, annotators=8, seats=5),
    "two of five": Jury(57, annotators=5, seats=2),
    "fixed pairs of six": Jury(57, annotators=6, pairs=True),
}
ERRORS = {
    "one answer in ten wrong": {"error": 0.1},
    "one in five wrong": {"error": 0.2},
    "one record in seven at random": {"error": 0.05, "off": 0.15},
}
rare_and_common = pytest.mark.parametrize("prevalence", [0.0, 0.05, 0.5])


def named(found: list[Exchange], level: float) -> np.ndarray:
    """People × labels."""
    return np.stack([(each.p_holm < level) & (each.excess_low >= LEAST_EXCESS) for each in found], axis=1)


def on_a_scale(ratings: Ratings, random: np.random.Generator) -> Ratings:
    """One label of five values instead: who errs takes another one at random."""
    wrong = ratings.values[:, 0].astype(np.int64) * random.integers(1, 5, len(ratings.units))
    codes = (random.integers(0, 5, len(ratings.unit_records))[ratings.units] + wrong) % 5
    told = (ratings.units, ratings.response_annotators, codes)
    label = ScaledLabel("score", "ordinal", "ordinal", ("1", "2", "3", "4", "5"), np.arange(5.0), *told)
    return ratings._replace(values=ratings.values[:, :0], own_labels=(), scaled=(label,))


def false_share(jury: Jury, reports: int) -> float:
    """Share of reports on a jury of equals that name anybody; with no yes at all they are on a scale."""
    random = np.random.default_rng(SEED)
    share = 0
    for _ in range(reports):
        tables = [
            jury_ratings(replace(jury, records=records, passages=passages), task, random)
            for task, (records, passages) in SHAPES.items()
            if task in TASKS
        ]
        tables = tables if jury.prevalence else [on_a_scale(table, random) for table in tables]
        share += any(named(measure_exchange(table), SIGNIFICANT / len(tables)).any() for table in tables)
    return share / reports


def found_share(jury: Jury, studies: int) -> float:
    """Share of studies of one task in which its careless first person is named, and nobody else on more labels."""
    random = np.random.default_rng(SEED)
    found = 0
    for _ in range(studies):
        units = jury if jury.prevalence else replace(jury, records=2 * jury.records)  # one label, errors half as large
        ratings = jury_ratings(units, "generation", random)
        ratings = ratings if jury.prevalence else on_a_scale(ratings, random)
        stands_out = named(measure_exchange(ratings), SIGNIFICANT).sum(axis=1)
        found += bool(stands_out[0] > stands_out[1:].max())
    return found / studies


@pytest.mark.parametrize(
    ("name", "prevalence"),
    [
        ("three of four", 0.5),
        ("five judge all", 0.05),
        pytest.param("three of four", 0.05, marks=pytest.mark.rare),
        pytest.param("five judge all", 0.5, marks=pytest.mark.rare),
    ],
)
def test_a_sample_of_reports_on_equals_hardly_ever_names_anybody(name: str, prevalence: float) -> None:
    jury = replace(JURIES[name], prevalence=prevalence, **ERRORS["one record in seven at random"])
    assert false_share(jury, SAMPLE) <= 0.15


@pytest.mark.soak
@rare_and_common
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("jury", JURIES.values(), ids=JURIES)
def test_equals_are_named_in_seven_reports_of_a_hundred(jury: Jury, error: dict[str, float], prevalence: float) -> None:
    share = false_share(replace(jury, prevalence=prevalence, **error), REPORTS)
    sys.stdout.write(f"named somebody: {share:.3f}\n")
    assert share <= 0.07


CAREFUL = {
    **{name: JURIES[name] for name in ("three judge all", "three of four", "five judge all", "two to five of six")},
    "three of six": Jury(57, annotators=6),
    "three of four, three passages a record": Jury(19, passages=3, annotators=4),
}
CARELESS = {"error": 0.05, "careless": 0.35}


@rare_and_common
def test_a_sample_of_studies_finds_the_careless_one(prevalence: float) -> None:
    jury = replace(CAREFUL["three of four"], prevalence=prevalence, **CARELESS)
    assert found_share(jury, SAMPLE) >= LEAST_FOUND


@pytest.mark.soak
@rare_and_common
@pytest.mark.parametrize("jury", CAREFUL.values(), ids=CAREFUL)
def test_one_who_errs_in_a_third_of_57_units_is_found_in_nine_studies_of_ten(jury: Jury, prevalence: float) -> None:
    share = found_share(replace(jury, prevalence=prevalence, **CARELESS), REPORTS)
    sys.stdout.write(f"found: {share:.3f}\n")
    assert share >= (LEAST_FOUND if prevalence else 0.75)  # one label, of which six people share less


def misread(units: int, random: np.random.Generator) -> Ratings:
    """Four people, one label: three take the same .3 of the units for yes that are no, the first one does not."""
    truth = random.random((units, 1)) < 0.4
    said = truth | (random.random((units, 1)) < 0.3)
    votes = np.concatenate([truth, said, said, said], axis=1) ^ (random.random((units, 4)) < 0.05)
    return ratings_of_matrix(votes.astype(np.float64))


@pytest.mark.soak
def test_one_right_reader_among_four_is_said_to_read_differently_with_three_units() -> None:
    random, sentences = np.random.default_rng(SEED), []
    for _ in range(REPORTS // 4):
        (found,) = measure_agreement([misread(57, random)], (), 200).tasks.values()
        sentences.append([each for each in annotator_sentences(found) if each.startswith("a000")])
    named = [each for (each,) in filter(None, sentences)]
    sys.stdout.write(f"reads differently: {len(named) / len(sentences):.3f}; {named[0]}\n")
    assert all(" reads proper_action differently: " in each and each.count("r0000") == 3 for each in named)
