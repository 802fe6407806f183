"""Agreement over time: α by week for each label, and rounds and languages side by side."""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from typing import NamedTuple
from xml.etree.ElementTree import Element

from exports.agreement.schema import AgreementSlice, AlphaChange, Interval, SliceLabel, TaskAgreement
from exports.report.html._elements import (
    Child,
    cell,
    coefficient,
    element,
    estimated,
    folded,
    head,
    quoted,
    row,
    signed,
    table,
)
from exports.report.html._plot import THRESHOLDS, Axis, alpha_axis, figure_svg
from exports.report.words import SIGNIFICANT, decimal_p, percent
from pipeline.terminal import counted

_WIDTH, _HEIGHT = 340, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 326, 12, 142
"""Where the drawing proper ends within a panel, in pixels."""
_MOST_TICKS = 5
_ALPHA = "krippendorff_alpha"


class _Week(NamedTuple):
    """α of one label in one week."""

    name: str
    """ISO week such as `2025-W10`."""
    monday: date
    """Its first day."""
    found: SliceLabel
    """The figures."""


class _Point(NamedTuple):
    """A week that has an α, where it is drawn."""

    x: float
    """Pixels from the left."""
    week: _Week
    alpha: float
    interval: Interval | None
    """α's interval."""


def time_section(figures: TaskAgreement) -> list[Child]:
    """Weeks, rounds and languages; nothing of a kind of which there are fewer than two."""
    parts: list[Child] = []
    if len(figures.weeks) > 1:
        parts += [
            element("h3", "Agreement over time"),
            element(
                "p",
                "α by week of the unit's last response (ISO weeks, UTC), with its 95 % interval; open points have "
                "none, dashes at the foot are weeks without an α. The lines stand at .667 and .8.",
                class_="note",
            ),
            element("div", (week_panel(label, figures.weeks) for label in figures.labels), class_="panels"),
            _change_note(figures.changes),
            folded("The weeks as a table", _slices_table("week", figures.weeks, tuple(figures.labels))),
        ]
    if len(figures.rounds) > 1:
        parts += [element("h3", "Rounds side by side"), _rounds_table(figures)]
    if len(figures.languages) > 1:
        parts += [element("h3", "Languages"), _slices_table("language", figures.languages, tuple(figures.labels))]
    return parts


def week_panel(label: str, weeks: Sequence[AgreementSlice]) -> Element:
    """α of one label by week."""
    shown = [_Week(part.name, _monday(part.name), part.labels[label]) for part in weeks if label in part.labels]
    days = Axis(float(shown[0].monday.toordinal()), float(shown[-1].monday.toordinal()))
    runs = list(_runs_of_points(shown, days))
    points = [point for run in runs for point in run]
    axis = alpha_axis([*(point.alpha for point in points), *(p.interval.low for p in points if p.interval)])
    gaps = (
        element("text", "–", x=_across(days, week), y=_BOTTOM - 3, class_="gap", text_anchor="middle")
        for week in shown
        if week.found.krippendorff_alpha is None
    )
    drawing = figure_svg(
        f"{label}: α by week",
        "; ".join(_spoken(point) for point in points) or "No week has an α.",
        _grid(axis),
        _week_ticks(shown, days),
        gaps,
        (_run_marks(run, axis) for run in runs),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        class_="weeks",
    )
    return element("figure", element("figcaption", label), drawing)


def _monday(week: str) -> date:
    """The first day of an ISO week such as `2025-W10`."""
    year, number = week.split("-W")
    return date.fromisocalendar(int(year), int(number), 1)


def _across(days: Axis, week: _Week) -> float:
    """Where the week stands, in pixels from the left."""
    return _LEFT + 8 + (_RIGHT - _LEFT - 16) * days.place(float(week.monday.toordinal()))


def _down(axis: Axis, alpha: float) -> float:
    """Where the α stands, in pixels from the top."""
    return _BOTTOM - (_BOTTOM - _TOP) * axis.place(alpha)


def _runs_of_points(weeks: Sequence[_Week], days: Axis) -> Iterator[list[_Point]]:
    """The weeks with an α; a week without one in the list parts two runs."""
    run: list[_Point] = []
    for week in weeks:
        alpha = week.found.krippendorff_alpha
        if alpha is not None:
            run.append(_Point(_across(days, week), week, alpha, week.found.interval))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _grid(axis: Axis) -> Iterator[Element]:
    """Lines and numbers of α."""
    for value in axis.ticks(0.5):
        y = _down(axis, value)
        yield element("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="grid")
        yield element("text", coefficient(value), x=_LEFT - 6, y=y + 4, text_anchor="end", class_="tick")
    for value in THRESHOLDS:
        y = _down(axis, value)
        yield element("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="threshold")


def _week_ticks(weeks: Sequence[_Week], days: Axis) -> Iterator[Element]:
    """The names of some weeks, with the year where it is another."""
    step = max(1, -(-len(weeks) // _MOST_TICKS))
    year = ""
    for week in weeks[::step]:
        name = week.name if week.name[:4] != year else week.name[5:]
        x, anchor = _across(days, week), "middle"
        if not year:
            x, anchor = _LEFT, "start"
        year = week.name[:4]
        yield element("text", name, x=x, y=_BOTTOM + 18, text_anchor=anchor, class_="tick")


def _run_marks(run: Sequence[_Point], axis: Axis) -> Iterator[Element]:
    """The ribbon, the line and the points of weeks without a gap between them; no ribbon beside a missing interval."""
    for bounded, points in groupby(run, key=lambda point: point.interval is not None):
        if bounded:
            yield from _ribbon(list(points), axis)
    yield element("polyline", points=_coordinates([(p.x, _down(axis, p.alpha)) for p in run]), class_="line")
    for p in run:
        kind = "estimate" if p.interval else "estimate open"
        yield element("circle", element("title", _spoken(p)), cx=p.x, cy=_down(axis, p.alpha), r=3.5, class_=kind)


def _ribbon(points: Sequence[_Point], axis: Axis) -> Iterator[Element]:
    """The intervals of weeks in a row: a line for each, and the ground between the first and the last."""
    ends = [(p.x, _down(axis, p.interval.high), _down(axis, p.interval.low)) for p in points if p.interval]
    if len(ends) > 1:
        outline = [(x, high) for x, high, _ in ends] + [(x, low) for x, _, low in reversed(ends)]
        yield element("polygon", points=_coordinates(outline), class_="ribbon")
    for x, high, low in ends:
        yield element("line", x1=x, x2=x, y1=high, y2=low, class_="whisker thin")


def _coordinates(points: Sequence[tuple[float, float]]) -> str:
    """Points as SVG writes them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _spoken(point: _Point) -> str:
    """One week in words."""
    between = f", {coefficient(point.interval.low)} to {coefficient(point.interval.high)}" if point.interval else ""
    units = counted(point.week.found.n_pairable_items, "unit")
    return f"{point.week.name}: α {coefficient(point.alpha)}{between}, {units}"


def _change_note(changes: Sequence[AlphaChange]) -> Element | None:
    """The steps from week to week that are more than chance; nothing where none was tested."""
    tested = [change for change in changes if change.kind == "week"]
    certain = [change for change in tested if change.p_holm < SIGNIFICANT]
    if not tested:
        return None
    if not certain:
        text = f"Of {counted(len(tested), 'step')} from week to week none is more than chance (permutation, Holm)."
        return element("p", text, class_="note")
    return _changes_table("Steps from week to week that are more than chance", certain)


def _rounds_table(figures: TaskAgreement) -> list[Child]:
    """α of each label by round, and each step with its test."""
    changes = [change for change in figures.changes if change.kind == "round"]
    return [
        _slices_table("round", figures.rounds, tuple(figures.labels)),
        _changes_table("Change of α from round to round", changes) if changes else None,
    ]


def _changes_table(caption: str, changes: Sequence[AlphaChange]) -> Element:
    """Steps of α with interval and test."""
    rows = (
        row(
            head(change.label),
            element("td", quoted(change.before), " → ", quoted(change.after), class_="words"),
            cell(_estimated_change(change)),
            cell(decimal_p(change.p_value)),
            cell(decimal_p(change.p_holm)),
        )
        for change in changes
    )
    return table(caption, ("Label", "step", "change of α [95 %]", "p", "p after Holm"), rows, "figures second")


def _estimated_change(change: AlphaChange) -> Child:
    """The change with its interval."""
    interval = change.interval
    ends = f" [{signed(interval.low)}, {signed(interval.high)}]" if interval else ""
    return [element("b", signed(change.difference)), element("span", ends, class_="bounds")]


def _slices_table(kind: str, slices: Sequence[AgreementSlice], labels: Sequence[str]) -> Element:
    """Parts side by side: α with interval, units with two ratings or more, share of yes."""
    rows = (
        row(
            head(quoted(part.name)),
            cell(f"{part.n_records:,}"),
            *(cell(_slice_cell(part.labels[label])) if label in part.labels else cell("–") for label in labels),
        )
        for part in slices
    )
    meaning = "α [95 % interval]; beneath it units with two ratings or more, and the share of yes."
    return table(f"α of each label by {kind}", (kind.capitalize(), "records", *labels), rows, "figures whole", meaning)


def _slice_cell(found: SliceLabel) -> list[Child]:
    """One label in one part."""
    return [
        estimated(found.krippendorff_alpha, found.interval, found.undefined.get(_ALPHA)),
        element("small", f"{found.n_pairable_items:,} · {percent(found.prevalence)} yes", class_="below"),
    ]
