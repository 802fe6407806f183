"""The methods box: formulae in words, what was resampled and how, and sentences ready to cite."""

from importlib.metadata import version
from xml.etree.ElementTree import Element

from annotation.labels import TaskName
from exports.agreement.schema import Agreement
from exports.report.html.cells import folded
from exports.report.html.elements import Child, element
from exports.report.methods_text import label_sentence, macro_sentence

TERMS: tuple[tuple[str, str], ...] = (
    ("Unit", "A query and a passage in retrieval, a record otherwise. Of several responses by one annotator to one "
     "unit the newest counts; drafts and discarded responses are not ratings. Units with one rating count for the "
     "share of yes, Fleiss' κ and AC1 only."),
    ("α", "Krippendorff's alpha, nominal: 1 less observed over expected disagreement. Observed: disagreeing pairs of "
     "ratings within units, each unit weighted by its ratings. Expected: disagreeing pairs among all these ratings, "
     "whatever their unit. 1 is full agreement, 0 what chance would give."),
    ("Percent agreement", "The share of agreeing pairs of ratings in a unit, averaged over units."),
    ("AC1", "Gwet's coefficient: percent agreement corrected for chance, which is 2π(1 − π) with π the mean share of "
     "yes. It stays high where one value is rare and agreement on the other is common."),
    ("P⁺, P⁻", "Specific agreement: given that an annotator says yes (or no), how often another one says so too."),
    ("κ", "Cohen's kappa of two annotators on the units that both rated."),
    ("Undefined", "Where all ratings are the same, α and κ are 0/0: such data cannot show that annotators tell yes "
     "from no. They stand as – with the reason, never as 1."),
    ("Thresholds", "Krippendorff's .667 and .800. Read them against the lower end of the interval: P(α ≥ .667) is the "
     "share of resamples that reach it."),
    ("Influence", "α less α without the unit: below 0 where the unit lowers it."),
)  # fmt: skip


def methods_section(agreement: Agreement) -> Element:
    """How every figure came about."""
    return element(
        "section",
        element("h2", "Methods", id="methods"),
        element("p", resampling_sentence(agreement)),
        element("dl", ([element("dt", term), element("dd", meaning)] for term, meaning in TERMS)),
        element("h3", "Ready to cite"),
        (task_sentences(agreement, task) for task in agreement.tasks),
        class_="methods",
    )


def resampling_sentence(agreement: Agreement) -> str:
    """How intervals were computed, with everything needed to compute them again."""
    return (
        f"Intervals are 95 %, by bootstrap over whole records (record_uuid) with all their units and labels, jointly "
        f"for all figures: B = {agreement.resamples:,} resamples, seed {agreement.seed}; BCa, and the expanded "
        f"percentile method where BCa is undefined or records are fewer than 20. Resamples without an α are dropped; "
        f"above 5 % of them the interval is refused. Computed by citejury {version('citejury')}, numpy "
        f"{version('numpy')}; the same files and seed give the same figures."
    )


def task_sentences(agreement: Agreement, task: TaskName) -> Child:
    """The sentences of one task, the mean over its labels first."""
    labels = agreement.tasks[task].labels
    sentences = [element("li", label, ": ", label_sentence(agreement, task, label)) for label in labels]
    mean = macro_sentence(agreement, task)
    return folded(task, element("ul", element("li", mean) if mean else None, sentences), open="")
