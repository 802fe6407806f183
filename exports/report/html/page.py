"""The report: its sections in their order, among them judges against the jury, and how all of it was computed."""

import math
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from xml.etree.ElementTree import Element

from annotation.quality.scores import AnnotatorScores
from exports.report import agreement_page, words
from exports.report.html import elements as html
from exports.report.html.browser import browser_section
from exports.report.html.elements import head
from exports.report.html.findings import findings_section, labels_section
from exports.report.html.labels import conditional_section, forest_plot, label_section, time_section
from exports.report.html.people import pair_section, people_section
from exports.report.sections import Section
from exports.statistics import agreement_schema as schema
from exports.statistics.disagreements import Disagreement
from exports.statistics.results_schema import Results
from exports.statistics.table import STATISTICS
from pipeline.core.tables import Table
from pipeline.core.terminal import counted

_CALIBRATION_MEANING = (
    "Each circle is a tenth of the scale of P(yes), the judge's own probability of yes: its place to the right is the "
    "mean of it, its height the share on which the jury says yes, its size the number of units. A judge whose "
    "probabilities are what they say lies on the dotted line; above it, it is not sure enough of yes, below it too "
    "sure."
)
_TESTED = ("Label", "annotator", "N", "two others", "records", "judge wins", "they win", "p", "p by record")
_APART = ("Label", "judge", "other", "N", "records", "agrees", "other agrees", "difference", "[95 %]", "p", "p (Holm)")
_AGAINST = ("Label", "annotator", "N", "tp", "fp", "fn", "tn", "accuracy", "κ")
_KAPPA_MEANING = "κ is undefined where both give the same answer everywhere, or nothing can be compared."
_SIDE, _MARGIN, _SMALLEST, _LARGEST = 200, 46, 3.0, 11.0
"""Sides of a plot, the room for its numbers, and the radii of its circles, in pixels."""


def _judges_section(agreement: schema.Agreement) -> Element | None:
    if not agreement.judges:
        return None
    tasks = (
        [
            html.section_parts(agreement_page.judge_section(judge.model, task, found, "page")),
            _judge_details(found) if found.labels else None,
        ]
        for judge in agreement.judges
        for task, found in judge.tasks.items()
    )
    together = [html.section_parts(section) for section in agreement_page.closing_sections(agreement)]
    rows = [
        (
            *(each.label, each.model_a, each.model_b),
            *(f"{number:,}" for number in (each.n_units, each.n_records)),
            *(words.percent(share) for share in (each.agreement_a, each.agreement_b)),
            f"{each.difference:+.2f}",
            f"[{each.interval[0]:+.2f}, {each.interval[1]:+.2f}]" if each.interval else words.UNDEFINED,
            *(f"{p:.3f}" for p in (each.p, each.p_holm)),
        )
        for each in agreement.judge_differences
    ]
    differences = html.text_table("Agreement with the majority, on the same units", Table([_APART, *rows], left=3))
    heading = html.element("h2", "Judges against the jury", id="judges")
    return html.element(
        "section", heading, tasks, together, html.folded("All differences", differences) if rows else None
    )


def _judge_details(found: schema.JudgedTask) -> list[html.Child]:
    plots = (_reliability_figure(label, figures.calibration) for label, figures in found.labels.items())
    return [
        html.element("div", plots, class_="panels"),
        html.element("p", _CALIBRATION_MEANING, class_="note"),
        html.folded("Against each annotator", _annotators_table(found), _tested_table(found)),
    ]


def _annotators_table(found: schema.JudgedTask) -> Element:
    rows = [
        (
            *(label, each.annotator),
            *(f"{count:,}" for count in (sum(counts), *counts)),
            words.percent(each.confusion.accuracy),
            words.decimal(each.confusion.cohen_kappa),
        )
        for label, figures in found.labels.items()
        for each in figures.annotators
        for counts in [(each.confusion.tp, each.confusion.fp, each.confusion.fn, each.confusion.tn)]
    ]
    return html.text_table("The judge against each annotator", Table([_AGAINST, *rows], left=2), _KAPPA_MEANING)


def _tested_table(found: schema.JudgedTask) -> Element:
    rows = [
        (
            *(label, each.annotator),
            *(f"{number:,}" for number in (each.n_units, each.n_units_two_others, each.n_records)),
            *(words.percent(share) for share in (each.judge_wins, each.person_wins)),
            f"{each.p:.3f}{' *' if each.won else ''}",
            f"{each.p_by_record:.3f}{' *' if each.won_by_record else ''}",
        )
        for label, figures in found.labels.items()
        for each in figures.alt_test.people
    ]
    return html.text_table(
        "Who is nearer to the others; * the judge wins",
        Table([_TESTED, *rows], left=2),
        agreement_page.ALT_TEST_MEANING,
    )


def _reliability_figure(label: str, found: schema.Calibration) -> Element:
    spoken = "; ".join(_spoken(each) for each in found.bins if each.n)
    size = _SIDE + 2 * _MARGIN
    drawing = html.figure_svg(
        f"{label}: reliability of the judge's P(yes)",
        spoken or words.UNDEFINED,
        _frame(),
        _circles(found),
        viewBox=f"0 0 {size} {size}",
        class_="weeks",
    )
    return html.element("figure", html.element("figcaption", label), drawing)


def _spoken(found: schema.ReliabilityBin) -> str:
    return f"{found.n:,} units at {words.percent(found.mean_p_yes)}: {words.percent(found.share_yes)} yes"


def _frame() -> Iterator[Element]:
    left, right, bottom, top = _MARGIN, _MARGIN + _SIDE, _MARGIN + _SIDE, _MARGIN
    for value in (0.0, 0.5, 1.0):
        x, y = left + _SIDE * value, bottom - _SIDE * value
        yield html.element("line", x1=x, x2=x, y1=bottom, y2=top, class_="grid")
        yield html.element("line", x1=left, x2=right, y1=y, y2=y, class_="grid")
        yield html.element("text", words.percent(value), x=x, y=bottom + 20, text_anchor="middle", class_="tick")
        yield html.element("text", words.percent(value), x=left - 6, y=y + 4, text_anchor="end", class_="tick")
    yield html.element("line", x1=left, x2=right, y1=bottom, y2=top, class_="threshold")
    middle = left + _SIDE / 2
    yield html.element("text", "judge's P(yes)", x=middle, y=bottom + 38, text_anchor="middle", class_="tick")
    yield html.element("text", "jury says yes", x=left, y=top - 12, class_="tick")


def _circles(found: schema.Calibration) -> Iterator[Element]:
    most = max((each.n for each in found.bins), default=0)
    for each in found.bins:
        if each.mean_p_yes is not None and each.share_yes is not None:
            radius = max(_SMALLEST, _LARGEST * (each.n / most) ** 0.5)
            x, y = _MARGIN + _SIDE * each.mean_p_yes, _MARGIN + _SIDE * (1 - each.share_yes)
            yield html.element("circle", html.element("title", _spoken(each)), cx=x, cy=y, r=radius, class_="estimate")


_TERMS: tuple[tuple[str, str], ...] = (
    ("Unit", "A query and a passage in retrieval, a record otherwise. Of several responses by one annotator to one "
     "unit the newest counts; drafts and discarded responses are not ratings. Units with one rating count for the "
     "share of yes, Fleiss' κ and AC1 only."),
    *(method for name in dict.fromkeys(("krippendorff_alpha", *STATISTICS)) if (method := STATISTICS[name].method)),
    ("κ", "Cohen's kappa of two annotators on the units that both rated."),
    ("Undefined", "Where all ratings are the same, α and κ are 0/0: such data cannot show that annotators tell yes "
     "from no. They stand as – with the reason, never as 1."),
    ("Thresholds", "Krippendorff's .667 and .800. Read them against the lower end of the interval: P(α ≥ .667) is the "
     "share of resamples that reach it."),
    ("Influence", "α less α without the unit: below 0 where the unit lowers it."),
)  # fmt: skip


def _methods_section(agreement: schema.Agreement) -> Element:
    computed = (
        f"Intervals are 95 %, by bootstrap over whole records (record_uuid) with all their units and labels, jointly "
        f"for all figures: B = {agreement.resamples:,} resamples, seed {agreement.seed}; BCa, and the expanded "
        f"percentile method where BCa is undefined or records are fewer than 20. Resamples without an α are dropped; "
        f"above 5 % of them the interval is refused. Computed by citejury {version('citejury')}, numpy "
        f"{version('numpy')}; the same files and seed give the same figures."
    )
    terms = ([html.element("dt", term), html.element("dd", meaning)] for term, meaning in _TERMS)
    return html.element(
        "section",
        html.element("h2", "Methods", id="methods"),
        html.element("p", computed),
        html.folded("What the figures of agreement mean", html.element("dl", terms)),
        html.folded("Ready to cite", (_task_sentences(agreement, task) for task in agreement.tasks)),
        class_="methods",
    )


def _task_sentences(agreement: schema.Agreement, task: schema.MeasuredTask) -> html.Child:
    labels = agreement.tasks[task].labels
    sentences = [html.element("li", label, ": ", words.label_sentence(agreement, task, label)) for label in labels]
    mean = words.macro_sentence(agreement, task)
    return [
        html.element("h3", task.capitalize()),
        html.element("ul", html.element("li", mean) if mean else None, sentences),
    ]


def render_report(
    agreement: schema.Agreement,
    disagreements: Sequence[Disagreement],
    *,
    remarks: Sequence[str] = (),
    results: Results | None = None,
    controls: Sequence[AnnotatorScores] = (),
) -> str:
    """The report as one HTML file, which begins with agreement where no results are known.

    `disagreements` are those that weigh most first in each task, `remarks` sentences about rows that were left out.
    """
    style, style_hash = html.embedded("style", "style.css")
    script, script_hash = html.embedded("script", "browser.js")
    policy = (
        f"default-src 'none'; style-src {style_hash}; script-src {script_hash}; base-uri 'none'; form-action 'none'"
    )
    head = html.element(
        "head",
        html.element("meta", charset="utf-8"),
        html.element("meta", name="generator", content=f"citejury {version('citejury')}"),
        html.element("meta", http_equiv="Content-Security-Policy", content=policy),
        html.element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html.element("meta", name="referrer", content="no-referrer"),
        html.element("meta", name="color-scheme", content="light dark"),
        html.element("title", f"{'What the jury found' if results else 'Agreement'}: {', '.join(agreement.tasks)}"),
        style,
    )
    body = html.element(
        "body",
        _navigation(agreement, results, has_controls=bool(controls)),
        html.element(
            "main",
            findings_section(results, agreement) if results else html.element("h1", "Agreement of annotators"),
            labels_section(results) if results else None,
            html.element(
                "section",
                _agreement_head(agreement, remarks),
                (_task_details(task, figures) for task, figures in agreement.tasks.items()),
                class_="agreement",
            ),
            people_section(agreement),
            _shown("controls", agreement_page.control_sections(controls)),
            _shown("audit", agreement_page.audit_sections(agreement.audit)),
            _judges_section(agreement),
            browser_section(disagreements),
            _methods_section(agreement),
        ),
        script,
    )
    return "<!DOCTYPE html>\n" + html.to_html(html.element("html", head, body, lang="en-GB")) + "\n"


def _navigation(agreement: schema.Agreement, results: Results | None, *, has_controls: bool) -> Element:
    parts = {
        "What the jury found": "found" if results else "",
        "Labels": "labels" if results and results.tasks else "",
        **{"Agreement": "agreement", "People": "people"},
        "Controls": "controls" if has_controls else "",
        "Audit": "audit" if agreement.audit else "",
        "Judges": "judges" if agreement.judges else "",
        **{"Disagreements": "disagreements", "Methods": "methods"},
    }
    links = (html.element("a", text, href=f"#{part}") for text, part in parts.items() if part)
    return html.element("nav", links, aria_label="Parts of the report")


def _shown(name: str, sections: Iterable[Section]) -> Element | None:
    """Sections as every other output has them, `name` as the id of the first heading; None where there are none."""
    parts = [html.section_parts(section, "" if place else name) for place, section in enumerate(sections)]
    return html.element("section", parts) if parts else None


def _agreement_head(agreement: schema.Agreement, remarks: Sequence[str]) -> list[html.Child]:
    counting = html.bullets(remarks) if remarks else html.element("p", "Every row counts.", class_="note")
    rows = (
        html.row(
            head(html.quoted(found.file)),
            f"{found.rows:,}",
            html.element("td", html.element("code", found.sha256[:12]), title=found.sha256),
        )
        for found in agreement.inputs
    )
    files = html.table("Files read", ("File", "rows", "SHA-256 begins with"), rows)
    return [
        html.element("h2", "How far the annotators agree", id="agreement"),
        forest_plot(agreement),
        html.element("p", words.FITNESS_MEANING, class_="note"),
        _cautions(agreement),
        html.folded("Files read, and what of them did not count", files, counting),
    ]


def _cautions(agreement: schema.Agreement) -> html.Child:
    found = {task: list(words.warning_sentences(figures)) for task, figures in agreement.tasks.items()}
    cautions = {task: sentences for task, sentences in found.items() if sentences}
    if not cautions:
        return html.element("p", "No warning applies.", class_="note")
    counts = ", ".join(f"{task} {len(sentences)}" for task, sentences in cautions.items())
    parts = (
        html.element("div", html.element("h3", task.capitalize()), html.bullets(sentences))
        for task, sentences in cautions.items()
    )
    return html.folded(
        f"What to mind first: {counts}", html.element("div", parts, class_="tasks"), class_="mind", id="mind"
    )


def _task_details(task: schema.MeasuredTask, figures: schema.TaskAgreement) -> Element:
    changes = list(words.change_sentences(figures))
    return html.folded(
        html.element("h3", f"{task.capitalize()} in detail"),
        _coverage(figures),
        html.bullets(changes) if changes else None,
        label_section(figures),
        pair_section(figures),
        time_section(figures),
        conditional_section(figures),
    )


def _coverage(figures: schema.TaskAgreement) -> Iterator[html.Child]:
    overlap, pairs = figures.overlap, math.comb(len(figures.annotators), 2)
    sizes = ", ".join(f"{ratings} for {units:,}" for ratings, units in sorted(overlap.units_by_ratings.items()))
    text = f"{counted(figures.n_units, 'unit')} of {counted(figures.n_records, 'record')}."
    if sizes:
        text += f" Annotators per unit: {sizes}."
    if figures.n_duplicates:
        repeats = counted(figures.n_duplicates, "older response")
        text += f" {repeats} left out because the annotator has a newer one on the unit."
    if apart := overlap.pairs_apart:
        text += f" {apart:,} of {counted(pairs, 'pair')} of annotators share no unit and cannot be compared."
    yield html.element("p", text, class_="note")
    if len(groups := overlap.components) > 1:
        named: list[html.Child] = [f"{len(groups)} groups of annotators share no unit with each other: "]
        for place, group in enumerate(groups, start=1):
            named += [f"({place}) " if place == 1 else f"; ({place}) ", html.quoted(", ".join(group))]
        yield html.element("p", named, ".", class_="note")
