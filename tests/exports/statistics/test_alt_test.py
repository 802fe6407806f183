"""The alternative annotator test: by hand, as its authors' notebook computes it, and what may be concluded from it."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as run_settings
from hypothesis import strategies as st

from annotation.argilla.labels import LABELS
from exports.report.judge_page import conclusion, conclusion_sentences, shown_alt_test
from exports.statistics.alt_test import LEAST_UNITS, AltTest, Answers, alternative_annotator_test, by_rejections
from exports.statistics.distributions import student_cdf
from exports.statistics.judge import JudgedUnits, measure_judge
from tests.support import oracles
from tests.support.agreement_data import ratings_of_matrix
from tests.support.places import NO_SHARED, SHARED

LGBTEEN = SHARED / "corpora" / "ratings"
PUBLISHED = {
    "gemini_flash": (0.25, 0.71),
    "gemini_pro": (0.0, 0.67),
    "gpt-4o": (0.75, 0.77),
    "llama-31": (0.0, 0.72),
    "gpt-4o-mini": (0.75, 0.76),
    "mistral-v03": (0.25, 0.75),
}
"""Winning rate and advantage probability at epsilon .2: github.com/nitaytech/AltTest, alt_test_example.ipynb."""


def answers_of(people: Mapping[str, Mapping[int, int]], judge: Sequence[int], records: Sequence[int] = ()) -> Answers:
    """People's answers by unit, and the judge's to each unit; a record a unit if none are named."""
    names = sorted(people)
    rows = [(unit, names.index(name), value) for name in names for unit, value in people[name].items()]
    units, numbers, values = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    of_unit = np.array(records or range(len(judge)), dtype=np.int64)
    return Answers(names, units, numbers, values, np.array(judge, dtype=np.int64), of_unit)


def test_a_case_by_hand() -> None:
    # 40 units: on 36 all say yes, on two the judge alone says no, on two anna alone does.
    yes = dict.fromkeys(range(40), 1)
    answers = answers_of({"anna": yes | {2: 0, 3: 0}, "ben": yes, "carla": yes}, [0, 0, *[1] * 38])
    found = alternative_annotator_test(answers, 0.15)
    # Units 0, 1: everybody is nearer to the others than the judge. Units 2, 3: the judge is nearer to ben and carla
    # than anna is; ben agrees with carla, as the judge does, and not with anna, as the judge does: a tie.
    assert [(each.annotator, each.judge_wins, each.person_wins) for each in found.people] == [
        ("anna", 0.95, 0.95),
        ("ben", 0.95, 1.0),
        ("carla", 0.95, 1.0),
    ]
    # anna: mean 0, variance 4/39; ben: mean .05, variance (2 - 40 * .05²)/39; so t is -2.962 and -2.865.
    t = [(0 - 0.15) / (4 / 39 / 40) ** 0.5, (0.05 - 0.15) / (1.9 / 39 / 40) ** 0.5]
    expected = [oracles.stats.t.cdf(t[0], 39), *[oracles.stats.t.cdf(t[1], 39)] * 2]
    assert [each.p for each in found.people] == pytest.approx(expected, abs=1e-10)
    assert (found.winning_rate, found.advantage_probability, found.epsilon) == (1.0, pytest.approx(0.95), 0.15)
    # At .1 the p values are .028 and .080, and the largest that Benjamini and Yekutieli let pass is .027.
    assert alternative_annotator_test(answers, 0.1).winning_rate == 0.0


@pytest.mark.skipif(not LGBTEEN.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize("model", PUBLISHED)
def test_the_figures_are_those_of_the_authors_notebook(model: str) -> None:
    people, models = (
        json.loads((LGBTEEN / f"alttest_lgbteen_{name}.json").read_text(encoding="utf-8")) for name in ("human", "llm")
    )
    units = {unit: number for number, unit in enumerate(sorted(models[model]))}
    said = [*people.values(), *models.values()]
    codes = {answer: code for code, answer in enumerate(sorted({answer for each in said for answer in each.values()}))}
    coded = {name: {units[unit]: codes[answer] for unit, answer in own.items()} for name, own in people.items()}
    judge = [codes[models[model][unit]] for unit in units]
    found = alternative_annotator_test(answers_of(coded, judge), 0.2)
    assert (found.winning_rate, round(found.advantage_probability or 0, 2)) == PUBLISHED[model]


def plain_test(answers: Answers, epsilon: float) -> tuple[float | None, float | None]:
    """Winning rate and advantage probability, unit by unit in plain Python."""
    said: dict[int, dict[int, int]] = {}

    def near(value: int, others: Sequence[int]) -> float:
        """`accuracy` and `neg_rmse` of the notebook."""
        if answers.places is None:
            return float(np.mean([value == each for each in others]))
        far = [float(answers.places[value] - answers.places[each]) ** 2 for each in others]
        return round(-(float(np.mean(far)) ** 0.5), 10)

    for unit, person, value in zip(answers.units.tolist(), answers.people.tolist(), answers.values, strict=True):
        said.setdefault(unit, {})[person] = int(value)
    p_values, shares = [], []
    for person in range(len(answers.annotators)):
        likenesses = []
        for unit, own in said.items():
            others, judge = [value for other, value in own.items() if other != person], int(answers.judge[unit])
            if person in own and others and judge >= 0:
                likenesses.append([near(each, others) for each in (own[person], judge)])
        if len(likenesses) >= LEAST_UNITS:
            differences = [int(theirs >= judges) - int(judges >= theirs) for theirs, judges in likenesses]
            p_values.append(float(oracles.stats.ttest_1samp(differences, epsilon, alternative="less").pvalue))
            shares.append(float(np.mean([judges >= theirs for theirs, judges in likenesses])))
    if not shares:
        return None, None
    return float(np.mean(oracles.stats.false_discovery_control(p_values, method="by") <= 0.05)), float(np.mean(shares))


@run_settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.sampled_from([0.4, 0.7, 1.0]),
    st.sampled_from([0.05, 0.2]),
    st.sampled_from([(), (0, 1, 2), (0.1, 1.6, 1000)]),
)
def test_the_test_is_what_plain_loops_and_scipy_give(
    seed: int, people: int, seen: float, epsilon: float, places: tuple[float, ...]
) -> None:
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, 90)
    said = np.where(random.random((people + 1, 90)) < 0.8, truth, random.integers(0, 3, (people + 1, 90)))
    own = {
        f"p{person}": {unit: int(said[person, unit]) for unit in range(90) if random.random() < seen or unit < 2}
        for person in range(people)
    }
    answers = answers_of(own, [int(each) if random.random() < 0.9 else -1 for each in said[people]])
    answers = answers._replace(places=np.array(places) if places else None)
    found = alternative_annotator_test(answers, epsilon)
    for figure, expected in zip(
        (found.winning_rate, found.advantage_probability), plain_test(answers, epsilon), strict=True
    ):
        assert figure == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("degrees", [1, 2, 29, 30, 879, 2001, 40_000])
@pytest.mark.parametrize("value", [-9.0, -2.5, -0.3, 0.0, 1.7, 6.0])
def test_students_t_is_that_of_scipy(value: float, degrees: int) -> None:
    assert student_cdf(value, degrees) == pytest.approx(oracles.stats.t.cdf(value, degrees), abs=1e-7)


@run_settings(max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_what_benjamini_and_yekutieli_reject_is_what_scipy_rejects(p_values: list[float]) -> None:
    small = [p**3 for p in p_values]
    assert by_rejections(small) == (oracles.stats.false_discovery_control(small, method="by") <= 0.05).tolist()


def drawn(people: int, units: int, error: float, judge: float, seats: int = 0, passages: int = 1) -> AltTest:
    """People who err so often, and a judge who does; `seats` of them answer each unit, all where it is 0."""
    random = np.random.default_rng(3)
    truth = random.random(units) < 0.4
    said = truth ^ (random.random((people, units)) < error)
    here = np.argsort(random.random((people, units)), axis=0) < (seats or people)
    own = {
        f"p{person}": {unit: int(said[person, unit]) for unit in range(units) if here[person, unit]}
        for person in range(people)
    }
    stated = [int(each) for each in truth ^ (random.random(units) < judge)]
    return alternative_annotator_test(answers_of(own, stated, [unit // passages for unit in range(units)]))


def test_a_judge_may_stand_in_for_any_for_most_who_are_named_for_none_or_nobody_is_tested() -> None:
    found = drawn(people=4, units=150, error=0.1, judge=0.1)
    assert (found.conclusion, found.winning_rate, found.winning_rate_by_record) == ("any", 1.0, 1.0)
    said = "may stand in for any of these 4 people; it is behind none of them by ε = .15 or more."
    assert conclusion(found) == said
    bad = drawn(people=4, units=150, error=0.05, judge=0.35)
    assert (bad.conclusion, bad.winning_rate) == ("not_shown", 0.0)
    assert conclusion(bad).startswith("is not shown to be able to stand in for these people")
    random = np.random.default_rng(5)
    truth = random.random(800) < 0.4
    people = {
        name: dict(enumerate((truth ^ (random.random(800) < error)).astype(int).tolist()))
        for name, error in {"anna": 0.0, "ben": 0.3, "carla": 0.3, "dan": 0.3}.items()
    }
    found = alternative_annotator_test(answers_of(people, (truth ^ (random.random(800) < 0.3)).astype(int).tolist()))
    assert found.conclusion == "most"
    assert conclusion(found) == (
        "may stand in for 3 of these 4 people (ben, carla, dan); that it is behind by less than ε = .15 is not shown "
        "of anna."
    )
    none = np.zeros(0, dtype=np.int64)
    nothing = alternative_annotator_test(Answers(["anna"], none, none, none, np.array([1]), np.array([0])))
    few = drawn(people=3, units=29, error=0.05, judge=0.05)
    for found, names in ((nothing, ("anna",)), (few, ("p0", "p1", "p2"))):
        told = (found.winning_rate, found.advantage_probability, found.people, found.not_tested)
        assert told == (None, None, (), names)


@pytest.mark.parametrize(
    ("shape", "expected", "words"),
    [
        ({"people": 2, "units": 200}, "few_people", "too few people to tell: 2 of the 3"),
        ({"people": 3, "units": 29}, "few_people", "too few people to tell: 0 of the 3"),
        ({"people": 4, "units": 200, "seats": 2}, "few_units", "too few units to tell: 0 of the 3"),
        ({"people": 3, "units": 145, "passages": 5}, "few_units", "30 records"),
    ],
)
def test_of_too_few_people_or_units_nothing_is_concluded(shape: dict[str, int], expected: str, words: str) -> None:
    found = drawn(**shape, error=0.05, judge=0.05)
    assert found.conclusion == expected
    assert words in conclusion(found)
    assert shown_alt_test(found) == (None, None)


def test_a_judge_who_always_gives_the_usual_answer_may_not_stand_in_for_anybody() -> None:
    random = np.random.default_rng(2)
    truth = random.random(200) < 0.05
    ratings = ratings_of_matrix((truth[:, np.newaxis] ^ (random.random((200, 3)) < 0.01)).astype(np.float64))
    units = zip((ratings.records[record] for record in ratings.unit_records), ratings.unit_chunks, strict=True)
    label = LABELS["generation"][0]
    task = measure_judge(ratings, JudgedUnits({unit: {label: (False, 0.0)} for unit in units}, {}, {}), 200, 0)
    found = task.labels[label].alt_test
    assert (found.winning_rate, found.conclusion) == (1.0, "by_chance")
    assert "gives the usual answer everywhere" in "".join(conclusion_sentences(task))
