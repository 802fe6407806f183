"""The whole of `results.json`: every figure, and where there is none, why (exports/contracts/results.md)."""

from typing import Literal

from pydantic import Field

from exports.csv.schema import Work
from exports.statistics.groups import Denominators
from exports.statistics.ratings import InputFile, MeasuredTask, ScaleName
from exports.statistics.study import Consensus
from pipeline.core.schema import Frozen
from pipeline.records.causes import SourceState
from pipeline.records.schema import Cited

Contexts = Literal["selected", "supplied", ""]

NoFigure = Literal[
    "no_units",
    "one_narrative",
    "uneven_narratives",
    "no_shared_narrative",
    "other_annotators",
    "few_judged_by_both",
    "majority_hides_annotators",
    "no_variation",
    "not_known",
]

NoHelp = Literal["not_judged", "not_a_random_part", "few_narratives", "all_labelled"]

OF_ANNOTATORS = frozenset({"other_annotators", "few_judged_by_both", "majority_hides_annotators"})

OPTIONAL = frozenset({
    *("rate_ppi", "interval_ppi", "judge_help", "scaled", "leniency", "n_telling", "annotators", "n_ratings", "means")
})  # fmt: skip
"""Fields that `results.json` leaves out where they are None: those of a judge, labels on scales, unlike annotators."""


class RateInterval(Frozen):
    """A 95 % interval of a rate or of a difference of rates, never of width 0."""

    low: float
    """Its lower end."""
    high: float
    """Its upper end."""
    method: str
    """How it was made; exports/contracts/results.md#intervals describes each."""


class JudgeHelp(Frozen):
    """What stands behind a rate with the judge's help."""

    judge: str
    """Its name."""
    n_judged: int
    """Units that the judge judged, labelled or not."""
    n_labelled: int
    """Those of them that people voted on."""
    n_narratives: int
    """Narratives in which people's votes gave a value to one of them."""
    weight: float | None
    """λ, how much the judge counts: the rate is the mean over labelled units of value − λ · P(yes), plus λ times the
    mean of P(yes) over all that it judged. 0 where it does not help; None where `undefined` says why."""
    undefined: NoHelp | None
    """Why there is no such rate; None where there is."""


class Rate(Frozen):
    """A share of yes over units, of a value, or a mean on a scale, with what stands behind it."""

    rate: float | None
    """Mean over units of their value; weighted (Σ y/p ÷ Σ 1/p) where inclusion probabilities are given."""
    interval: RateInterval | None
    """95 % interval, clustered by narrative; None where `undefined` says why."""
    undefined: NoFigure | None
    """Why there is no rate or no interval; None where both are there."""
    n_units: int
    """Units that have a value."""
    n_undecided: int
    """Units with votes that have none: a tie under `majority`, no decision under `adjudicated`."""
    n_narratives: int
    """Narratives that these units belong to."""
    denominators: Denominators
    """What stands behind it."""
    rate_ppi: float | None = None
    """The rate with the judge's help, which people's labels correct (prediction-powered inference); absent without."""
    interval_ppi: RateInterval | None = None
    """Its 95 % interval, clustered by narrative; absent without."""
    judge_help: JudgeHelp | None = None
    """What stands behind it, or why there is none; absent where no judge was named."""


class GroupRate(Rate):
    """The rate of one group of records."""

    by: dict[str, str]
    """What the records have in common: the value of each column; empty where it is not known."""


class Difference(Frozen):
    """Two groups against each other, on the narratives that both have."""

    by: str
    """The column that the groups differ in."""
    within: dict[str, str]
    """The level of the other columns for crossed groups; empty otherwise."""
    a: str
    """Value of the first group, the first in the alphabet."""
    b: str
    """Value of the second group."""
    n_narratives: int
    """Narratives that both have."""
    rate_a: float | None
    """Rate of the first on these narratives: the mean of their means."""
    rate_b: float | None
    """Rate of the second on them."""
    difference: float | None
    """a − b: the mean over narratives of the difference of the narrative's means, less `leniency` where it is told."""
    interval: RateInterval | None
    """95 % interval of the difference, not corrected for the number of comparisons."""
    p: float | None
    """Two-sided p from exchanging whole answers between the two groups within narratives; none of one narrative."""
    p_holm: float | None
    """The same, corrected by Holm for all pairs of this label in this dimension: one column, alone or crossed, or a
    column of months, alone and crossed."""
    p_all: float | None
    """The same, corrected by Holm for all pairs of all labels, findings and dimensions together, those of
    months by themselves."""
    stands_out: bool
    """Whether `p_all` is at most .05: what is called beyond chance."""
    undefined: NoFigure | None
    """Why there is no p or no interval; None where both are there."""
    leniency: float | None = None
    """What of rate_a − rate_b comes from annotators who did not judge both groups alike, by how they differ from each
    other; absent where they did."""
    n_telling: int | None = None
    """Narratives that tell how these annotators differ, as many as would be as telling; absent where that is not asked,
    or nothing tells it."""


class LabelResults(Rate):
    """The rate of one label over all records, by group, and what differs between groups."""

    groups: tuple[GroupRate, ...]
    """Each column's groups, then the crossed ones, in the order of their values."""
    differences: tuple[Difference, ...]
    """Every pair of groups in one column, then those of crossed groups within each level of the other columns."""


class Finding(LabelResults):
    """A composite finding: answers as a whole."""

    title: str
    """What people read."""
    any: tuple[str, ...]
    """The labels of which one makes the answer count, `not ` before those that count where they are no."""
    n_incomplete: int
    """Answers that were left out because the jury did not judge every part."""
    missing: dict[str, int]
    """How many answers lack each of the labels; one may lack several."""


class ScaleResults(Frozen):
    """One label on a nominal, ordinal or interval scale (exports/contracts/results.md#scales)."""

    scale: ScaleName
    """The scale."""
    values: tuple[str, ...]
    """Its values in their order; empty where there are more than 100."""
    numbers: tuple[float, ...]
    """What each of them counts in the mean: itself, or its rank from 1 where values are words; empty without a mean."""
    shares: dict[str, LabelResults]
    """The share of each value; groups are compared by them on a nominal scale. Empty of an interval scale."""
    mean: LabelResults | None
    """The mean, `rate` and its interval in the numbers of the scale; None on a nominal scale."""
    median: float | None
    """The median of the units' values, every unit counting alike; None on a nominal scale, or without units."""


class TaskResults(Frozen):
    """What the jury found on one task."""

    labels: dict[str, LabelResults]
    """The labels of yes and no in the order of the task."""
    scaled: dict[str, ScaleResults] | None = None
    """The labels on a scale; absent where there is none."""
    n_annotators: int = 0
    """Everyone with a response."""
    units_by_ratings: dict[int, int] = Field(default_factory=dict)
    """Units by how many annotators answered them."""


class RunTotals(Frozen):
    """What became of the questions that were put to one provider; asked = answered + refused + failed."""

    model_name: str
    """The provider."""
    asked: int
    """Questions that were put to it."""
    answered: int
    """Those with an answer."""
    refused: int
    """Those that it refused or blocked, as its stop reason or error says."""
    failed: int
    """Those without an answer for any other reason."""
    before_the_jury: int
    """Its answers that are among the records of the export."""


class SiteCount(Frozen):
    """How often one site is cited."""

    site: str
    """The site: the part of its host that somebody has registered."""
    citations: int
    """Citations of its pages."""
    answers: int
    """Answers that cite it."""


class CitationGroup(Frozen):
    """What the answers of one group cite."""

    by: dict[str, str]
    """What the answers have in common; empty for all of them together."""
    n_answers: int
    """Answers, those that cite nothing included."""
    n_narratives: int
    """Narratives that they belong to."""
    n_citations: int
    """Citations: distinct URLs of each answer."""
    n_cited: int
    """Those to which the answer's text refers."""
    n_shown: int
    """Those that the provider attached to the answer, whose text does not refer to them."""
    n_seen: int
    """Those that the provider only lists as found."""
    n_cited_unknown: int
    """Those of records that do not say which of the three they are."""
    citations_mean: float | None
    """Citations an answer, mean; None without answers."""
    citations_median: float | None
    """The median."""
    n_sites: int
    """Different sites."""
    n_unknown_site: int
    """Citations whose site is not known, such as redirects that name none; left out of all figures on sites."""
    effective_sites: float | None
    """How many sites that are cited equally often would be as diverse: exp of Shannon's entropy; None without any."""
    top_site_share: float | None
    """Share of the most cited site among citations."""
    top_sites: tuple[SiteCount, ...]
    """The most cited sites, at most 20, by citations, then by name."""


class Landscape(Frozen):
    """What the answers of the runs cite, judged or not."""

    groups: tuple[CitationGroup, ...]
    """All answers, then each column's groups, then the crossed ones."""
    without_citations: LabelResults
    """Share of answers that cite nothing."""
    cited: dict[Cited, LabelResults]
    """Shares of `cited`, `shown` and `seen` among the citations of which it is told. What a provider lists decides most
    of it: groups are not compared."""
    states: dict[SourceState, LabelResults]
    """Share of citations whose source is in each state. What providers send along decides some of it: groups are not
    compared."""
    excerpts_only: LabelResults
    """Share of citations of which only an excerpt is held that the provider sent; they count as read, and whether their
    page is there is not known."""
    may_be_fabricated: LabelResults
    """Share of citations whose source may count as fabricated by what became of it (no such site, no address, or gone
    and never seen by an archive) among those of which it is known: reached, and an archive knows of what is gone."""


class Passages(Frozen):
    """How well the passages of records fit their queries."""

    contexts: Contexts
    """`selected`: citejury chose and ranked them. `supplied`: the records came with them. Empty: not known."""
    n_records: int
    """Records with a judged passage."""
    n_passages: int
    """Their judged passages."""
    n_gaps: int
    """Records without figures by rank, since a passage that they have was not judged."""
    precision: dict[str, LabelResults]
    """Mean of the passages' values within a record, by label."""
    hit_rate: dict[str, LabelResults]
    """Whether a record has a passage of which more than half of the votes say yes, by label."""
    reciprocal_rank: dict[str, LabelResults]
    """1 ÷ the rank of the first such passage, 0 without one: their mean is MRR. By label; supplied contexts only."""
    ndcg: LabelResults | None
    """nDCG of the order in which a record's passages stand; supplied contexts only."""


class AnnotatorShares(Frozen):
    """What one annotator said of one group."""

    task: MeasuredTask
    """The task."""
    by: dict[str, str]
    """What the group's records have in common."""
    annotator: str
    """Their name."""
    n_votes: dict[str, int]
    """Votes by label of yes and no."""
    yes: dict[str, float | None]
    """Their share of yes; None without votes."""
    n_ratings: dict[str, int] | None = None
    """Ratings by label on another scale; absent without such labels."""
    means: dict[str, float | None] | None = None
    """Their mean in the numbers of the scale; None on a nominal scale, or without ratings."""


class Results(Frozen):
    """The whole of `results.json`; the same input gives the same bytes."""

    version: Literal[1] = 1
    """Version of this schema."""
    latest_response: str | None
    """The newest `created_at`, in UTC; None without responses."""
    seed: int
    """Seed of the exchanges that are sampled."""
    flips: int
    """Exchanges behind each small p that is sampled, at least 40 × comparisons ÷ .05; fewer where p is large, and all
    where that can be counted (exports/contracts/results.md#differences)."""
    by: tuple[str, ...]
    """The columns by which records are grouped."""
    consensus: Consensus
    """How the votes on a unit become its value."""
    weighted: bool
    """Whether inclusion probabilities weigh the rates: some of them differ."""
    inputs: tuple[InputFile, ...]
    """The files that it was computed from."""
    work: dict[MeasuredTask, Work] | None = Field(default_factory=dict)
    """By task, how far the work was when it was exported; null where an export does not tell, and empty of anybody's
    ratings."""
    n_records: int
    """Records with a vote on any task."""
    n_narratives: int
    """Narratives that they belong to."""
    findings: dict[str, Finding]
    """Composite findings by name."""
    tasks: dict[MeasuredTask, TaskResults]
    """The tasks that have a file; `ratings` of anybody's ratings."""
    runs: tuple[RunTotals, ...] = ()
    """What became of the questions, by provider; empty without run folders."""
    landscape: Landscape | None = None
    """What the answers cite; None without runs."""
    narrative_verdicts: None = None
    """Always null: versions before this one counted words of agreement with the narrative here."""
    annotators: tuple[AnnotatorShares, ...] | None = None
    """What each annotator said of each group of one column; absent where each pair of groups was judged alike."""
    passages: tuple[Passages, ...] = ()
    """How well passages fit their queries, by where the contexts come from; empty without retrieval."""
    remarks: tuple[str, ...]
    """What cannot be told, or what to mind, in plain sentences."""
