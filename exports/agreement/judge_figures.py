"""The figures of a judge against the jury in `agreement.json`: a model, a verifier, whoever answers by label."""

from typing import Literal

from annotation.labels import TaskName
from exports.agreement.figures import Interval, RefusedReason
from pipeline.schema import Frozen

JudgeReason = Literal[
    "no_compared_units",
    "judge_never_says_yes",
    "jury_never_says_yes",
    "nobody_says_yes",
    "constant_both_raters",
    "jury_is_constant",
]
RefusedInterval = RefusedReason | Literal["few_units"]


class Confusion(Frozen):
    """The judge's answers against those that count as right; a share that is undefined is None."""

    tp: int
    """Units on which both say yes."""
    fp: int
    """Units on which only the judge says yes."""
    fn: int
    """Units on which only the other side says yes."""
    tn: int
    """Units on which both say no."""
    precision: float | None
    """tp / (tp + fp)."""
    recall: float | None
    """tp / (tp + fn)."""
    f1: float | None
    """2·tp / (2·tp + fp + fn)."""
    accuracy: float | None
    """(tp + tn) / units."""
    cohen_kappa: float | None
    """Cohen's kappa."""
    undefined: dict[str, JudgeReason]
    """Why a figure is None, by its name."""


class ReliabilityBin(Frozen):
    """The units whose probability of yes, as the judge states it, lies in one tenth of the scale."""

    low: float
    """Lower end, included."""
    high: float
    """Upper end, included in the last bin only."""
    n: int
    """Units in it."""
    mean_confidence: float | None
    """Mean probability that the judge states; None in an empty bin."""
    share_yes: float | None
    """Share of them on which the majority of the jury says yes; None in an empty bin."""


class Calibration(Frozen):
    """Whether the judge's probabilities of yes are what they say; a figure that is undefined is None."""

    bins: tuple[ReliabilityBin, ...]
    """Ten bins of the same width, from 0 to 1."""
    brier: float | None
    """Mean squared distance between probability and the jury's yes (1) or no (0); 0 is best (Brier 1950)."""
    ece: float | None
    """Expected calibration error: mean distance of share and mean probability over the bins, weighted by units."""
    auc: float | None
    """Probability that a unit with yes is given a higher one than a unit with no; ties count half (Hanley 1982)."""
    undefined: dict[str, JudgeReason]
    """Why a figure is None, by its name."""


class JudgeAgainstAnnotator(Frozen):
    """The judge against one annotator on one label."""

    annotator: str
    """The annotator."""
    confusion: Confusion
    """Over the units that both answered; her answers count as right."""


class JudgedLabel(Frozen):
    """The judge on one label, against the majority of the jury."""

    n_judged: int
    """Units of the export that the judge answered."""
    n_compared: int
    """Those of them on which the jury has a majority; one vote is one."""
    n_ties: int
    """Those of them on which the jury ties; they are left out."""
    n_without_votes: int
    """Those of them on which nobody of the jury answered this label."""
    confusion: Confusion
    """Over the compared units; the majority counts as right."""
    interval: Interval | None
    """95 % interval of kappa from resampled records; None where it is refused."""
    refused_interval: RefusedInterval | None
    """Why there is none; `few_units` below 20 compared units."""
    calibration: Calibration
    """Over the compared units."""
    annotators: tuple[JudgeAgainstAnnotator, ...]
    """Against each annotator who shares a unit with the judge, by name."""


class JudgedTask(Frozen):
    """A judge on one task that the export has."""

    n_units: int
    """Units of the export."""
    n_judged: int
    """Those with a usable judgement."""
    n_not_judged: int
    """Those without one."""
    n_unknown: int
    """Usable judgements of units that the export does not hold."""
    statuses: dict[str, int]
    """Judgements that cannot be used, by their status."""
    labels: dict[str, JudgedLabel]
    """The labels that the judge answered, in the order of the task."""


class JudgeAgreement(Frozen):
    """One judge against the jury."""

    model: str
    """Its name as its lines state it; the name of the file where they state none."""
    tasks: dict[TaskName, JudgedTask]
    """The tasks of the export on which it has a judgement."""
    other_tasks: dict[TaskName, int]
    """Its judgements on tasks that have no file in the export."""


class JudgeFile(Frozen):
    """A file of judgements."""

    file: str
    """Its name without folder."""
    sha256: str
    """Of the file's bytes, in hexadecimal."""
    lines: int
    """Lines that are not blank."""
    bad_lines: int
    """Those that are no judgement or a second one of their unit, and are left out."""
