"""Annotators: a heat map of their pairs for each label, who stands out, and everybody's figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from annotation.argilla.rendering import one_line
from exports.report.html import elements as html
from exports.report.html.elements import ends
from exports.report.words import UNDEFINED, annotator_sentences, percent
from exports.statistics.agreement_schema import Agreement, AnnotatorAgreement, PairAgreement, TaskAgreement
from exports.statistics.warnings import FEW_SHARED

MOST_ANNOTATORS = 20  # a map of more cannot be read
_NAME_LENGTH = 12
_SIDE, _LETTER = 38, 7  # side of a cell, and the room that a letter of a name takes, in pixels
_PALE = 0.08  # strength of the colour at a kappa of 0 or less

_Key = tuple[str, str]


class _Map(NamedTuple):
    label: str
    names: Mapping[str, str]  # the annotators, each with the form of the name that stands beside the map
    pairs: Mapping[_Key, PairAgreement]  # the pairs by both names, in either order
    left: float
    top: float


def pair_section(figures: TaskAgreement) -> list[html.Child]:
    if len(figures.annotators) < 2 or not figures.pairs:
        return []
    names = similar_order(most_shared(figures), figures.pairs)
    left_out = len(figures.annotators) - len(names)
    text = (
        f"Above the diagonal Cohen's κ, below it the units that both rated; grey where those are fewer than "
        f"{FEW_SHARED}, empty where there is none{' or other pairs share more' if figures.pairs_left_out else ''}. "
        "Annotators who agree stand next to each other."
    )
    if left_out:
        rest = "" if figures.pairs_left_out else f"; pairs.csv holds the other {left_out} too"
        text += f" Shown are {len(names)} who share most units{rest}."
    named = short_names(names)
    room = _LETTER * max(len(name) for name in named.values())
    both = [(key, pair) for pair in figures.pairs for key in _keys(pair)]
    maps = (
        _heat_map(_Map(label, named, {key: p for key, p in both if p.label == label}, room + 16.0, 0.7 * room + 20))
        for label in figures.labels
    )
    shown = set(names)
    shared = [pair for pair in figures.pairs if {pair.rater_a, pair.rater_b} <= shown]
    return [
        html.element("h3", "Pairs of annotators"),
        html.element("p", text, class_="note"),
        _legend(),
        html.element("div", maps, class_="panels"),
        html.folded("The pairs as a table", _pair_table(shared)),
    ]


def most_shared(figures: TaskAgreement) -> list[str]:
    """At most as many as a map can show: of more, those of the pairs that share most units.

    In a crowd hardly any two share more than a few units: those who answered most need not have answered the same.
    """
    shared: Counter[_Key] = Counter()
    for pair in figures.pairs:
        shared[pair.rater_a, pair.rater_b] += pair.n_shared
    chosen: dict[str, None] = {} if len(figures.annotators) > MOST_ANNOTATORS else dict.fromkeys(figures.annotators)
    for names in sorted(shared, key=lambda names: (-shared[names], names)):
        if len({*chosen, *names}) <= MOST_ANNOTATORS:
            chosen |= dict.fromkeys(names)
    each = Counter({name: sum(shared[names] for names in shared if name in names) for name in chosen})
    return sorted(each, key=lambda name: (-each[name], name))


def similar_order(names: Sequence[str], pairs: Iterable[PairAgreement]) -> list[str]:
    """The names in a row that grows at both ends by whoever agrees best with its end, over all labels.

    It begins with the pair of the highest mean kappa. Pairs without a kappa are taken for strangers.
    """
    found: dict[_Key, list[float]] = {}
    for pair in pairs:
        if pair.cohen_kappa is not None:
            for key in _keys(pair):
                found.setdefault(key, []).append(pair.cohen_kappa)
    means = {key: sum(kappas) / len(kappas) for key, kappas in found.items()}
    left = sorted(names)
    chain = list(max(((a, b) for a in left for b in left if a < b), key=lambda key: means.get(key, -2), default=left))
    left = [name for name in left if name not in chain]
    while left:
        end, name = max(
            ((end, name) for end in (-1, 0) for name in left), key=lambda at: means.get((chain[at[0]], at[1]), -2)
        )
        chain.insert(0 if end == 0 else len(chain), name)
        left.remove(name)
    return chain


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Each name in a form that fits beside a map: without what all begin and end with, then without its middle."""
    if max(len(name) for name in names) <= _NAME_LENGTH:
        return {name: one_line(name) for name in names}
    begin = _shared_start(names)
    end = _shared_start([name[begin:][::-1] for name in names])
    cut = {name: one_line(name[begin : len(name) - end]) or one_line(name) for name in names}
    half = _NAME_LENGTH // 2
    return {name: f"{s[:half]}…{s[1 - half :]}" if len(s) > _NAME_LENGTH else s for name, s in cut.items()}


def _shared_start(names: Sequence[str]) -> int:
    first, last = min(names), max(names)  # what these two share, those between them share too
    differ = (place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return next(differ, min(len(first), len(last)))


def _keys(pair: PairAgreement) -> tuple[_Key, _Key]:
    return (pair.rater_a, pair.rater_b), (pair.rater_b, pair.rater_a)


def _heat_map(shown: _Map) -> Element:
    size, names = _SIDE * len(shown.names), list(shown.names)
    width, height = shown.left + size + 0.8 * (shown.left - 16), shown.top + size + 2
    pairs = [
        pair for (first, second), pair in shown.pairs.items() if first == pair.rater_a and {first, second} <= {*names}
    ]
    drawing = html.figure_svg(
        f"{shown.label}: pairs of annotators",
        "; ".join(map(_spoken, pairs)) or "No shared units.",
        _heads(shown),
        (_map_cell(shown, names, line, column) for line in range(len(names)) for column in range(len(names))),
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_="map",
    )
    return html.element("figure", html.element("figcaption", shown.label), html.element("div", drawing, class_="wide"))


def _heads(shown: _Map) -> Iterator[Element]:
    for place, (name, short) in enumerate(shown.names.items()):
        middle, whole = _SIDE * place + _SIDE / 2, html.element("title", name)
        x, y = shown.left - 8, shown.top + middle + 4
        yield html.element("text", short, whole, x=x, y=y, text_anchor="end", class_="name")
        x, y = shown.left + middle, shown.top - 8
        yield html.element("text", short, whole, x=x, y=y, transform=f"rotate(-40 {x:g} {y:g})", class_="name")


def _map_cell(shown: _Map, names: Sequence[str], line: int, column: int) -> Element | None:
    """Kappa above the diagonal, shared units below it, nothing on it."""
    pair = shown.pairs.get((names[line], names[column]))
    if line == column or pair is None:
        return None
    few, above = pair.n_shared < FEW_SHARED, column > line
    kappa = pair.cohen_kappa
    coloured = above and not few and kappa is not None
    strength = _PALE + (1 - _PALE) * min(max(kappa or 0.0, 0.0), 1.0)
    x, y = shown.left + _SIDE * column, shown.top + _SIDE * line
    ground = html.element(
        "rect",
        x=x + 1,
        y=y + 1,
        width=_SIDE - 2,
        height=_SIDE - 2,
        rx=3,
        class_="heat" if coloured else "few" if few and above else "count",
        fill_opacity=strength if coloured else None,
    )
    # On a stronger colour white text has more contrast than black.
    kind = "on" if coloured and strength > 0.75 else "dim" if few or not above else "off"
    text = html.coefficient(kappa) if above else f"{pair.n_shared:,}"
    written = html.element("text", text, text_anchor="middle", class_=kind, x=x + _SIDE / 2, y=y + _SIDE / 2 + 4)
    return html.element("g", html.element("title", _spoken(pair)), ground, written)


def _spoken(pair: PairAgreement) -> str:
    reason = pair.undefined.get("cohen_kappa")
    kappa = html.coefficient(pair.cohen_kappa) if reason is None else f"{UNDEFINED} ({html.SHORT_REASONS[reason]})"
    return f"{pair.rater_a} and {pair.rater_b}: κ {kappa}, {pair.n_shared:,} shared"


def _legend() -> Element:
    marks: list[html.Child] = []
    for at, step in enumerate((0.0, 0.2, 0.4, 0.6, 0.8, 1.0)):
        strength = _PALE + (1 - _PALE) * step
        marks.append(
            html.element("rect", x=at * 34, y=2, width=32, height=14, rx=3, class_="heat", fill_opacity=strength)
        )
    for at, text in enumerate(("≤ 0", ".20", ".40", ".60", ".80", "1.00")):
        marks.append(html.element("text", text, x=at * 34 + 16, y=30, text_anchor="middle", class_="tick"))
    marks.append(html.element("rect", x=224, y=2, width=32, height=14, rx=3, class_="few"))
    marks.append(html.element("text", f"< {FEW_SHARED} shared", x=240, y=30, text_anchor="middle", class_="tick"))
    return html.figure_svg(
        "Scale of κ", "From pale, 0 or less, to dark, 1.", marks, width=290, height=34, class_="legend"
    )


def _pair_table(pairs: Sequence[PairAgreement]) -> Element:
    counts = ("both yes", "only first", "only second", "both no")
    columns = ("First, second", "label", "shared", "κ [95 %]", "PABAK", *counts, "McNemar p")
    rows = (
        html.row(
            html.head(html.quoted(pair.rater_a), ", ", html.quoted(pair.rater_b)),
            pair.label,
            f"{pair.n_shared:,}",
            html.estimated(pair.cohen_kappa, pair.interval, pair.undefined.get("cohen_kappa")),
            html.number(pair.pabak),
            *(f"{count:,}" for count in (pair.n11, pair.n10, pair.n01, pair.n00)),
            UNDEFINED if pair.mcnemar_p is None else f"{pair.mcnemar_p:.3f}",
        )
        for pair in pairs
    )
    return html.table("Pairs that share units", columns, rows, "figures")


_MOST_ANNOTATORS = 40  # more rows a label nobody reads; `annotators.csv` has them all
_SHARE = html.Axis(0.0, 1.0)
_COLUMNS = (
    *("Annotator", "ratings", "says yes", "yes votes"),
    *("as the others", "κ", "bias", "alone", "Δα", "α without less α"),
)
_MEANING = (
    "As the others: share of units on which she says what most of the others say, and κ with them; bias above 0: she "
    "says yes more often than they do; alone: units with three or more ratings on which nobody else says the same; Δα "
    "above 0: without her α would be higher. Intervals of 95 %: Wilson's for yes, the joint bootstrap for Δα."
)


_CHANCE = "Beyond chance: were all annotators interchangeable, at most one report in twenty would name anybody."


def people_section(agreement: Agreement) -> Element:
    named = [
        html.element("li", html.element("b", f"{task.capitalize()}: "), html.sentence(text))
        for task, figures in agreement.tasks.items()
        for text in annotator_sentences(figures)
    ]
    tested = any(found.p is not None for figures in agreement.tasks.values() for found in figures.annotators_vs_rest)
    nobody = "Nobody: no annotator differs from the others by more than chance explains."
    return html.element(
        "section",
        html.element("h2", "Annotators who stand out", id="people"),
        html.element("ul", named)
        if named
        else html.element("p", nobody if tested else "Cannot be told: nobody could be tested."),
        html.element("p", _CHANCE, class_="note") if named else None,
        (
            html.folded(
                html.element("h3", f"{task.capitalize()}: each annotator in figures"),
                _panel_table(figures),
                _conduct_table(figures),
            )
            for task, figures in agreement.tasks.items()
            if figures.annotators
        ),
        class_="people",
    )


def _panel_table(figures: TaskAgreement) -> Element | None:
    if not figures.annotators_vs_rest:
        return None
    drawn = [found.delta_alpha for found in figures.annotators_vs_rest]
    intervals = [found.delta_interval for found in figures.annotators_vs_rest if found.delta_interval]
    axis = html.difference_axis([*drawn, *(end for found in intervals for end in (found.low, found.high))])
    bodies = [_label_rows(label, figures, axis) for label in figures.labels]
    shares = html.scale(_SHARE, ((0, "0"), (0.5, "50 %"), (1, "100 %")))
    differences = html.scale(axis, ((axis.low, html.signed(axis.low)), (0, "0"), (axis.high, html.signed(axis.high))))
    first, last = (html.element("td", drawing, class_="drawn") for drawing in (shares, differences))
    foot = html.element("tbody", html.row("", "", "", first, *[""] * 5, last), class_="axis")
    return html.table("Each annotator on each label", _COLUMNS, [*bodies, foot], "figures panel whole", _MEANING)


def _label_rows(label: str, figures: TaskAgreement, axis: html.Axis) -> Element:
    rows = [found for found in figures.annotators_vs_rest if found.label == label]
    shown = sorted(rows, key=lambda found: -found.n_ratings)[:_MOST_ANNOTATORS]
    kept = [found for found in rows if found in shown] if len(shown) < len(rows) else rows
    more = f" ({len(kept)} of {len(rows)} annotators; annotators.csv has all)" if len(kept) < len(rows) else ""
    title = html.row(
        html.element("th", label, html.element("small", more), colspan=len(_COLUMNS), scope="rowgroup", class_="group")
    )
    pooled = figures.labels[label].prevalence
    return html.element("tbody", title, (_annotator_row(found, pooled, axis) for found in kept))


def _annotator_row(found: AnnotatorAgreement, pooled: float | None, axis: html.Axis) -> Element:
    agreed = found.agreement_with_majority_of_others
    return html.row(
        html.head(html.quoted(found.rater)),
        f"{found.n_ratings:,}",
        percent(found.positive_rate),
        html.element("td", _rate_strip(found, pooled), class_="drawn"),
        [f"{percent(agreed)}", html.element("small", f" of {found.n_compared:,}", class_="why")],
        html.number(found.kappa_with_majority_of_others),
        html.signed(found.bias_index),
        f"{found.lone_dissents:,}",
        _difference(found),
        html.element("td", _difference_strip(found, axis), class_="drawn"),
    )


def _difference(found: AnnotatorAgreement) -> html.Child:
    if found.delta_alpha is None:
        reason = found.undefined.get("delta_alpha") or found.undefined.get("alpha_without")
        return html.missing(html.SHORT_REASONS[reason] if reason else "")
    interval = found.delta_interval
    value = html.element("b" if found.stands_out else "span", html.signed(found.delta_alpha))
    return [value, html.element("span", f" {ends(interval)}", class_="bounds") if interval else None]


def _rate_strip(found: AnnotatorAgreement, pooled: float | None) -> html.Child:
    """With Wilson's interval; the line is that of all ratings."""
    if found.positive_rate is None:
        return html.missing("no ratings")
    line = None if pooled is None else html.rule(_SHARE, pooled, "threshold")
    name, everybody = f"{found.rater}: yes", f"All ratings: {percent(pooled)}."
    return html.estimate_strip(
        name, everybody, _SHARE, found.positive_rate, found.positive_rate_interval, percent, line
    )


def _difference_strip(found: AnnotatorAgreement, axis: html.Axis) -> html.Child:
    if found.delta_alpha is None:
        return UNDEFINED
    ends = (found.delta_interval.low, found.delta_interval.high) if found.delta_interval else None
    without = f"Without her α is {html.coefficient(found.alpha_without)}."
    zero = html.rule(axis, 0.0, "zero")
    return html.estimate_strip(f"{found.rater}: Δα", without, axis, found.delta_alpha, ends, html.signed, zero)


def _conduct_table(figures: TaskAgreement) -> Element | None:
    discards = figures.discards.by_annotator if figures.discards else {}
    broken = figures.constraint_violations_by_annotator
    rules = [name for name, count in figures.constraint_violations.items() if count]
    if not rules and not any(discards.values()):
        return None
    people = sorted({*figures.annotators, *discards})
    columns: list[html.Child] = ["Annotator", "discarded", *(html.element("code", name) for name in rules)]
    rows = (
        html.row(
            html.head(html.quoted(name)),
            f"{discards[name]:.1%}" if name in discards else UNDEFINED,
            *(f"{broken.get(rule_name, {}).get(name, 0):,}" for rule_name in rules),
        )
        for name in people
    )
    meaning = "Discarded: share of all her answers; beside it how many of them break each rule between labels."
    return html.table("Conduct", columns, rows, "figures", meaning if rules else "Discarded: share of all her answers.")
