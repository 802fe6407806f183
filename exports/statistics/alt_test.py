"""The alternative annotator test: whether a judge stands for the others at least as well as one of them does.

Each annotator is left out in turn. On each of their units that the judge answered, they and the judge are compared by
the share of the other people's answers that are theirs or, on an ordinal or interval scale, by the root of the mean
squared distance to them; who has the larger share or is nearer wins the unit, and both win a tie.

Source: Calderon, Reichart & Dror 2025; exports/contracts/agreement.md#may-a-judge-stand-in.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from exports.statistics.distributions import rounded, student_cdf
from exports.statistics.ratings import FloatArray, IntArray
from pipeline.core.schema import Frozen

EPSILON = 0.15  # What a judge may be worse than a trained annotator and be preferred: .2 for experts, .1 for a crowd
LEAST_UNITS = 30  # Units that a person shares with another one and with the judge; with fewer they are not tested
LEAST_PEOPLE = 3  # People tested, behind a conclusion: of two who differ nobody can tell which one is off
LEAST_RECORDS = 30  # Records of a person behind a conclusion: fewer say too little of how much records differ
_LEVEL = 0.05  # False discovery rate of Benjamini and Yekutieli
_ROUNDING = 1e-12  # What is left of it, as a share of what is summed
_PASSED = 0.5  # Winning rate from which a judge passes

Conclusion = Literal["any", "most", "not_shown", "by_chance", "few_people", "few_units"]


class AltTestPerson(Frozen):
    """One person left out, against the judge."""

    annotator: str
    """The annotator."""
    n_units: int
    """Her units that the judge answered and somebody else too."""
    n_units_two_others: int
    """Those of them that at least two others answered."""
    n_records: int
    """Records of these units."""
    judge_wins: float
    """Share of the units that the judge wins or ties."""
    person_wins: float
    """Share of the units that she wins or ties."""
    p: float
    """One-sided paired t-test over units that she is better by less than epsilon, as published."""
    won: bool
    """Whether the judge wins against her, as published: p after Benjamini and Yekutieli at .05."""
    p_by_record: float
    """The same test with the variance between whole records, one of which is imagined: the judge loses all of it."""
    counts: bool
    """Whether she counts for the conclusion: 30 units of 30 records that at least two others answered."""
    won_by_record: bool
    """Whether the judge wins by that p, after the same correction over those who count; never against the others."""


class AltTest(Frozen):
    """The alternative annotator test of a judge on one label."""

    winning_rate: float | None
    """Share of the people tested against whom the judge wins, as published; None where nobody can be tested."""
    advantage_probability: float | None
    """Mean share of units that the judge wins or ties, over the people tested; None where nobody can be tested."""
    epsilon: float
    """What the judge may be worse and still be preferred."""
    winning_rate_by_record: float | None
    """The winning rate with the variance between whole records, over those who count for the conclusion; None where
    there are none."""
    people: tuple[AltTestPerson, ...]
    """Those tested, by name: at least 30 units that somebody else and the judge answered too."""
    not_tested: tuple[str, ...]
    """Names of those with fewer such units."""
    conclusion: Conclusion
    """What may be concluded.

    `any`, `most`: it may stand in for each of those who count, or for at least half of them; `not_shown`: that is not
    shown; `by_chance`: that it agrees with their majority by more than chance is not shown; `few_people`: fewer than
    three people tested; `few_units`: fewer than three who count.
    """

    @property
    def counting(self) -> tuple[AltTestPerson, ...]:
        return tuple(each for each in self.people if each.counts)


class Answers(NamedTuple):
    annotators: Sequence[str]
    units: IntArray  # Number of the unit of each answer
    people: IntArray  # Number of the annotator of each answer
    values: IntArray
    judge: IntArray  # The judge's answer to each unit; below 0 where it gave none
    records: IntArray  # Number of the record of each unit
    places: FloatArray | None = None  # Where each value stands; None where only the same answer is near


class _Compared(NamedTuple):
    """One answer a row: a person and the judge against the others on a unit."""

    people: IntArray
    records: IntArray
    others: IntArray  # How many other people answered the unit
    judge_wins: IntArray  # 1 where the judge wins or ties
    person_wins: IntArray  # 1 where the person wins or ties


def alternative_annotator_test(answers: Answers, epsilon: float = EPSILON, beyond_chance: bool = True) -> AltTest:
    """`beyond_chance`: who gives the usual answer everywhere loses few units where one answer is rare."""
    compared = _compare(answers)
    counts = np.bincount(compared.people, minlength=len(answers.annotators))
    tested = sorted(np.flatnonzero(counts >= LEAST_UNITS).tolist(), key=answers.annotators.__getitem__)
    rows = [_Compared(*(column[compared.people == person] for column in compared)) for person in tested]
    differences = [(row.person_wins - row.judge_wins).astype(np.float64) for row in rows]
    p_units = [_t_test(each, np.arange(len(each)), epsilon) for each in differences]
    p_records = [
        _t_test(*_with_a_loss(each, row.records), epsilon) for each, row in zip(differences, rows, strict=True)
    ]
    counting = [_counts(row) for row in rows]
    won = by_rejections(p_units)
    won_counting = iter(by_rejections([p for p, counts in zip(p_records, counting, strict=True) if counts]))
    won_records = [counts and next(won_counting) for counts in counting]
    people = tuple(
        AltTestPerson(
            annotator=answers.annotators[person],
            n_units=len(row.people),
            n_units_two_others=int((row.others >= 2).sum()),
            n_records=len(np.unique(row.records)),
            judge_wins=float(row.judge_wins.mean()),
            person_wins=float(row.person_wins.mean()),
            p=rounded(p_unit),
            won=won_unit,
            p_by_record=rounded(p_record),
            counts=counts,
            won_by_record=won_record,
        )
        for person, row, p_unit, won_unit, p_record, counts, won_record in zip(
            tested, rows, p_units, won, p_records, counting, won_records, strict=True
        )
    )
    by_record = sum(won_records) / sum(counting) if any(counting) else None
    return AltTest(
        winning_rate=sum(won) / len(people) if people else None,
        advantage_probability=sum(each.judge_wins for each in people) / len(people) if people else None,
        epsilon=epsilon,
        winning_rate_by_record=by_record,
        people=people,
        not_tested=tuple(sorted(set(answers.annotators) - {each.annotator for each in people})),
        conclusion=_conclude(len(people), sum(counting), by_record, beyond_chance),
    )


def _compare(answers: Answers) -> _Compared:
    kinds = int(max(answers.values.max(initial=0), answers.judge.max(initial=0))) + 1
    n_units = len(answers.judge)
    votes = np.bincount(answers.units * kinds + answers.values, minlength=n_units * kinds).reshape(-1, kinds)
    others = votes.sum(axis=1)[answers.units] - 1
    kept = (others >= 1) & (answers.judge[answers.units] >= 0)
    units, values = answers.units[kept], answers.values[kept]
    judge = answers.judge[units]
    ahead = votes[units, judge] - (values == judge) - (votes[units, values] - 1.0)
    if answers.places is not None:
        # By how much her sum of squared distances to the others is greater than the judge's.
        places = answers.places - np.median(answers.places)
        own, theirs, said = places[values], places[judge], places[answers.values]
        others_sum = np.bincount(answers.units, said, n_units)[units] - own
        ahead = 2 * others_sum - others[kept] * (theirs + own)
        size = np.bincount(answers.units, np.abs(said), n_units)[units] + others[kept] * (np.abs(theirs) + np.abs(own))
        ahead = np.where(np.abs(ahead) <= _ROUNDING * size, 0, ahead * (theirs - own))
    return _Compared(
        answers.people[kept],
        answers.records[units],
        others[kept],
        (ahead >= 0).astype(np.int64),
        (ahead <= 0).astype(np.int64),
    )


def _t_test(differences: FloatArray, clusters: IntArray, epsilon: float) -> float:
    """One-sided p that the mean is epsilon or more, against less, with the variance between clusters."""
    n = len(differences)
    mean = float(differences.mean())
    _, places = np.unique(clusters, return_inverse=True)
    sums = np.bincount(places, differences - mean)
    n_clusters = len(sums)
    if n_clusters < 2:
        return 1.0
    error = math.sqrt(n_clusters / (n_clusters - 1) * float((sums**2).sum())) / n
    # What is left of rounding is no variation: then the mean itself decides.
    if error < 1e-12:
        return 0.0 if mean < epsilon else 1.0
    return student_cdf((mean - epsilon) / error, n_clusters - 1)


def _with_a_loss(differences: FloatArray, records: IntArray) -> tuple[FloatArray, IntArray]:
    """One more record of the usual size, all lost: few on which it never lost would be taken for certainty."""
    size = math.ceil(len(records) / len(np.unique(records)))
    return np.append(differences, np.ones(size)), np.append(records, np.full(size, -1))


def by_rejections(p_values: Sequence[float]) -> list[bool]:
    """Which hypotheses the procedure of Benjamini & Yekutieli 2001 rejects at .05, in their order."""
    n = len(p_values)
    order = sorted(range(n), key=p_values.__getitem__)
    harmonic = sum(1 / rank for rank in range(1, n + 1))
    passing = [rank for rank, place in enumerate(order, start=1) if p_values[place] <= rank / n * _LEVEL / harmonic]
    rejected = set(order[: max(passing, default=0)])
    return [place in rejected for place in range(n)]


def _counts(row: _Compared) -> bool:
    records = row.records[row.others >= 2]
    return len(records) >= LEAST_UNITS and len(np.unique(records)) >= LEAST_RECORDS


def _conclude(tested: int, counting: int, by_record: float | None, beyond_chance: bool) -> Conclusion:
    if tested < LEAST_PEOPLE:
        return "few_people"
    if by_record is None or counting < LEAST_PEOPLE:
        return "few_units"
    if by_record < _PASSED:
        return "not_shown"
    if not beyond_chance:
        return "by_chance"
    return "any" if by_record == 1 else "most"
