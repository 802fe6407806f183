"""Judges against the jury: confusion, kappa, and a reliability plot for each label."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from annotation.labels import TaskName
from exports.agreement.alt_test import AltTestPerson
from exports.agreement.schema import (
    Calibration,
    Confusion,
    JudgeAgreement,
    JudgeDifference,
    JudgedLabel,
    JudgedTask,
    JudgeReason,
)
from exports.report.html._elements import (
    Child,
    cell,
    coefficient,
    element,
    ends,
    folded,
    head,
    missing,
    quoted,
    row,
    table,
)
from exports.report.html._plot import Axis, figure_svg
from exports.report.judge_words import (
    ALT_TEST_MEANING,
    conclusion,
    coverage_sentence,
    difference_sentences,
    left_out_sentences,
    other_task_sentences,
    shown_alt_test,
)
from exports.report.words import UNDEFINED, percent

_COLUMNS = ("Label", "N", "ties", "tp", "fp", "fn", "tn", "precision", "recall", "F1", "accuracy", "κ [95 %]")
_MEANING = (
    "The majority of a unit's votes counts as right, a single vote is one, and ties are left out. tp: both say yes; "
    "fp: only the judge; fn: only the jury; tn: neither. κ: Cohen's, with the joint bootstrap over records."
)
_CALIBRATION_MEANING = (
    "Each circle is a tenth of the scale of P(yes), the judge's own probability of yes: its place to the right is the "
    "mean of it, its height the share on which the jury says yes, its size the number of units. A judge whose "
    "probabilities are what they say lies on the dotted line; above it, it is not sure enough of yes, below it too "
    "sure."
)
_STANDING_IN = ("Label", "ω", "ρ", "ε", "what may be concluded")
_TESTED = ("Label", "annotator", "N", "two others", "records", "judge wins", "she wins", "p", "p by record")
_APART = ("Label", "judge", "other", "N", "records", "agrees", "other agrees", "difference", "[95 %]", "p", "p (Holm)")
_AGAINST = ("Label", "annotator", "N", "tp", "fp", "fn", "tn", "accuracy", "κ")
_SHORT_REASONS: dict[JudgeReason, str] = {
    "no_compared_units": "nothing to compare",
    "judge_never_says_yes": "judge never says yes",
    "jury_never_says_yes": "jury never says yes",
    "nobody_says_yes": "nobody says yes",
    "constant_both_raters": "both constant",
    "jury_is_constant": "jury constant",
}
_SIDE, _MARGIN, _SMALLEST, _LARGEST = 200, 46, 3.0, 11.0
"""Sides of a plot, the room for its numbers, and the radii of its circles, in pixels."""
_UNIT = Axis(0.0, 1.0)


def judges_section(judges: Sequence[JudgeAgreement], differences: Sequence[JudgeDifference] = ()) -> Element | None:
    """All judges, task by task, and what tells them apart; nothing where there are none."""
    if not judges:
        return None
    heading = element("h2", "Judges against the jury", id="judges")
    return element("section", heading, (_judge_parts(judge) for judge in judges), list(_difference_parts(differences)))


def _difference_parts(differences: Sequence[JudgeDifference]) -> Iterator[Child]:
    """Every two judges on the same units; nothing where there is one judge."""
    if not differences:
        return
    yield element("h3", "Judges against each other")
    yield element("ul", (element("li", quoted(sentence)) for sentence in difference_sentences(differences)))
    rows = (
        row(
            head(each.label),
            element("td", quoted(each.model_a), class_="words"),
            element("td", quoted(each.model_b), class_="words"),
            *(cell(f"{number:,}") for number in (each.n_units, each.n_records)),
            *(cell(percent(share)) for share in (each.agreement_a, each.agreement_b)),
            cell(f"{each.difference:+.2f}"),
            cell(f"[{each.interval[0]:+.2f}, {each.interval[1]:+.2f}]" if each.interval else UNDEFINED),
            *(cell(f"{p:.3f}") for p in (each.p, each.p_holm)),
        )
        for each in differences
    )
    yield folded("All differences", table("Agreement with the majority, on the same units", _APART, rows, "figures"))


def _judge_parts(judge: JudgeAgreement) -> Iterator[Child]:
    for task, found in judge.tasks.items():
        yield from _task_parts(judge.model, task, found)
    yield [element("p", element("bdi", sentence), class_="note") for sentence in other_task_sentences(judge)]


def _task_parts(model: str, task: TaskName, found: JudgedTask) -> Iterator[Child]:
    """One judge on one task: coverage, confusion, calibration, each annotator."""
    yield element("h3", quoted(model), f": {task}")
    sentences = (coverage_sentence(found), *left_out_sentences(found))
    yield element("ul", (element("li", quoted(sentence)) for sentence in sentences))
    if not found.labels:
        return
    rows = (_label_row(label, figures) for label, figures in found.labels.items())
    yield table(f"Confusion on {task}", _COLUMNS, rows, "figures whole", _MEANING)
    yield _standing_in_table(found)
    plots = (_reliability_figure(label, figures.calibration) for label, figures in found.labels.items())
    yield element("div", plots, class_="panels")
    yield element("p", _CALIBRATION_MEANING, class_="note")
    yield folded("Against each annotator", _annotators_table(found), _tested_table(found))


def _label_row(label: str, found: JudgedLabel) -> Element:
    """The confusion of one label."""
    confusion = found.confusion
    return row(
        head(label),
        cell(f"{found.n_compared:,}"),
        cell(f"{found.n_ties:,}"),
        *_count_cells(confusion),
        *(cell(_figure(confusion, name)) for name in ("precision", "recall", "f1", "accuracy")),
        cell(_kappa_cell(found)),
    )


def _count_cells(confusion: Confusion) -> list[Element]:
    """The four counts."""
    return [cell(f"{count:,}") for count in (confusion.tp, confusion.fp, confusion.fn, confusion.tn)]


def _figure(found: Confusion | Calibration, name: str) -> Child:
    """One figure, or a dash with its reason."""
    value: float | None = getattr(found, name)
    return missing(_SHORT_REASONS[found.undefined[name]]) if value is None else coefficient(value)


def _kappa_cell(found: JudgedLabel) -> list[Child]:
    """Kappa with its interval, or why there is none."""
    if found.confusion.cohen_kappa is None:
        return [_figure(found.confusion, "cohen_kappa")]
    if found.interval is None:
        few = "no interval: fewer than 20 units" if found.refused_interval == "few_units" else "no interval"
        return [element("b", coefficient(found.confusion.cohen_kappa)), element("small", f" {few}", class_="why")]
    bounds = element("span", f" {ends(found.interval)}", class_="bounds")
    return [element("b", coefficient(found.confusion.cohen_kappa)), bounds]


def _annotators_table(found: JudgedTask) -> Element:
    """The judge against each annotator, label by label."""
    rows = (
        row(
            head(label),
            element("td", quoted(each.annotator), class_="words"),
            cell(f"{sum((each.confusion.tp, each.confusion.fp, each.confusion.fn, each.confusion.tn)):,}"),
            *_count_cells(each.confusion),
            cell(percent(each.confusion.accuracy)),
            cell(_figure(each.confusion, "cohen_kappa")),
        )
        for label, figures in found.labels.items()
        for each in figures.annotators
    )
    return table("The judge against each annotator", _AGAINST, rows, "figures second")


def _standing_in_table(found: JudgedTask) -> Element:
    """What may be concluded of the judge on each label, by the alternative annotator test."""
    rows = (
        row(
            head(label),
            *(cell(_test_figure(value)) for value in shown_alt_test(figures.alt_test)),
            cell(coefficient(figures.alt_test.epsilon)),
            element("td", quoted(conclusion(figures.alt_test)), class_="words"),
        )
        for label, figures in found.labels.items()
    )
    return table("May the judge stand in for a person?", _STANDING_IN, rows, "figures", ALT_TEST_MEANING)


def _test_figure(value: float | None) -> Child:
    """A figure of the test, or a dash with its reason."""
    return missing("too few to tell") if value is None else coefficient(value)


def _tested_table(found: JudgedTask) -> Element:
    """The judge against each annotator left out, label by label."""
    rows = (
        row(
            head(label),
            element("td", quoted(each.annotator), class_="words"),
            *(cell(f"{number:,}") for number in (each.n_units, each.n_units_two_others, each.n_records)),
            *(cell(percent(share)) for share in (each.judge_wins, each.person_wins)),
            *(cell(f"{p:.3f}{' *' if won else ''}") for p, won in _p_values(each)),
        )
        for label, figures in found.labels.items()
        for each in figures.alt_test.people
    )
    return table("Who is nearer to the others; * the judge wins", _TESTED, rows, "figures second")


def _p_values(found: AltTestPerson) -> tuple[tuple[float, bool], tuple[float, bool]]:
    """Both p values, each with whether the judge wins."""
    return (found.p, found.won), (found.p_by_record, found.won_by_record)


def _reliability_figure(label: str, found: Calibration) -> Element:
    """The plot of one label with its figures beneath."""
    names = {"Brier": "brier", "ECE": "ece", "AUC": "auc"}
    figures = (
        [f"{', ' if place else ''}{name} ", _figure(found, key)] for place, (name, key) in enumerate(names.items())
    )
    bins = [each for each in found.bins if each.n]
    spoken = "; ".join(
        f"{each.n:,} units at {percent(each.mean_p_yes)}: {percent(each.share_yes)} yes" for each in bins
    )
    size = _SIDE + 2 * _MARGIN
    drawing = figure_svg(
        f"{label}: reliability of the judge's P(yes)",
        spoken or UNDEFINED,
        _frame(),
        _circles(found),
        viewBox=f"0 0 {size} {size}",
        class_="weeks",
    )
    return element("figure", element("figcaption", label), drawing, element("p", figures, class_="note"))


def _frame() -> Iterator[Element]:
    """Lines at the halves, the diagonal, and the names of both axes."""
    for value in (0.0, 0.5, 1.0):
        x, y = _across(value), _down(value)
        yield element("line", x1=x, x2=x, y1=_down(0), y2=_down(1), class_="grid")
        yield element("line", x1=_across(0), x2=_across(1), y1=y, y2=y, class_="grid")
        yield element("text", percent(value), x=x, y=_down(0) + 20, text_anchor="middle", class_="tick")
        yield element("text", percent(value), x=_across(0) - 6, y=y + 4, text_anchor="end", class_="tick")
    yield element("line", x1=_across(0), x2=_across(1), y1=_down(0), y2=_down(1), class_="threshold")
    middle = _across(0.5)
    yield element("text", "judge's P(yes)", x=middle, y=_down(0) + 38, text_anchor="middle", class_="tick")
    yield element("text", "jury says yes", x=_across(0), y=_down(1) - 12, class_="tick")


def _circles(found: Calibration) -> Iterator[Element]:
    """A circle for each bin that has units, its area by their number."""
    most = max((each.n for each in found.bins), default=0)
    for each in found.bins:
        if each.mean_p_yes is not None and each.share_yes is not None:
            radius = max(_SMALLEST, _LARGEST * (each.n / most) ** 0.5)
            said = f"{each.n:,} units at {percent(each.mean_p_yes)}: {percent(each.share_yes)} yes"
            x, y = _across(each.mean_p_yes), _down(each.share_yes)
            yield element("circle", element("title", said), cx=x, cy=y, r=radius, class_="estimate")


def _across(value: float) -> float:
    """Where a probability lies from the left."""
    return _MARGIN + _SIDE * _UNIT.place(value)


def _down(value: float) -> float:
    """Where a share lies from the top."""
    return _MARGIN + _SIDE * (1 - _UNIT.place(value))
