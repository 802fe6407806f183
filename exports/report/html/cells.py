"""Cells and tables of the report: aligned numbers, a dash with its reason where there is none."""

import re
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element

from exports.agreement.figures import Interval, RefusedReason, UndefinedReason
from exports.report.html.elements import Child, element
from exports.report.words import UNDEFINED, bounds, decimal

SHORT_REASONS: dict[UndefinedReason, str] = {
    "no_pairable_items": "no overlap",
    "single_annotator": "one annotator",
    "no_variation": "no variation",
    "constant_both_raters": "both constant",
}
SHORT_REFUSALS: dict[RefusedReason, str] = {
    "undefined": "undefined",
    "undefined_resamples": "undefined in over 5 % of resamples",
    "single_record": "one record only",
    "constant": "no spread",
}


def coefficient(value: float | None) -> str:
    """A coefficient as it is printed, such as `.74` or `−.05`; a dash where it is undefined."""
    return decimal(value).replace("-", "−")


def ends(interval: Interval | None) -> str:
    """An interval such as `[−.02, .83]`; empty where there is none."""
    return bounds(interval).replace("-", "−")


def missing(reason: str = "") -> list[Child]:
    """A dash with its reason beside it."""
    return [UNDEFINED, element("small", f" {reason}", class_="why") if reason else None]


def number(value: float | None, reason: UndefinedReason | None = None) -> Child:
    """A coefficient, or a dash with its reason."""
    return missing(SHORT_REASONS[reason] if reason else "") if value is None else coefficient(value)


def signed(value: float | None) -> str:
    """A difference with its sign, such as `+.05`; a dash where it is undefined."""
    if value is None:
        return UNDEFINED
    text = coefficient(value)
    return f"+{text}" if value > 0 and text != ".00" else text


def estimated(
    value: float | None,
    interval: Interval | None,
    reason: UndefinedReason | None = None,
    refused: RefusedReason | None = None,
) -> Child:
    """A coefficient with its interval, or what there is of both with the reason for the rest."""
    if value is None:
        return number(value, reason)
    if interval is not None:
        return [element("b", coefficient(value)), element("span", f" {ends(interval)}", class_="bounds")]
    why = f" no interval: {SHORT_REFUSALS[refused]}" if refused else " no interval"
    return [element("b", coefficient(value)), element("small", why, class_="why")]


def cell(*children: Child) -> Element:
    """A cell with a number."""
    return element("td", *children)


def head(*children: Child) -> Element:
    """The cell that names its row."""
    return element("th", *children, scope="row")


def table(
    caption: str, columns: Sequence[Child], rows: Iterable[Child], kind: str = "", meaning: Child = None
) -> Element:
    """A table with a caption and a row of column names; where it is too wide, it scrolls by itself.

    Args:
        caption: What it shows.
        columns: The names of the columns, that of the rows' names first.
        rows: Its `tr` elements, or `tbody` elements of them.
        kind: A class for its looks.
        meaning: What its columns mean; it stands beneath the table.
    """
    names = element("thead", element("tr", (element("th", name, scope="col") for name in columns)))
    inner = element("table", element("caption", caption), names, rows, class_=kind or None)
    scroll = element("div", inner, class_="scroll", tabindex=0, role="group", aria_label=f"Table: {caption}")
    return element("div", scroll, element("p", meaning, class_="note") if meaning else None, class_="table")


def row(*cells: Child) -> Element:
    """One row."""
    return element("tr", *cells)


def folded(summary: Child, *children: Child, **attributes: str) -> Element:
    """What is shown on a click."""
    return element("details", element("summary", summary), *children, **attributes)


CODE = re.compile(r"`([a-z_.]+)`")


def sentence(text: str) -> Element:
    """A sentence that may hold names of others; names of figures between backticks stand as code."""
    parts = (element("code", part) if place % 2 else part for place, part in enumerate(CODE.split(text)))
    return element("bdi", parts, dir="auto")
