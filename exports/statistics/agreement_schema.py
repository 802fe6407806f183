"""The whole of `agreement.json`: every figure, and where there is none, why (exports/contracts/agreement.md)."""

from typing import Literal

from pydantic import Field

from annotation.argilla.labels import TaskName
from exports.csv.schema import Work
from exports.statistics.alt_test import AltTest
from exports.statistics.consensus import Audit
from exports.statistics.ratings import RATINGS as RATINGS
from exports.statistics.ratings import InputFile, ScaleName, Weights
from exports.statistics.ratings import MeasuredTask as MeasuredTask
from exports.statistics.table import AnnotatorPair, LabelFigures, PairFigures, UndefinedReason
from pipeline.core.schema import Frozen

JudgeReason = Literal[
    "no_compared_units",
    "judge_never_says_yes",
    "jury_never_says_yes",
    "nobody_says_yes",
    "constant_both_raters",
    "jury_is_constant",
]
RefusedReason = Literal["undefined", "undefined_resamples", "single_record", "constant", "too_few_rare_ratings", "many"]
RefusedInterval = RefusedReason | Literal["few_units"]
IntervalMethod = Literal["bca", "expanded_percentile", "one-sided", "bounded"]
LabelWarning = Literal[
    "NO_OVERLAP",
    "SINGLE_ANNOTATOR",
    "FEW_ITEMS",
    "FEW_CLUSTERS",
    "RARE_CLASS",
    "SAMPLE_SIZE",
    "UNDEFINED_RESAMPLES",
    "CONSTANT_RATER",
    "PARADOX",
    "SELECTION",
    "RARE_VALUES",
    "COMMON_VALUE",
    "SELECTED_VALUES",
]
TaskWarning = Literal["PAIR_OVERLAP", "DISCONNECTED", "DUPLICATES", "CONSTRAINT", "CLOCK"]

FEW_RECORDS = 20  # With fewer records the expanded percentile is nearer to what it promises than BCa
LEAST_EXCESS = 0.03  # A smaller difference between annotators is of no interest, however sure it is
UNDEFINED_SHARE = 0.05  # Above this share of undefined resamples those that are left say too little


class Interval(Frozen):
    """A 95 % interval."""

    low: float
    """Its lower end."""
    high: float
    """Its upper end."""
    method: IntervalMethod
    """How its ends came about.

    `bca` or, where that is undefined or records are few, `expanded_percentile`: read off the resamples; `bounded`: such
    an interval of alpha whose lower end was moved down to what the same records could hide if there were no
    disagreement, or up to what so few records with one could mean; `one-sided`: the first of these bounds itself, where
    there is none.
    """
    conservative: bool = False
    """Whether it is rather too wide: of alpha, with a disagreement on fewer than five records."""
    unit: Literal["record_uuid"] = "record_uuid"
    """What was resampled: whole records, with all their units and labels; of anybody's ratings clusters or units."""


class LabelAgreement(LabelFigures):
    """Agreement on one label; a figure that is undefined is None and has its reason in `undefined`."""

    n_pairs_with_kappa: int
    """Pairs of annotators whose kappa is defined."""
    n_cluster_records: int
    """Records with at least one pairable unit: what is resampled for alpha and agreement."""
    intervals: dict[str, Interval]
    """95 % intervals by the name of their figure; one that is missing has its reason in `refused_intervals`."""
    refused_intervals: dict[str, RefusedReason]
    """Why a figure has no interval, by its name."""
    undefined_resamples: float | None
    """Share of the resamples in which alpha was undefined; None where alpha itself is."""
    p_below: dict[str, float]
    """Share of the resamples with an alpha below `0.667` and `0.800`; empty unless they give both its ends."""
    standard_error: float | None
    """Standard deviation of alpha over the resamples of records; None where they tell nothing of it."""
    design_effect: float | None
    """What clusters cost: squared ratio of alpha's jackknife errors, records left out against single units left out.

    Exactly 1 where no record has two pairable units; None where leaving one out leaves alpha undefined. It is an
    estimate: below 1 by chance in few records, or where the units of a record differ more than those of several.
    """
    n_effective: float | None
    """Pairable units divided by the design effect, at most the units: as many independent ones would tell as much."""
    required_items: int | None
    """Units with two ratings that would show an alpha of .667 at this prevalence (Bloch & Kraemer); None for 0 or 1."""
    undefined: dict[str, UndefinedReason]
    """Why a figure is None, by its name."""
    warnings: tuple[LabelWarning, ...]
    """What to mind when reading the figures."""


class ValueFigures(Frozen):
    """One value of a scale."""

    value: str
    """The value."""
    n_ratings: int
    """Ratings that give it."""
    specific_agreement: float | None
    """Given that an annotator gives it, how often another one does; None without such ratings on pairable units."""


class ScaledLabelAgreement(LabelAgreement):
    """Agreement on a label on a nominal, ordinal or interval scale (exports/contracts/agreement.md#scales).

    What only a label of yes and no has is None, with the reason `not_boolean`.
    """

    scale: ScaleName
    """The scale, whose distance alpha takes."""
    weights: Weights
    """What part of an agreement two values are in the weighted figures; with `identity` they are the plain ones."""
    values: tuple[ValueFigures, ...]
    """Its values in their order; empty where there are more than 100."""
    weighted_agreement: float | None
    """Percent agreement with weights."""
    weighted_fleiss_kappa: float | None
    """Fleiss' kappa with weights."""
    conger_kappa: float | None
    """Conger's kappa: chance by what each annotator gives."""
    weighted_conger_kappa: float | None
    """The same with weights."""
    gwet_ac2: float | None
    """Gwet's AC2: AC1 with weights."""
    weighted_brennan_prediger: float | None
    """Brennan and Prediger's coefficient with weights."""
    mean_pairwise_weighted_kappa: float | None
    """Mean of weighted kappa over the pairs of annotators that have one."""


class ScaledPair(AnnotatorPair):
    """Two annotators on one label on a scale, over the units that both rated."""

    percent_agreement: float
    """Share of equal ratings."""
    cohen_kappa: float | None
    """Cohen's kappa."""
    weighted_kappa: float | None
    """The same with the label's weights."""
    interval: Interval | None
    """95 % interval of `weighted_kappa`; None below 20 shared units, where it is refused or undefined."""
    undefined: dict[str, UndefinedReason]
    """Why a figure is None, by its name."""


class PairAgreement(PairFigures):
    """Two annotators on one label, over the units that both rated; the first name comes first in the alphabet."""

    interval: Interval | None
    """95 % interval of kappa from the joint bootstrap; None below 20 shared units, where it is refused or undefined."""
    undefined: dict[str, UndefinedReason]
    """Why a figure is None, by its name."""


class AnnotatorAgreement(Frozen):
    """One annotator against the rest on one label; of one on a scale only whether they differ from it."""

    label: str
    """The label."""
    rater: str
    """The annotator."""
    n_ratings: int
    """Her ratings."""
    positive_rate: float | None
    """Share of yes among them; None without ratings."""
    positive_rate_interval: tuple[float, float] | None
    """Wilson's 95 % interval of that share, as if her units were independent."""
    alpha_without: float | None
    """Alpha of the others alone."""
    delta_alpha: float | None
    """`alpha_without` less alpha of all: above 0 where the others agree better without her."""
    delta_interval: Interval | None
    """95 % interval of `delta_alpha` from the joint bootstrap; None where it is refused.

    It is too where fewer than 20 records hold a disagreement, or fewer than ten a unit on which all say yes, or no.
    """
    n_compared: int | None
    """Units on which the others have a majority."""
    n_ties: int | None
    """Units on which the others tie; skipped."""
    agreement_with_majority_of_others: float | None
    """Share of the compared units on which she says what the majority of the others says."""
    kappa_with_majority_of_others: float | None
    """Cohen's kappa of her and that majority."""
    bias_index: float | None
    """(only she says yes − only the majority of the others does) / compared units."""
    lone_dissents: int | None
    """Units with at least three ratings on which she alone says otherwise."""
    disagreement: float | None
    """Share of the other ratings of a unit that say otherwise, mean over her units that others rated too; on ordinal
    and interval scales their mean distance as a share of the scale."""
    expected_disagreement: float | None
    """The same if people were interchangeable: its mean over all exchanges of whole votes on a record."""
    excess: float | None
    """By how much more the others differ from them than among themselves, mean over their units with two others or
    more; None where `p` is."""
    excess_low: float | None
    """Lower end of its 95 % interval, from the variance between whole records."""
    excess_high: float | None
    """Upper end."""
    p: float | None
    """One-sided: share of the exchanges in which she would disagree as much or more; at least 1e-10.

    In each record the whole votes of those who judged the same units are dealt out anew among them, all labels and
    passages together. None where that tells nothing: never with a third rating, or never the same units as another.
    """
    p_holm: float | None
    """The same, corrected by Holm for all annotators and labels of the task."""
    stands_out: bool
    """Whether they read the label differently: `p_holm` is below .05 divided by the number of tasks of the file, and
    `excess_low` is `least_excess` or more. They may be the one who reads it as it is meant."""
    examples: tuple[str, ...] = ()
    """Of who stands out three units on which the others differ most from them."""
    undefined: dict[str, UndefinedReason]
    """Why a figure is None, by its name."""


class ConditionalAgreement(Frozen):
    """Agreement on a label among ratings that do not follow from a rule between labels.

    Where the consequent of a rule does not hold, its antecedent can only be no: `evidence_sufficient` needs
    `topically_relevant`, so on passages off the topic it answers itself, and those units would flatter AC1 and percent
    agreement. The open question is the antecedent where the consequent holds. Here only annotators who say that it
    holds count, on units where at least two do.
    """

    rule: str
    """The rule between labels."""
    premise: str
    """The rule's consequent: the label that must have the value `premise_value` for the other one to be open."""
    premise_value: bool
    """What the rule wants of it: no where the two labels exclude each other."""
    label: str
    """The rule's antecedent: the label that is open there."""
    n_pairable_items: int
    """Units on which at least two annotators say so of the premise."""
    prevalence: float | None
    """Share of yes among the ratings that count."""
    percent_agreement: float | None
    """Percent agreement over those units."""
    krippendorff_alpha: float | None
    """Alpha over those units."""
    gwet_ac1: float | None
    """AC1 over those units."""
    interval: Interval | None
    """95 % interval of alpha from the joint bootstrap; None where it is refused."""
    undefined: dict[str, UndefinedReason]
    """Why a figure is None, by its name."""


class SliceLabel(Frozen):
    """One label in one part of the responses."""

    n_pairable_items: int
    """Units with at least two ratings."""
    prevalence: float | None
    """Share of yes among the ratings."""
    krippendorff_alpha: float | None
    """Alpha."""
    percent_agreement: float | None
    """Percent agreement."""
    interval: Interval | None
    """95 % interval of alpha; None where it is refused."""
    undefined: dict[str, UndefinedReason]
    """Why a figure is None, by its name."""
    positive_rates: dict[str, float]
    """Share of yes by annotator, of those who rated here."""


class AgreementSlice(Frozen):
    """Agreement in one round, week or language."""

    name: str
    """Name of the round, ISO week such as `2025-W10` (UTC, of the unit's last response), or language code."""
    n_records: int
    """Records in it."""
    n_units: int
    """Units in it."""
    labels: dict[str, SliceLabel]
    """The labels in the order of the task."""


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
    mean_p_yes: float | None
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


class JudgedCounts(Frozen):
    """What a judge answered of one label."""

    n_judged: int
    """Units of the export that the judge answered."""
    n_left_out: int
    """Units with a usable judgement that leaves this label out, as where the judge cannot tell."""
    n_compared: int
    """Those of them on which the jury has a majority; one vote is one."""
    n_ties: int
    """Those of them on which the jury ties; they are left out."""
    n_without_votes: int
    """Those of them on which nobody of the jury answered this label."""


class JudgedLabel(JudgedCounts):
    """The judge on one label, against the majority of the jury."""

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
    alt_test: AltTest
    """Whether the judge may stand in for one of the annotators."""


class JudgedScale(JudgedCounts):
    """The judge on one label on a scale against people's consensus: majority, median or mean of each unit."""

    agreement: ScaledLabelAgreement | None
    """Of two raters, people's consensus and the judge, over the compared units; None without any."""
    confusion: tuple[tuple[int, ...], ...]
    """Compared units by consensus and judge, in the order of `agreement.values`; empty on an interval scale."""
    annotators: tuple[ScaledPair, ...]
    """Each annotator and the judge."""
    scoring: Literal["accuracy", "neg_rmse"]
    """How `alt_test` tells who is nearer to the others: by equal answers, or by the distance on the scale."""
    alt_test: AltTest


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
    scaled: dict[str, JudgedScale] | None = None
    """Of anybody's ratings all labels that it answered; the key is absent elsewhere."""


class JudgeAgreement(Frozen):
    """One judge against the jury."""

    model: str
    """Its name as its lines state it; the name of the file where they state none."""
    tasks: dict[MeasuredTask, JudgedTask]
    """The tasks of the export on which it has a judgement."""
    other_tasks: dict[TaskName, int]
    """Its judgements on tasks that have no file in the export."""


class JudgeDifference(Frozen):
    """Two judges on one label, over the units that both answered and on which the jury has a majority."""

    task: MeasuredTask
    """The task."""
    label: str
    """The label."""
    model_a: str
    """The first judge in the order of names."""
    model_b: str
    """The second."""
    n_units: int
    """These units."""
    n_records: int
    """Their records."""
    n_differing: int
    """Records on which one of the two is right more often than the other."""
    agreement_a: float
    """Share of the units on which the first says what the majority says; of ordinal and interval labels is as near."""
    agreement_b: float
    """The same of the second."""
    difference: float
    """`agreement_a` less `agreement_b`."""
    interval: tuple[float, float] | None
    """Its 95 % interval from the variance between records; None where they differ on fewer than six records."""
    p: float
    """Two-sided: the two judges exchanged on whole records."""
    p_holm: float
    """The same, corrected by Holm for all pairs, tasks and labels of the file."""
    differs: bool
    """Whether they differ beyond chance: `p_holm` is below .05."""


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


class Discards(Frozen):
    """Responses that annotators discarded, and how often."""

    n_responses: int
    """Discarded responses."""
    share: float
    """Share of the discarded among submitted and discarded responses."""
    by_annotator: dict[str, float]
    """The same share for each annotator; empty where files of discarded responses are missing."""


class Overlap(Frozen):
    """How units are shared out among annotators."""

    units_by_ratings: dict[int, int]
    """Units by how many annotators answered them."""
    components: tuple[tuple[str, ...], ...]
    """Groups of annotators that share units, directly or through others; different groups cannot be compared."""
    pairs_apart: int
    """Pairs of annotators who share no unit; they are in no list of pairs."""


class TaskAgreement(Frozen):
    """Agreement on all labels of one task."""

    n_units: int
    """Distinct units: query and passage in retrieval, record otherwise."""
    n_records: int
    """Distinct `record_uuid`s."""
    n_duplicates: int
    """Responses left out because the same annotator has a newer one on the same unit."""
    annotators: tuple[str, ...]
    """Everyone with a response, by name."""
    labels: dict[str, ScaledLabelAgreement | LabelAgreement]
    """The labels in the order of the task."""
    macro_alpha: float | None
    """Mean of the alphas that are defined; None where none is."""
    macro_interval: Interval | None
    """95 % interval of `macro_alpha` from the joint bootstrap; None where it is refused."""
    n_labels_with_alpha: int
    """How many labels have a defined alpha."""
    identical_vectors: float | None
    """Share of pairs of responses to one unit that agree on every label; None without pairs."""
    pairs: tuple[PairAgreement, ...]
    """Every pair of annotators who both rated a unit, label by label; of more than 20 annotators the 200 pairs with
    most shared units. `overlap.pairs_apart` counts those that share none."""
    annotators_vs_rest: tuple[AnnotatorAgreement, ...]
    """Every annotator against the others, label by label."""
    constraint_violations: dict[str, int]
    """Responses that break a rule between labels, by rule."""
    constraint_violations_by_annotator: dict[str, dict[str, int]]
    """The same by rule and annotator; only those who broke it."""
    conditional: tuple[ConditionalAgreement, ...]
    """Agreement on each rule's antecedent where its consequent leaves it open; one for each rule of the task."""
    discards: Discards | None
    """Discarded responses; None where the files do not tell."""
    overlap: Overlap
    """How units are shared out among annotators."""
    rounds: tuple[AgreementSlice, ...]
    """Agreement by round, in order of their first response; empty where the files name none."""
    weeks: tuple[AgreementSlice, ...]
    """Agreement by ISO week of each unit's last response, in order of time."""
    languages: tuple[AgreementSlice, ...]
    """Agreement by language, by code."""
    changes: tuple[()] = ()
    """Always empty; earlier versions tested here how alpha changed from one round or week to the next."""
    warnings: tuple[TaskWarning, ...]
    """What to mind about the task as a whole."""
    pairs_left_out: int = 0
    """Pairs of annotators who both rated a unit and are not in `pairs`; the key is absent where there is none."""
    scaled_pairs: tuple[ScaledPair, ...] = ()
    """As `pairs`, on labels that are no yes or no; the key is absent where there is none."""


OPTIONAL = {"pairs_left_out", "scaled_pairs", "scaled"}  # Of a task, left out of `agreement.json` where empty


class Agreement(Frozen):
    """The whole of `agreement.json`; the same input gives the same bytes."""

    version: Literal[1] = 1
    """Version of this layout."""
    latest_response: str | None
    """The newest `created_at` among the responses: ISO 8601, UTC; None without responses."""
    seed: int
    """Seed of the resampling."""
    resamples: int
    """Resamples behind each interval."""
    least_excess: float = LEAST_EXCESS
    """How large the lower end of an annotator's `excess` has to be for them to stand out."""
    inputs: tuple[InputFile, ...]
    """The files in the order they were given."""
    work: dict[MeasuredTask, Work] | None = Field(default_factory=dict)
    """By task, how far the work was when it was exported; null where an export does not tell, and empty of anybody's
    ratings."""
    tasks: dict[MeasuredTask, TaskAgreement]
    """Each task that has a file; `ratings` of anybody's ratings."""
    judge_files: tuple[JudgeFile, ...] = ()
    """The files of judgements in the order they were given; empty where none was."""
    judges: tuple[JudgeAgreement, ...] = ()
    """Each judge against the jury, by name."""
    judge_differences: tuple[JudgeDifference, ...] = ()
    """Every two judges on the same units, by task, names and label."""
    audit: Audit | None = None
    """What adjudicators' decisions did to the labels; None where none were given."""
