"""What a plan holds, as `plan.json` has it."""

from typing import Literal

from pydantic import Field

from annotation.labels import TaskName
from annotation.planning._power import LEVEL, POWER, SHARE
from pipeline.schema import Frozen


class Hours(Frozen):
    """Hours of work of all annotators together."""

    low: float = Field(ge=0)
    """Nine of ten campaigns or more end between this and `high`, if those whose pace was measured do the rest."""
    expected: float = Field(ge=0)
    """What is to be expected."""
    high: float = Field(ge=0)
    """See `low`."""


class PlannedPace(Frozen):
    """How long one task takes in one language."""

    task: TaskName
    """The task."""
    language: str
    """Language of the questions."""
    units: int
    """Units of the sample."""
    judgements: int
    """Submissions that they wait for."""
    seconds: float
    """Expected seconds a submission."""
    basis: Literal["measured", "other languages", "assumed"]
    """`measured` in this task and language; in the task's `other languages`, beside what the texts' lengths say; or
    `assumed` from reading speed and lengths alone."""
    timed: int
    """How many units of it were timed."""
    annotators: int
    """How many people worked on these."""


class Stratum(Frozen):
    """One part of the narratives, from which some are drawn."""

    stratum: str
    """Language and type of the narratives, the language, or `all`."""
    narratives: int
    """How many there are."""
    sampled: int
    """How many of them are in the sample."""
    inclusion_probability: float
    """How likely each of them was to be drawn."""


class Difference(Frozen):
    """What `detectable_difference` rests on."""

    power: float = POWER
    """How often a difference of that size is found."""
    level: float = LEVEL
    """Level of the two-sided test."""
    share: float = SHARE
    """Mean of the two rates."""
    votes: int
    """Votes on each answer."""
    narratives: float
    """Narratives that two providers share, on average over pairs, as many as unequal probabilities leave."""
    pairs: int
    """Pairs of providers."""
    comparisons: int
    """Comparisons of a report: all pairs on all labels and on a finding."""
    agreement: float
    """Correlation of two votes on a unit."""
    narrative_correlation: float
    """Correlation of votes on two providers' answers to one narrative."""
    units_measured: int
    """Units with two votes or more behind `agreement`, which is assumed where there are none."""
    narratives_measured: int
    """Narratives behind `narrative_correlation`, which is assumed where there are none."""


class Plan(Frozen):
    """What `plan.json` holds."""

    version: Literal[1] = 1
    """Version of this form."""
    seed: int
    """Seed of the sample."""
    units: dict[TaskName, int]
    """Units of the sample by task."""
    judgements: int
    """Submissions that they wait for, of all annotators together."""
    hours: Hours
    """How long these take."""
    detectable_difference: float | None
    """The smallest difference between two providers' rates that a single planned comparison finds with power .8; None
    where there is none."""
    detectable_corrected: float | None
    """The same after a correction for all comparisons of a report, without which nothing there stands out."""
    narratives: int
    """Narratives in the sample."""
    records: int
    """Answers in the sample."""
    all_narratives: int
    """Narratives in the records that were given."""
    all_records: int
    """Answers in them."""
    overlap: dict[TaskName, int]
    """How many annotators a unit of production waits for."""
    calibration: dict[str, int]
    """Answers that go to calibration, by language; they wait for its overlap instead."""
    difference: Difference | None
    """What the detectable difference rests on; None where nothing can be compared."""
    paces: tuple[PlannedPace, ...]
    """Seconds, units and submissions by task and language."""
    strata: tuple[Stratum, ...]
    """Where the narratives were drawn."""
    sample_sha256: str
    """Of `sample.csv`."""
    remarks: tuple[str, ...] = ()
    """Plain sentences about what is assumed, and what does not count."""
