"""Judges against the jury: confusion, kappa, and a reliability plot for each label."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from exports.agreement.schema import Agreement, Calibration, JudgeDifference, JudgedTask, ReliabilityBin
from exports.report.agreement_page import closing_sections, judge_section
from exports.report.html._elements import Child, element, folded, section_parts, text_table
from exports.report.html._plot import Axis, figure_svg
from exports.report.judge_words import ALT_TEST_MEANING
from exports.report.words import UNDEFINED, decimal, percent
from pipeline.tables import Table

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
_UNIT = Axis(0.0, 1.0)


def judges_section(agreement: Agreement) -> Element | None:
    """All judges, task by task, and what tells them apart; nothing where there are none."""
    if not agreement.judges:
        return None
    tasks = (
        [section_parts(judge_section(judge.model, task, found, "page")), _task_details(found) if found.labels else None]
        for judge in agreement.judges
        for task, found in judge.tasks.items()
    )
    together = [section_parts(section) for section in closing_sections(agreement)]
    differences = _differences_table(agreement.judge_differences) if agreement.judge_differences else None
    heading = element("h2", "Judges against the jury", id="judges")
    return element("section", heading, tasks, together, differences)


def _differences_table(differences: Sequence[JudgeDifference]) -> Element:
    """Every two judges on the same units, on a click."""
    rows = [
        (
            *(each.label, each.model_a, each.model_b),
            *(f"{number:,}" for number in (each.n_units, each.n_records)),
            *(percent(share) for share in (each.agreement_a, each.agreement_b)),
            f"{each.difference:+.2f}",
            f"[{each.interval[0]:+.2f}, {each.interval[1]:+.2f}]" if each.interval else UNDEFINED,
            *(f"{p:.3f}" for p in (each.p, each.p_holm)),
        )
        for each in differences
    ]
    table = text_table("Agreement with the majority, on the same units", Table([_APART, *rows], left=3))
    return folded("All differences", table)


def _task_details(found: JudgedTask) -> list[Child]:
    """What only the report has of one judge on one task: calibration, and each annotator on a click."""
    plots = (_reliability_figure(label, figures.calibration) for label, figures in found.labels.items())
    return [
        element("div", plots, class_="panels"),
        element("p", _CALIBRATION_MEANING, class_="note"),
        folded("Against each annotator", _annotators_table(found), _tested_table(found)),
    ]


def _annotators_table(found: JudgedTask) -> Element:
    """The judge against each annotator, label by label."""
    rows = [
        (
            *(label, each.annotator),
            *(f"{count:,}" for count in (sum(counts), *counts)),
            percent(each.confusion.accuracy),
            decimal(each.confusion.cohen_kappa),
        )
        for label, figures in found.labels.items()
        for each in figures.annotators
        for counts in [(each.confusion.tp, each.confusion.fp, each.confusion.fn, each.confusion.tn)]
    ]
    return text_table("The judge against each annotator", Table([_AGAINST, *rows], left=2), _KAPPA_MEANING)


def _tested_table(found: JudgedTask) -> Element:
    """The judge against each annotator left out, label by label."""
    rows = [
        (
            *(label, each.annotator),
            *(f"{number:,}" for number in (each.n_units, each.n_units_two_others, each.n_records)),
            *(percent(share) for share in (each.judge_wins, each.person_wins)),
            f"{each.p:.3f}{' *' if each.won else ''}",
            f"{each.p_by_record:.3f}{' *' if each.won_by_record else ''}",
        )
        for label, figures in found.labels.items()
        for each in figures.alt_test.people
    ]
    return text_table(
        "Who is nearer to the others; * the judge wins", Table([_TESTED, *rows], left=2), ALT_TEST_MEANING
    )


def _reliability_figure(label: str, found: Calibration) -> Element:
    """The plot of one label."""
    spoken = "; ".join(_spoken(each) for each in found.bins if each.n)
    size = _SIDE + 2 * _MARGIN
    drawing = figure_svg(
        f"{label}: reliability of the judge's P(yes)",
        spoken or UNDEFINED,
        _frame(),
        _circles(found),
        viewBox=f"0 0 {size} {size}",
        class_="weeks",
    )
    return element("figure", element("figcaption", label), drawing)


def _spoken(found: ReliabilityBin) -> str:
    """One bin in words."""
    return f"{found.n:,} units at {percent(found.mean_p_yes)}: {percent(found.share_yes)} yes"


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
            x, y = _across(each.mean_p_yes), _down(each.share_yes)
            yield element("circle", element("title", _spoken(each)), cx=x, cy=y, r=radius, class_="estimate")


def _across(value: float) -> float:
    """Where a probability lies from the left."""
    return _MARGIN + _SIDE * _UNIT.place(value)


def _down(value: float) -> float:
    """Where a share lies from the top."""
    return _MARGIN + _SIDE * (1 - _UNIT.place(value))
