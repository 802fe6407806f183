"""People: who stands out, and on a click every annotator: α without her, how often she says yes, rules and discards."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from exports.agreement.schema import Agreement, AnnotatorAgreement, TaskAgreement
from exports.report.html._elements import (
    SHORT_REASONS,
    Child,
    cell,
    coefficient,
    element,
    ends,
    folded,
    head,
    missing,
    number,
    quoted,
    row,
    sentence,
    signed,
    table,
)
from exports.report.html._plot import Axis, difference_axis, dot, rule, scale, strip, whisker
from exports.report.words import UNDEFINED, annotator_sentences, percent

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
    """What the rows of all labels share."""

    differences: Axis
    pooled: dict[str, float | None]
    """The share of yes among all ratings, by label."""


def people_section(agreement: Agreement) -> Element:
    """Who stands out, by task, and on a click the figures of everybody."""
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
    """Every annotator label by label."""
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
    """What the axis of differences has to hold."""
    interval = found.delta_interval
    return [found.delta_alpha, *((interval.low, interval.high) if interval else ())]


def _label_rows(label: str, rows: Sequence[AnnotatorAgreement], panel: _Panel) -> Element:
    """The rows of one label; of very many annotators those with the most ratings."""
    shown = sorted(rows, key=lambda found: -found.n_ratings)[:_MOST_ANNOTATORS]
    kept = [found for found in rows if found in shown] if len(shown) < len(rows) else rows
    more = f" ({len(kept)} of {len(rows)} annotators; annotators.csv has all)" if len(kept) < len(rows) else ""
    title = row(element("th", label, element("small", more), colspan=len(_COLUMNS), scope="rowgroup", class_="group"))
    return element("tbody", title, (_annotator_row(found, panel) for found in kept))


def _annotator_row(found: AnnotatorAgreement, panel: _Panel) -> Element:
    """One annotator on one label."""
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
    """Δα with its interval, or why there is none."""
    if found.delta_alpha is None:
        reason = found.undefined.get("delta_alpha") or found.undefined.get("alpha_without")
        return missing(SHORT_REASONS[reason] if reason else "")
    interval = found.delta_interval
    value = element("b" if found.stands_out else "span", signed(found.delta_alpha))
    return [value, element("span", f" {ends(interval)}", class_="bounds") if interval else None]


def _rate_strip(found: AnnotatorAgreement, panel: _Panel) -> Child:
    """Her share of yes with Wilson's interval; the line is that of all ratings."""
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
    """Δα with its interval."""
    if found.delta_alpha is None:
        return UNDEFINED
    interval = found.delta_interval
    marks = whisker(axis, interval.low, interval.high) if interval else []
    between = f" between {signed(interval.low)} and {signed(interval.high)}" if interval else ""
    spoken = f"{found.rater}: Δα {signed(found.delta_alpha)}{between}"
    without = f"Without her α is {coefficient(found.alpha_without)}."
    return strip(spoken, without, rule(axis, 0.0, "zero"), marks, dot(axis, found.delta_alpha))


def _axis_row(panel: _Panel) -> Element:
    """The numbers beneath both columns of strips."""
    end = panel.differences.high
    shares = scale(_SHARE, ((0, "0"), (0.5, "50 %"), (1, "100 %")))
    differences = scale(panel.differences, ((-end, signed(-end)), (0, "0"), (end, signed(end))))
    empty = [element("td") for _ in range(2)]
    gap = [element("td") for _ in range(5)]
    drawn = (element("td", drawing, class_="drawn") for drawing in (shares, differences))
    first, last = drawn
    return element("tbody", row(element("td"), empty, first, gap, last), class_="axis")


def _conduct_table(figures: TaskAgreement) -> Element | None:
    """Discards and broken rules by annotator; nothing where there is neither."""
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
