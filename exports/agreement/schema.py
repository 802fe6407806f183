"""The whole of `agreement.json`: every figure, and where there is none, the reason (exports/contracts/agreement.md)."""

from typing import Literal

from annotation.labels import TaskName
from exports.agreement.figures import (
    AgreementSlice,
    AlphaChange,
    AnnotatorAgreement,
    ConditionalAgreement,
    Interval,
    JudgeAgreement,
    JudgeFile,
    LabelAgreement,
    PairAgreement,
    TaskWarning,
)
from pipeline.schema import Frozen


class Discards(Frozen):
    """Responses that annotators discarded, and how often."""

    n_responses: int
    """Discarded responses."""
    share: float
    """Share of the discarded among submitted and discarded responses."""
    by_annotator: dict[str, float]
    """The same share for each annotator."""


class Overlap(Frozen):
    """How units are shared out among annotators."""

    units_by_ratings: dict[int, int]
    """Units by how many annotators answered them."""
    components: tuple[tuple[str, ...], ...]
    """Groups of annotators that share units, directly or through others; different groups cannot be compared."""


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
    labels: dict[str, LabelAgreement]
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
    """Every pair of annotators, label by label; pairs without shared units are there with Nones."""
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
    changes: tuple[AlphaChange, ...]
    """Change of alpha from each round and week to the next, where both have one."""
    warnings: tuple[TaskWarning, ...]
    """What to mind about the task as a whole."""


class InputFile(Frozen):
    """One CSV file that agreement was computed from."""

    file: str
    """Its name without folder."""
    sha256: str
    """Of the file's bytes, in hexadecimal."""
    rows: int
    """Rows without the header, those that were left out included."""


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
    inputs: tuple[InputFile, ...]
    """The files in the order they were given."""
    tasks: dict[TaskName, TaskAgreement]
    """Each task that has a file."""
    judge_files: tuple[JudgeFile, ...] = ()
    """The files of judgements in the order they were given; empty where none was."""
    judges: tuple[JudgeAgreement, ...] = ()
    """Each judge against the jury, by name."""
