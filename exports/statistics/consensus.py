"""One label for each unit from its votes (exports/contracts/agreement.md#annotators-and-consensus)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.statistics.distributions import wilson_interval
from exports.statistics.ratings import (
    YES,
    BoolArray,
    FloatArray,
    IntArray,
    LabelArray,
    Ratings,
    ScaledLabel,
    label_votes,
)
from pipeline.core.schema import Frozen

_MIN_TRIPLED_UNITS = 10  # Units with three ratings or more: two raters leave two of the model's five figures open
_PRIOR = 0.5  # Imagined ratings on each side of an annotator's two rates: keeps them off 0 and 1, and weighs little
_TOLERANCE = 1e-9  # The fit ends when the log-likelihood grows by less than this for each rating
_MAX_ITERATIONS = 1000
_SMALLEST = 1e-12  # Rates are kept this far from 0 and 1, so that their logarithms exist without a prior too


class DawidSkene(NamedTuple):
    """The fitted model; NaN stands where it cannot tell."""

    posterior: FloatArray  # Probability of yes for each unit; NaN for a unit that no identified annotator rated
    sensitivity: FloatArray  # P(they say yes | yes is right) of each annotator; NaN where not identified
    specificity: FloatArray  # P(they say no | no is right) of each annotator; NaN where not identified
    prevalence: float  # Share of units where yes is right
    loglik: float  # Log-likelihood of the ratings, without the prior


def dawid_skene(units: IntArray, annotators: IntArray, values: LabelArray, prior: float = _PRIOR) -> DawidSkene | None:
    """The model of one label; None where it is not identified by the ratings, or they do not vary.

    It needs units that three annotators or more rated; annotators who share none with those, directly or not, are left
    out. `prior` is imagined ratings on each side of each rate; 0 gives maximum likelihood.
    """
    kept = _identified_ratings(units, annotators, values)
    if len(np.unique(values[kept])) < 2:
        return None
    unit_numbers, unit = np.unique(units[kept], return_inverse=True)
    rater_numbers, rater = np.unique(annotators[kept], return_inverse=True)
    fitted = _fit(unit, rater, values[kept] == YES, prior)

    def spread(found: FloatArray, numbers: IntArray, of: IntArray) -> FloatArray:
        whole = np.full(int(of.max()) + 1, np.nan)
        whole[numbers] = found
        return whole

    return fitted._replace(
        posterior=spread(fitted.posterior, unit_numbers, units),
        sensitivity=spread(fitted.sensitivity, rater_numbers, annotators),
        specificity=spread(fitted.specificity, rater_numbers, annotators),
    )


def _identified_ratings(units: IntArray, annotators: IntArray, values: LabelArray) -> BoolArray:
    """Which ratings are by annotators of a group with enough units that three of its members rated."""
    given = values >= 0
    kept = np.zeros(len(values), dtype=np.bool_)
    if not given.any():
        return kept
    unit, rater = units[given], annotators[given]
    group = groups_of(unit, rater, int(rater.max()) + 1)[rater]
    tripled = np.bincount(unit) >= 3
    _, first = np.unique(unit, return_index=True)
    counted = first[tripled[unit[first]]]
    enough = np.bincount(group[counted], minlength=int(group.max()) + 1) >= _MIN_TRIPLED_UNITS
    kept[given] = enough[group]
    return kept


def groups_of(unit: IntArray, rater: IntArray, n_raters: int) -> IntArray:
    """The group of each annotator: its smallest number; sharing a unit puts two annotators into one group."""
    group = np.arange(n_raters)
    while True:
        smallest = np.full(int(unit.max(initial=-1)) + 1, n_raters)
        np.minimum.at(smallest, unit, group[rater])
        merged = group.copy()
        np.minimum.at(merged, rater, smallest[unit])
        if np.array_equal(merged, group):
            return group
        group = merged


def _fit(unit: IntArray, rater: IntArray, yes: BoolArray, prior: float) -> DawidSkene:
    """Started at the votes' shares; of the two mirrored solutions that in which annotators are right more often."""
    said = 2 * rater + yes  # Who said what, as one number
    size = int(said.max()) // 2 * 2 + 2
    counts = np.bincount(said, minlength=size).reshape(-1, 2).astype(np.float64)
    posterior = np.bincount(unit, weights=yes) / np.bincount(unit)
    before = -np.inf
    for _ in range(_MAX_ITERATIONS):
        # The M step: the rates that fit the posterior best.
        where_yes = np.bincount(said, weights=posterior[unit], minlength=size).astype(np.float64).reshape(-1, 2)
        prevalence = float(np.clip(posterior.mean(), _SMALLEST, 1 - _SMALLEST))
        hits, false_alarms = _share_of_yes(where_yes, prior), _share_of_yes(counts - where_yes, prior)
        # The E step: the probability of yes at these rates.
        log_hits, log_alarms = (np.log(np.column_stack([1 - each, each]).ravel()) for each in (hits, false_alarms))
        log_yes = np.log(prevalence) + np.bincount(unit, weights=log_hits[said])
        log_no = np.log1p(-prevalence) + np.bincount(unit, weights=log_alarms[said])
        together = np.logaddexp(log_yes, log_no)
        posterior, loglik = np.exp(log_yes - together), float(together.sum())
        both = np.concatenate([hits, false_alarms])
        penalised = loglik + float(prior * (np.log(both) + np.log1p(-both)).sum())
        if penalised - before < _TOLERANCE * len(unit):
            break
        before = penalised
    if hits.mean() < false_alarms.mean():
        return DawidSkene(1 - posterior, false_alarms, 1 - hits, 1 - prevalence, loglik)
    return DawidSkene(posterior, hits, 1 - false_alarms, prevalence, loglik)


def _share_of_yes(votes: FloatArray, prior: float) -> FloatArray:
    shares = (votes[:, 1] + prior) / np.maximum(votes.sum(axis=1) + 2 * prior, _SMALLEST)
    return np.asarray(np.clip(shares, _SMALLEST, 1 - _SMALLEST), dtype=np.float64)


ConsensusRule = Literal["majority", "ds"]
ConsensusSource = Literal["single", "unanimous", "majority", "ds", "adjudicated"]
UnitLabel = tuple[str, str, str]  # Record, passage (empty outside retrieval) and label; no two tasks share a label


class ConsensusLabel(NamedTuple):
    task: TaskName
    label: str
    record_uuid: str
    chunk_id: str
    n_yes: int
    n_no: int
    vote_share: float | None  # Share of yes among the votes; None without any
    majority: bool | None  # What most said; None where they tie or nobody voted
    posterior: float | None  # Dawid–Skene probability of yes; None where the model is not identified
    consensus: bool | None  # An adjudicator's decision, or by the rule; None where that tells none
    consensus_source: ConsensusSource | None  # `single` is one voice alone, `unanimous` are two or more


def consensus(
    ratings: Ratings, decisions: Mapping[UnitLabel, bool] | None = None, rule: ConsensusRule = "majority"
) -> Iterator[ConsensusLabel]:
    """A label for each unit and label of the task, in their order; `decisions` of adjudicators come before all votes.

    The rule `ds` takes the more probable value where the Dawid–Skene model knows one, and the majority elsewhere.
    """
    columns = [_labels_of_column(ratings, column, decisions or {}, rule) for column in range(len(ratings.labels))]
    for unit in zip(*columns, strict=True):
        yield from unit


def _labels_of_column(
    ratings: Ratings, column: int, decisions: Mapping[UnitLabel, bool], rule: ConsensusRule
) -> Iterator[ConsensusLabel]:
    label = ratings.labels[column]
    counts = label_votes(ratings, column)
    posteriors = label_posterior(ratings, column)
    votes = zip(counts.ones.tolist(), counts.zeros.tolist(), posteriors.tolist(), strict=True)
    for (record_uuid, chunk_id), (n_yes, n_no, probability) in zip(ratings.unit_keys, votes, strict=True):
        posterior = None if np.isnan(probability) else probability
        value, source = _settle(n_yes, n_no, posterior, decisions.get((record_uuid, chunk_id, label)), rule)
        yield ConsensusLabel(
            task=ratings.task,
            label=label,
            record_uuid=record_uuid,
            chunk_id=chunk_id,
            n_yes=n_yes,
            n_no=n_no,
            vote_share=n_yes / (n_yes + n_no) if n_yes + n_no else None,
            majority=None if n_yes == n_no else n_yes > n_no,
            posterior=posterior,
            consensus=value,
            consensus_source=source,
        )


def _settle(
    n_yes: int, n_no: int, posterior: float | None, decision: bool | None, rule: ConsensusRule
) -> tuple[bool | None, ConsensusSource | None]:
    if decision is not None:
        return decision, "adjudicated"
    if rule == "ds" and posterior is not None and posterior != 0.5:
        return posterior > 0.5, "ds"
    if n_yes == n_no:
        return None, None
    if n_yes + n_no == 1:
        return n_yes == 1, "single"
    return n_yes > n_no, "unanimous" if min(n_yes, n_no) == 0 else "majority"


def scale_consensus(label: ScaledLabel, n_units: int, unanimous: bool = False) -> FloatArray:
    """The place of each unit: of most ratings on a nominal scale, the median on an ordinal, the mean elsewhere.

    NaN where nobody rated it or two values tie: are equally frequent, or are the two in the middle and differ. With
    `unanimous` only units have one whose ratings are all the same.
    """
    found = np.full(n_units, np.nan)
    order = np.lexsort((label.codes, label.units))
    units, codes = label.units[order], label.codes[order]
    there, starts, counts = np.unique(units, return_index=True, return_counts=True)
    if not len(there):
        return found
    first, last = codes[starts], codes[starts + counts - 1]
    if unanimous:
        low, high = first, last
    elif label.scale == "interval":
        found[there] = np.bincount(units, label.places[codes])[there] / counts
        return found
    elif label.scale == "ordinal":
        low, high = codes[starts + (counts - 1) // 2], codes[starts + counts // 2]
    else:
        pairs, votes = np.unique(units * len(label.values) + codes, return_counts=True)
        of, value = np.divmod(pairs, len(label.values))
        most = votes == np.maximum.reduceat(votes, np.searchsorted(of, there))[np.searchsorted(there, of)]
        low, high = np.full(n_units, len(label.values)), np.full(n_units, -1)
        np.minimum.at(low, of[most], value[most])
        np.maximum.at(high, of[most], value[most])
        low, high = low[there], high[there]
    found[there] = np.where(low == high, label.places[low], np.nan)
    return found


def label_posterior(ratings: Ratings, column: int) -> FloatArray:
    """The Dawid–Skene probability of yes on one label for each unit; NaN where the model does not tell."""
    fitted = dawid_skene(ratings.units, ratings.response_annotators, ratings.values[:, column])
    return np.full(len(ratings.unit_records), np.nan) if fitted is None else fitted.posterior


def unused_decisions(tables: Sequence[Ratings], decisions: Mapping[UnitLabel, bool]) -> list[UnitLabel]:
    """The decisions on units that have no response to the label's task in any of the tables, sorted."""
    wanted = {key[:2] for key in decisions}
    there = {
        (table.task, record, chunk_id)
        for table in tables
        for record, chunk_id in table.unit_keys
        if (record, chunk_id) in wanted
    }
    task_of = {label: task for task, labels in LABELS.items() for label in labels}
    return sorted(key for key in decisions if (task_of[key[2]], *key[:2]) not in there)


class ControlVotes(NamedTuple):
    known: bool  # The known answer
    n_yes: int
    n_no: int

    @property
    def majority(self) -> bool | None:
        return None if self.n_yes == self.n_no else self.n_yes > self.n_no


ControlLabel = tuple[TaskName, str, str, str]  # Task, record, passage (empty outside retrieval) and label


class RightShare(Frozen):
    """How many labels are right."""

    n: int
    """Labels."""
    n_right: int
    """Those of them that are the known answer."""
    share: float
    """Their share."""
    low: float
    """Lower end of Wilson's 95 % interval."""
    high: float
    """Upper end."""


class AuditedLabel(Frozen):
    """One label on the controls on which annotators have a majority."""

    task: TaskName
    """The task."""
    label: str
    """The label."""
    n_decided: int
    """Controls on which adjudicators decided."""
    n_changed: int
    """Those of them on which they decided against the majority."""
    n_ties: int
    """Controls on which annotators tie; they are in neither share."""
    before: RightShare
    """With what most annotators say."""
    after: RightShare
    """With what adjudicators decided, where they did."""


class Audit(Frozen):
    """What adjudicators' decisions did to the labels."""

    version_before: str
    """The version of labels that are the majority's: `votes`."""
    version_after: str
    """The version of labels with these decisions: `votes+` and the first twelve digits of the decisions' SHA-256."""
    n_decisions: int
    """Decisions on labels of units, controls or not."""
    n_disputed: int
    """Those of them that settle a dispute of a judge with the jury."""
    labels: tuple[AuditedLabel, ...]
    """Each label that controls have a known answer to, in the order of the tasks; empty without controls."""


def measure_audit(
    controls: Mapping[ControlLabel, ControlVotes], decisions: Mapping[UnitLabel, bool], n_disputed: int, sha256: str
) -> Audit:
    by_label: dict[tuple[TaskName, str], dict[ControlLabel, ControlVotes]] = {}
    for key, votes in controls.items():
        by_label.setdefault((key[0], key[3]), {})[key] = votes
    measured = [
        _measure(task, label, by_label.get((task, label), {}), decisions) for task in TASKS for label in LABELS[task]
    ]
    return Audit(
        version_before="votes",
        version_after=f"votes+{sha256[:12]}",
        n_decisions=len(decisions),
        n_disputed=n_disputed,
        labels=tuple(each for each in measured if each),
    )


def _measure(
    task: TaskName, label: str, votes: Mapping[ControlLabel, ControlVotes], decisions: Mapping[UnitLabel, bool]
) -> AuditedLabel | None:
    told = {key[1:]: (each.known, each.majority) for key, each in votes.items() if each.majority is not None}
    if not told:
        return None
    decided = {key: decisions[key] for key in told if key in decisions}
    return AuditedLabel(
        task=task,
        label=label,
        n_decided=len(decided),
        n_changed=sum(told[key][1] != value for key, value in decided.items()),
        n_ties=len(votes) - len(told),
        before=_share([known == majority for known, majority in told.values()]),
        after=_share([known == decided.get(key, majority) for key, (known, majority) in told.items()]),
    )


def _share(right: list[bool]) -> RightShare:
    low, high = wilson_interval(sum(right), len(right))
    return RightShare(n=len(right), n_right=sum(right), share=sum(right) / len(right), low=low, high=high)
