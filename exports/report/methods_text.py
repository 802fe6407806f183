"""How a figure was computed, in one sentence ready to cite: the same in Markdown, LaTeX and the report."""

from importlib.metadata import version

from annotation.labels import TaskName
from exports.agreement.figures import Interval, IntervalMethod
from exports.agreement.schema import Agreement
from exports.report.words import REASONS, REFUSED, estimate
from pipeline.text.counted import counted

METHODS: dict[IntervalMethod, str] = {
    "bca": "BCa bootstrap",
    "expanded_percentile": "expanded percentile bootstrap",
}


def label_sentence(agreement: Agreement, task: TaskName, label: str) -> str:
    """α of a label with interval, method, sizes, seed and version; where α is undefined, why.

    Such as `α = .74 [.62, .83] (Krippendorff, nominal; 95 % BCa bootstrap over 43 records / 169 passages, B = 2,000,
    seed 0; 3 annotators; citejury 0.1.0)`.
    """
    figures = agreement.tasks[task]
    found = figures.labels[label]
    people = counted(len(figures.annotators), "annotator")
    if found.krippendorff_alpha is None:
        reason = REASONS[found.undefined["krippendorff_alpha"]]
        return f"α is undefined: {reason} (Krippendorff, nominal; {people}; citejury {version('citejury')})"
    interval = found.intervals.get("krippendorff_alpha")
    records = counted(found.n_cluster_records, "record")
    units = f"{records} / {counted(found.n_pairable_items, 'passage')}" if task == "retrieval" else records
    refused = found.refused_intervals.get("krippendorff_alpha")
    why = f", since {REFUSED[refused]}" if refused else ""
    how = bootstrap(agreement, interval, units) if interval else f"{units}; no interval{why}"
    return (
        f"α = {estimate(found.krippendorff_alpha, interval)} (Krippendorff, nominal; {how}; {people}; "
        f"citejury {version('citejury')})"
    )


def macro_sentence(agreement: Agreement, task: TaskName) -> str:
    """The mean α of a task's labels with interval and method; empty where no label has an α."""
    figures = agreement.tasks[task]
    if figures.macro_alpha is None:
        return ""
    interval = figures.macro_interval
    over = counted(figures.n_labels_with_alpha, "label")
    how = f"; {bootstrap(agreement, interval, 'records')}" if interval else "; no interval"
    return (
        f"mean α of {over} = {estimate(figures.macro_alpha, interval)} (Krippendorff, nominal{how}; "
        f"{counted(len(figures.annotators), 'annotator')}; citejury {version('citejury')})"
    )


def bootstrap(agreement: Agreement, interval: Interval, units: str) -> str:
    """How an interval was computed."""
    return f"95 % {METHODS[interval.method]} over {units}, B = {agreement.resamples:,}, seed {agreement.seed}"
