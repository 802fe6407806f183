"""What all figures of the report are drawn with: axes, strips as wide as their place, marks that differ in shape.

Positions on a strip are percentages of its width, sizes are pixels: so it fits any screen and its marks keep their
shape.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from exports.report.html._elements import Attribute, Child, element

THRESHOLDS = (0.667, 0.8)
"""Krippendorff's: below the first discard, below the second draw tentative conclusions only."""
_ROW, _MIDDLE = 30, 15
"""Height of a strip and its middle, in pixels."""


class Axis(NamedTuple):
    """A scale between two values."""

    low: float
    """The value at the left end."""
    high: float
    """The value at the right end."""

    def place(self, value: float) -> float:
        """Where the value is, as a share of the axis; what lies beyond an end is put on it."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def percent(self, value: float) -> str:
        """The same as a coordinate of SVG."""
        return f"{100 * self.place(value):.2f}%"

    def ticks(self, step: float) -> list[float]:
        """The multiples of the step on the axis."""
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 6) for number in range(first, last + 1)]


def alpha_axis(values: Iterable[float | None]) -> Axis:
    """An axis for coefficients: from 0, or below it where a value is, to 1."""
    lowest = min((value for value in values if value is not None), default=0.0)
    return Axis(max(-1.0, min(0.0, math.floor(lowest * 5 - 1e-9) / 5)), 1.0)


def difference_axis(values: Iterable[float | None]) -> Axis:
    """An axis for differences with 0 in the middle, at least from -.1 to .1."""
    reach = max((abs(value) for value in values if value is not None), default=0.0)
    return Axis(-(end := max(0.1, math.ceil(reach * 10 - 1e-9) / 10)), end)


def figure_svg(title: str, description: str, *marks: Child, **attributes: Attribute) -> Element:
    """A drawing with what screen readers say of it: a title, and a description with its numbers."""
    return element("svg", element("title", title), element("desc", description), *marks, role="img", **attributes)


def strip(title: str, description: str, *marks: Child) -> Element:
    """A drawing of one row's height, as wide as its place."""
    return figure_svg(title, description, *marks, class_="strip", width="100%", height=_ROW)


def rule(axis: Axis, value: float, kind: str = "grid") -> Element:
    """A line across the row at a value; kinds are `grid`, `zero` and `threshold`."""
    return element("line", x1=axis.percent(value), x2=axis.percent(value), y1=0, y2=_ROW, class_=kind)


def thresholds(axis: Axis) -> list[Element]:
    """Lines across the row at 0 and at both thresholds."""
    return [rule(axis, 0.0, "zero"), *(rule(axis, value, "threshold") for value in THRESHOLDS)]


def whisker(axis: Axis, low: float, high: float) -> list[Element]:
    """An interval: a line with an end at each side, an open one where it goes on beyond the axis."""
    line = element("line", x1=axis.percent(low), x2=axis.percent(high), y1=_MIDDLE, y2=_MIDDLE, class_="whisker")
    ends = [
        element("line", x1=axis.percent(end), x2=axis.percent(end), y1=_MIDDLE - 4, y2=_MIDDLE + 4, class_="whisker")
        for end in (low, high)
        if axis.low <= end <= axis.high
    ]
    return [line, *ends]


def dot(axis: Axis, value: float) -> Element:
    """The estimate itself: a filled circle."""
    return element("circle", cx=axis.percent(value), cy=_MIDDLE, r=5, class_="estimate")


def diamond(axis: Axis, value: float) -> Element:
    """A lighter mark: an open diamond."""
    return _shape(
        axis, value, element("path", d=f"M0 {_MIDDLE - 5}L5 {_MIDDLE}L0 {_MIDDLE + 5}L-5 {_MIDDLE}Z", class_="light")
    )


def square(axis: Axis, value: float) -> Element:
    """Another lighter mark: an open square."""
    return _shape(axis, value, element("rect", x=-4, y=_MIDDLE - 4, width=8, height=8, class_="light"))


def _shape(axis: Axis, value: float, mark: Element) -> Element:
    """A mark drawn around 0, moved to its value."""
    return element("svg", mark, x=axis.percent(value), y=0, class_="mark")


def bar(share: float) -> list[Element]:
    """A share between 0 and 1 as a bar on a pale ground."""
    return [
        element("rect", x=0, y=_MIDDLE - 4, width="100%", height=8, class_="ground"),
        element("rect", x=0, y=_MIDDLE - 4, width=f"{100 * share:.2f}%", height=8, class_="bar"),
    ]


def scale(axis: Axis, ticks: Iterable[tuple[float, str]]) -> Element:
    """The numbers beneath a column of strips; the strips themselves say their values to screen readers."""
    marks = [
        element("text", text, x=axis.percent(value), y=14, class_="tick", text_anchor="middle") for value, text in ticks
    ]
    return element("svg", marks, class_="strip", width="100%", height=18, aria_hidden="true")
