"""HTML and SVG as a tree of elements: text can never become markup, because only the writer of the tree escapes.

Whoever adds to the report hands over texts as they are. `element` takes out the characters that reorder or damage a
page, and lets no address through but those of the web and of the page itself.
"""

import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, tostring

from annotation.argilla.rendering import harmless_characters
from exports.report.sections import Section
from exports.report.words import THRESHOLDS, UNDEFINED, bounds, decimal
from exports.statistics.agreement_schema import Interval, RefusedReason
from exports.statistics.table import UndefinedReason
from pipeline.citations.addresses import url_host
from pipeline.core.tables import Table

SHORT_REASONS: dict[UndefinedReason, str] = {
    "no_pairable_items": "no overlap",
    "single_annotator": "one annotator",
    "no_variation": "no variation",
    "constant_both_raters": "both constant",
    "no_exchange": "nobody to exchange with",
}
_SHORT_REFUSALS: dict[RefusedReason, str] = {
    "undefined": "undefined",
    "undefined_resamples": "undefined in over 5 % of resamples",
    "single_record": "one record only",
    "constant": "no spread",
    "too_few_rare_ratings": "the rarer value is too rare",
}
_CODE = re.compile(r"`([a-z_. -]+)`")
_ESTIMATE = re.compile(r"([-+.\d%]+)( \[[-+.\d%, ]+\])( of [\d,]+)?")


Child = Element | str | None | Iterable["Child"]
Attribute = str | int | float | bool | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Element:
    """An element of HTML or SVG; children may be nested as one likes, None is nothing.

    In names of attributes `_` stands for `-`, and one more at the end goes; None and False are left out, True is an
    attribute without a value.

    Raises:
        ValueError: it is a script or a style, or links to something that is not of the web; both are our own mistakes.
    """
    if tag in ("script", "style"):
        raise ValueError(f"A {tag} is read with `embedded`, never built from texts.")
    found = Element(tag)
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        if name == "href" and not (str(value).startswith("#") or url_host(str(value))):
            raise ValueError(f"A link leads to {value!r}, which is no address of the web.")
        text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else clean(str(value))
        found.set(name.rstrip("_").replace("_", "-"), "" if value is True else text)
    _add_children(found, children)
    return found


def _add_children(parent: Element, children: Iterable[Child]) -> None:
    for child in children:
        match child:
            case None:
                continue
            case str():
                if len(parent):
                    parent[-1].tail = (parent[-1].tail or "") + clean(child)
                else:
                    parent.text = (parent.text or "") + clean(child)
            case Element():
                parent.append(child)
            case _:
                _add_children(parent, child)


def clean(text: str) -> str:
    """The text without control characters, reordering bidi controls, towers of marks and halves of characters."""
    return harmless_characters(text.encode("utf-8", "replace").decode())


def quoted(text: str, tag: str = "bdi", **attributes: Attribute) -> Element:
    """A text of somebody else, whose direction of writing has no effect on what stands around it."""
    return element(tag, text, dir="auto", **attributes)


def embedded(tag: Literal["script", "style"], name: str) -> tuple[Element, str]:
    """A script or style of this package, and its source expression for a Content-Security-Policy."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    found: Element = Element(tag)
    found.text = text
    return found, f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def to_html(root: Element) -> str:
    return tostring(root, encoding="unicode", method="html")


def coefficient(value: float | None) -> str:
    return decimal(value).replace("-", "−")


def ends(interval: Interval | None) -> str:
    return bounds(interval).replace("-", "−")


def missing(reason: str = "") -> list[Child]:
    return [UNDEFINED, element("small", f" {reason}", class_="why") if reason else None]


def number(value: float | None, reason: UndefinedReason | None = None) -> Child:
    return missing(SHORT_REASONS[reason] if reason else "") if value is None else coefficient(value)


def signed(value: float | None) -> str:
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
    why = f" no interval: {_SHORT_REFUSALS[refused]}" if refused else " no interval"
    return [element("b", coefficient(value)), element("small", why, class_="why")]


def head(*children: Child) -> Element:
    return element("th", *children, scope="row")


def table(
    caption: str, columns: Sequence[Child], rows: Iterable[Child], kind: str = "", meaning: Child = None
) -> Element:
    """A table that scrolls by itself where it is too wide; `rows` are `tr` or `tbody`, the `meaning` stands below."""
    inner = element("table", element("caption", caption), heads(columns), rows, class_=kind or None)
    scroll = element("div", inner, class_="scroll", tabindex=0, role="group", aria_label=f"Table: {caption}")
    return element("div", scroll, element("p", meaning, class_="note") if meaning else None, class_="table")


def row(*cells: Child) -> Element:
    """Of cells that are `th` or `td` already, and of what a plain `td` holds."""
    made = (each if isinstance(each, Element) and each.tag in ("th", "td") else element("td", each) for each in cells)
    return element("tr", made)


def heads(names: Iterable[Child]) -> Element:
    return element("thead", element("tr", (element("th", name, scope="col") for name in names)))


def folded(summary: Child, *children: Child, **attributes: str) -> Element:
    return element("details", element("summary", summary), *children, **attributes)


def sentence(text: str) -> Element:
    """A sentence that may hold names of others; names of figures between backticks stand as code."""
    parts = (element("code", part) if place % 2 else part for place, part in enumerate(_CODE.split(text)))
    return element("bdi", parts, dir="auto")


def bullets(sentences: Iterable[str]) -> Element:
    return element("ul", (element("li", sentence(text)) for text in sentences))


def text_table(caption: str, found: Table, meaning: Child = None) -> Element:
    """A table of texts as every other output has it; the first column names the rows."""
    columns, *lines = ([str(cell) for cell in line] for line in found.rows)
    left = len(columns) if found.left is None else found.left
    rows = (
        row(
            head(quoted(first)),
            *(
                element("td", _estimate(text), class_="words" if at < left else None)
                for at, text in enumerate(texts, 1)
            ),
        )
        for first, *texts in lines
    )
    return table(
        caption, [quoted(name) for name in columns], rows, "figures second" if left > 1 else "figures", meaning
    )


def _estimate(text: str) -> Child:
    """A text; of a figure with its interval the interval is paler, and smaller what it is of."""
    found = _ESTIMATE.fullmatch(text)
    if found is None:
        return quoted(text)
    value, interval, basis = found.groups()
    small = element("small", basis, class_="why") if basis else None
    return [element("b", value), element("span", interval, class_="bounds"), small]


def section_parts(found: Section, name: str = "") -> list[Child]:
    """A section as every other output has it, `name` as the id of its heading; a folded one on a click."""
    title = element(f"h{found.depth}", quoted(found.title), id=name or None) if found.title else None
    parts: list[Child] = [
        bullets(text for _, text in found.lead) if found.lead else None,
        [text_table(found.title, each) for each in found.tables],
        [element("p", sentence(note), class_="note") for note in found.notes],
        bullets(text for _, text in found.points) if found.points else None,
    ]
    return [folded(title, *parts)] if found.folded else [title, *parts]


_ROW, _MIDDLE = 30, 15  # height of a strip and its middle, in pixels


class Axis(NamedTuple):
    low: float
    high: float

    def place(self, value: float) -> float:
        """As a share of the axis; what lies beyond an end is put on it."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def percent(self, value: float) -> str:
        return f"{100 * self.place(value):.2f}%"

    def ticks(self, step: float) -> list[float]:
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 6) for number in range(first, last + 1)]


def alpha_axis(values: Iterable[float | None]) -> Axis:
    """From 0, or below it where a value is, to 1."""
    lowest = min((value for value in values if value is not None), default=0.0)
    return Axis(max(-1.0, min(0.0, math.floor(lowest * 5 - 1e-9) / 5)), 1.0)


def difference_axis(values: Iterable[float | None]) -> Axis:
    """With 0 in the middle, at least from -.1 to .1."""
    reach = max((abs(value) for value in values if value is not None), default=0.0)
    return Axis(-(end := max(0.1, math.ceil(reach * 10 - 1e-9) / 10)), end)


def figure_svg(title: str, description: str, *marks: Child, **attributes: Attribute) -> Element:
    return element("svg", element("title", title), element("desc", description), *marks, role="img", **attributes)


def strip(title: str, description: str, *marks: Child) -> Element:
    return figure_svg(title, description, *marks, class_="strip", width="100%", height=_ROW)


def rule(axis: Axis, value: float, kind: str = "grid") -> Element:
    """Kinds are `grid`, `zero` and `threshold`."""
    return element("line", x1=axis.percent(value), x2=axis.percent(value), y1=0, y2=_ROW, class_=kind)


def thresholds(axis: Axis) -> list[Element]:
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
    return element("circle", cx=axis.percent(value), cy=_MIDDLE, r=5, class_="estimate")


def diamond(axis: Axis, value: float | None) -> Element | None:
    return _light(axis, value, element("path", d=f"M0 {_MIDDLE - 5}L5 {_MIDDLE}L0 {_MIDDLE + 5}L-5 {_MIDDLE}Z"))


def square(axis: Axis, value: float | None) -> Element | None:
    return _light(axis, value, element("rect", x=-4, y=_MIDDLE - 4, width=8, height=8))


def _light(axis: Axis, value: float | None, mark: Element) -> Element | None:
    mark.set("class", "light")
    return None if value is None else element("svg", mark, x=axis.percent(value), y=0, class_="mark")


def estimate_strip(
    name: str,
    description: str,
    axis: Axis,
    value: float | None,
    ends: tuple[float, float] | None,
    said: Callable[[float | None], str],
    ground: Child = None,
) -> Element:
    """An estimate with its interval, drawn in one row on a ground and, as `said`, for screen readers."""
    between = f" between {said(ends[0])} and {said(ends[1])}" if ends else ""
    marks = [whisker(axis, *ends) if ends else None, None if value is None else dot(axis, value)]
    return strip(f"{name} {said(value)}{between}", description, ground, marks)


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
