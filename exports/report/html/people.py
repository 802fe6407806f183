"""Pairs of annotators: a heat map for each label, kappa above the diagonal and shared units below it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from annotation.argilla.rendering import one_line
from exports.report.html.elements import (
    SHORT_REASONS,
    Axis,
    Child,
    cell,
    coefficient,
    difference_axis,
    dot,
    element,
    ends,
    estimated,
    figure_svg,
    folded,
    head,
    missing,
    number,
    quoted,
    row,
    rule,
    scale,
    sentence,
    signed,
    strip,
    table,
    whisker,
)
from exports.report.words import UNDEFINED, annotator_sentences, percent
from exports.statistics.agreement_schema import Agreement, AnnotatorAgreement, PairAgreement, TaskAgreement
from exports.statistics.warnings import FEW_SHARED

MOST_ANNOTATORS = 20
"""A map of more cannot be read."""
_NAME_LENGTH = 12
_SIDE, _LETTER = 38, 7
"""Side of a cell, and the room that a letter of a name takes, in pixels."""
_PALE, _DARK = 0.08, 1.0
"""Strength of the colour at a kappa of 0 or less and of 1."""
_WHITE_FROM = 0.75
"""On stronger colours white text has more contrast than black."""

_Key = tuple[str, str]


class _Map(NamedTuple):
    label: str
    names: Mapping[str, str]
    """The annotators, each with the form of the name that stands beside the map."""
    pairs: Mapping[_Key, PairAgreement]
    """The pairs by both names, in either order."""
    left: float
    top: float


def pair_section(figures: TaskAgreement) -> list[Child]:
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
    maps = (
        _heat_map(_Map(label, named, _by_names(figures.pairs, label), room + 16.0, 0.7 * room + 20))
        for label in figures.labels
    )
    shown = set(names)
    shared = [pair for pair in figures.pairs if {pair.rater_a, pair.rater_b} <= shown]
    return [
        element("h3", "Pairs of annotators"),
        element("p", text, class_="note"),
        _legend(),
        element("div", maps, class_="panels"),
        folded("The pairs as a table", _pair_table(shared)),
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
            for key in ((pair.rater_a, pair.rater_b), (pair.rater_b, pair.rater_a)):
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


def _by_names(pairs: Iterable[PairAgreement], label: str) -> dict[_Key, PairAgreement]:
    return {
        key: pair
        for pair in pairs
        if pair.label == label
        for key in ((pair.rater_a, pair.rater_b), (pair.rater_b, pair.rater_a))
    }


def _heat_map(shown: _Map) -> Element:
    size, names = _SIDE * len(shown.names), list(shown.names)
    width, height = shown.left + size + 0.8 * (shown.left - 16), shown.top + size + 2
    drawing = figure_svg(
        f"{shown.label}: pairs of annotators",
        _spoken_pairs(shown),
        _heads(shown),
        (_map_cell(shown, names, line, column) for line in range(len(names)) for column in range(len(names))),
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_="map",
    )
    return element("figure", element("figcaption", shown.label), element("div", drawing, class_="wide"))


def _spoken_pairs(shown: _Map) -> str:
    pairs = (pair for (first, _), pair in shown.pairs.items() if first == pair.rater_a)
    drawn = (_spoken(pair) for pair in pairs if {pair.rater_a, pair.rater_b} <= set(shown.names))
    return "; ".join(drawn) or "No shared units."


def _heads(shown: _Map) -> Iterator[Element]:
    for place, (name, short) in enumerate(shown.names.items()):
        middle = _SIDE * place + _SIDE / 2
        whole = element("title", name)
        yield element(
            "text", short, whole, x=shown.left - 8, y=shown.top + middle + 4, text_anchor="end", class_="name"
        )
        x, y = shown.left + middle, shown.top - 8
        yield element("text", short, whole, x=x, y=y, transform=f"rotate(-40 {x:g} {y:g})", class_="name")


def _map_cell(shown: _Map, names: Sequence[str], line: int, column: int) -> Element | None:
    """Kappa above the diagonal, shared units below it, nothing on it."""
    pair = shown.pairs.get((names[line], names[column]))
    if line == column or pair is None:
        return None
    few, above = pair.n_shared < FEW_SHARED, column > line
    kappa = pair.cohen_kappa
    coloured = above and not few and kappa is not None
    strength = _PALE + (_DARK - _PALE) * min(max(kappa or 0.0, 0.0), 1.0)
    ground = element(
        "rect",
        x=shown.left + _SIDE * column + 1,
        y=shown.top + _SIDE * line + 1,
        width=_SIDE - 2,
        height=_SIDE - 2,
        rx=3,
        class_="heat" if coloured else "few" if few and above else "count",
        fill_opacity=strength if coloured else None,
    )
    kind = "on" if coloured and strength > _WHITE_FROM else "dim" if few or not above else "off"
    at = {"x": shown.left + _SIDE * column + _SIDE / 2, "y": shown.top + _SIDE * line + _SIDE / 2 + 4}
    text = coefficient(kappa) if above else f"{pair.n_shared:,}"
    return element(
        "g", element("title", _spoken(pair)), ground, element("text", text, text_anchor="middle", class_=kind, **at)
    )


def _spoken(pair: PairAgreement) -> str:
    reason = pair.undefined.get("cohen_kappa")
    kappa = coefficient(pair.cohen_kappa) if reason is None else f"{UNDEFINED} ({SHORT_REASONS[reason]})"
    return f"{pair.rater_a} and {pair.rater_b}: κ {kappa}, {pair.n_shared:,} shared"


def _legend() -> Element:
    steps = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    marks: list[Child] = [
        element(
            "rect", x=i * 34, y=2, width=32, height=14, rx=3, class_="heat", fill_opacity=_PALE + (_DARK - _PALE) * step
        )
        for i, step in enumerate(steps)
    ]
    marks += [
        element(
            "text", "≤ 0" if not step else coefficient(step), x=i * 34 + 16, y=30, text_anchor="middle", class_="tick"
        )
        for i, step in enumerate(steps)
    ]
    grey = [
        element("rect", x=224, y=2, width=32, height=14, rx=3, class_="few"),
        element("text", f"< {FEW_SHARED} shared", x=240, y=30, text_anchor="middle", class_="tick"),
    ]
    return figure_svg(
        "Scale of κ", "From pale, 0 or less, to dark, 1.", marks, grey, width=290, height=34, class_="legend"
    )


def _pair_table(pairs: Sequence[PairAgreement]) -> Element:
    columns = (
        "First, second",
        "label",
        "shared",
        "κ [95 %]",
        "PABAK",
        "both yes",
        "only first",
        "only second",
        "both no",
        "McNemar p",
    )
    rows = (
        row(
            head(quoted(pair.rater_a), ", ", quoted(pair.rater_b)),
            cell(pair.label),
            cell(f"{pair.n_shared:,}"),
            cell(estimated(pair.cohen_kappa, pair.interval, pair.undefined.get("cohen_kappa"))),
            cell(number(pair.pabak)),
            *(cell(f"{count:,}") for count in (pair.n11, pair.n10, pair.n01, pair.n00)),
            cell(UNDEFINED if pair.mcnemar_p is None else f"{pair.mcnemar_p:.3f}"),
        )
        for pair in pairs
    )
    return table("Pairs that share units", columns, rows, "figures")


_MOST_ANNOTATORS = 40
"""More rows a label nobody reads; `annotators.csv` has them all."""
_SHARE = Axis(0.0, 1.0)
_COLUMNS: tuple[Child, ...] = (
    "Annotator",
    "ratings",
    "says yes",
    "yes votes",
    "as the others",
    "κ",
    "bias",
    "alone",
    "Δα",
    "α without less α",
)
_MEANING = (
    "As the others: share of units on which she says what most of the others say, and κ with them; bias above 0: she "
    "says yes more often than they do; alone: units with three or more ratings on which nobody else says the same; Δα "
    "above 0: without her α would be higher. Intervals of 95 %: Wilson's for yes, the joint bootstrap for Δα."
)


_CHANCE = "Beyond chance: were all annotators interchangeable, at most one report in twenty would name anybody."


class _Panel(NamedTuple):
    differences: Axis
    pooled: dict[str, float | None]
    """The share of yes among all ratings, by label."""


def people_section(agreement: Agreement) -> Element:
    told = {task: list(annotator_sentences(figures)) for task, figures in agreement.tasks.items()}
    named = [
        element("li", element("b", f"{task.capitalize()}: "), sentence(text))
        for task, sentences in told.items()
        for text in sentences
    ]
    tested = any(found.p is not None for figures in agreement.tasks.values() for found in figures.annotators_vs_rest)
    nobody = "Nobody: no annotator differs from the others by more than chance explains."
    return element(
        "section",
        element("h2", "Annotators who stand out", id="people"),
        element("ul", named)
        if named
        else element("p", nobody if tested else "Cannot be told: nobody could be tested."),
        element("p", _CHANCE, class_="note") if named else None,
        (
            folded(
                element("h3", f"{task.capitalize()}: each annotator in figures"),
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
    reaches = [end for found in figures.annotators_vs_rest for end in _reach(found)]
    panel = _Panel(difference_axis(reaches), {label: found.prevalence for label, found in figures.labels.items()})
    bodies = [
        _label_rows(label, [found for found in figures.annotators_vs_rest if found.label == label], panel)
        for label in figures.labels
    ]
    rows = [*bodies, _axis_row(panel)]
    return table("Each annotator on each label", _COLUMNS, rows, "figures panel whole", _MEANING)


def _reach(found: AnnotatorAgreement) -> list[float | None]:
    interval = found.delta_interval
    return [found.delta_alpha, *((interval.low, interval.high) if interval else ())]


def _label_rows(label: str, rows: Sequence[AnnotatorAgreement], panel: _Panel) -> Element:
    shown = sorted(rows, key=lambda found: -found.n_ratings)[:_MOST_ANNOTATORS]
    kept = [found for found in rows if found in shown] if len(shown) < len(rows) else rows
    more = f" ({len(kept)} of {len(rows)} annotators; annotators.csv has all)" if len(kept) < len(rows) else ""
    title = row(element("th", label, element("small", more), colspan=len(_COLUMNS), scope="rowgroup", class_="group"))
    return element("tbody", title, (_annotator_row(found, panel) for found in kept))


def _annotator_row(found: AnnotatorAgreement, panel: _Panel) -> Element:
    agreed = found.agreement_with_majority_of_others
    return row(
        head(quoted(found.rater)),
        cell(f"{found.n_ratings:,}"),
        cell(percent(found.positive_rate)),
        element("td", _rate_strip(found, panel), class_="drawn"),
        cell(f"{percent(agreed)}", element("small", f" of {found.n_compared:,}", class_="why")),
        cell(number(found.kappa_with_majority_of_others)),
        cell(signed(found.bias_index)),
        cell(f"{found.lone_dissents:,}"),
        cell(_difference(found)),
        element("td", _difference_strip(found, panel.differences), class_="drawn"),
    )


def _difference(found: AnnotatorAgreement) -> Child:
    if found.delta_alpha is None:
        reason = found.undefined.get("delta_alpha") or found.undefined.get("alpha_without")
        return missing(SHORT_REASONS[reason] if reason else "")
    interval = found.delta_interval
    value = element("b" if found.stands_out else "span", signed(found.delta_alpha))
    return [value, element("span", f" {ends(interval)}", class_="bounds") if interval else None]


def _rate_strip(found: AnnotatorAgreement, panel: _Panel) -> Child:
    """With Wilson's interval; the line is that of all ratings."""
    if found.positive_rate is None:
        return missing("no ratings")
    pooled, interval = panel.pooled[found.label], found.positive_rate_interval
    marks: list[Child] = [rule(_SHARE, pooled, "threshold") if pooled is not None else None]
    if interval is not None:
        marks.append(whisker(_SHARE, *interval))
    between = f" between {percent(interval[0])} and {percent(interval[1])}" if interval else ""
    spoken = f"{found.rater}: yes {percent(found.positive_rate)}{between}"
    return strip(spoken, f"All ratings: {percent(pooled)}.", marks, dot(_SHARE, found.positive_rate))


def _difference_strip(found: AnnotatorAgreement, axis: Axis) -> Child:
    if found.delta_alpha is None:
        return UNDEFINED
    interval = found.delta_interval
    marks = whisker(axis, interval.low, interval.high) if interval else []
    between = f" between {signed(interval.low)} and {signed(interval.high)}" if interval else ""
    spoken = f"{found.rater}: Δα {signed(found.delta_alpha)}{between}"
    without = f"Without her α is {coefficient(found.alpha_without)}."
    return strip(spoken, without, rule(axis, 0.0, "zero"), marks, dot(axis, found.delta_alpha))


def _axis_row(panel: _Panel) -> Element:
    end = panel.differences.high
    shares = scale(_SHARE, ((0, "0"), (0.5, "50 %"), (1, "100 %")))
    differences = scale(panel.differences, ((-end, signed(-end)), (0, "0"), (end, signed(end))))
    empty = [element("td") for _ in range(2)]
    gap = [element("td") for _ in range(5)]
    drawn = (element("td", drawing, class_="drawn") for drawing in (shares, differences))
    first, last = drawn
    return element("tbody", row(element("td"), empty, first, gap, last), class_="axis")


def _conduct_table(figures: TaskAgreement) -> Element | None:
    discards = figures.discards.by_annotator if figures.discards else {}
    broken = figures.constraint_violations_by_annotator
    rules = [name for name, count in figures.constraint_violations.items() if count]
    if not rules and not any(discards.values()):
        return None
    people = sorted({*figures.annotators, *discards})
    columns: list[Child] = ["Annotator", "discarded", *(element("code", name) for name in rules)]
    rows = (
        row(
            head(quoted(name)),
            cell(f"{discards[name]:.1%}" if name in discards else UNDEFINED),
            *(cell(f"{broken.get(rule_name, {}).get(name, 0):,}") for rule_name in rules),
        )
        for name in people
    )
    meaning = "Discarded: share of all her answers; beside it how many of them break each rule between labels."
    return table("Conduct", columns, rows, "figures", meaning if rules else "Discarded: share of all her answers.")
