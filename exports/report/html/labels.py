"""Agreement on each label: one forest plot for all tasks with verdicts, and for each task the table of its numbers."""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from typing import NamedTuple
from xml.etree.ElementTree import Element

from exports.report import words
from exports.report.html import elements as html
from exports.report.results_words import UNITS
from exports.statistics import agreement_schema as schema
from exports.statistics.table import columns_at, legends_at
from pipeline.core.terminal import counted

_CONDITIONAL_MEANING = (
    "Where a rule settles a label, its no says nothing about agreement and flatters AC1 and percent agreement. Here "
    "only annotators count who say that the premise holds, on units where at least two do. In brackets the figure on "
    "all units. Broken: responses that break the rule."
)


_ALPHA = "krippendorff_alpha"
_PLOT_COLUMNS = ("Label", "Coefficients", "α [95 %]", "Yes votes", "Verdict")
SYMBOLS: dict[words.Fitness, str] = {"fit": "✓", "tentative": "~", "open": "?", "unfit": "✗", "unknown": "–"}
"""What stands before each verdict, so that it can be told without its colour."""

_SIZES: tuple[html.Child, ...] = ("Label", "N′", "needed", "records", ["n", html.element("sub", "eff")])
_ALPHA_COLUMN, *_OTHER_COLUMNS = columns_at("report")
_COLUMNS: tuple[html.Child, ...] = (
    *_SIZES,
    _ALPHA_COLUMN[2].head,
    "P(α ≥ .667)",
    "P(α ≥ .800)",
    *(shown.head for _, _, shown in _OTHER_COLUMNS),
)
_MEANING = (
    "N′ units with two ratings or more; needed: as many as would show an α of .667 at this share of yes; records: what "
    "was resampled; n_eff: independent units that would tell as much, at most N′; P(α ≥ …): share of the resamples; "
    f"{'; '.join(legends_at('report'))}."
)


def forest_plot(agreement: schema.Agreement) -> Element:
    labels = [found for figures in agreement.tasks.values() for found in figures.labels.values()]
    drawn = [value for found in labels for value in (found.krippendorff_alpha, found.gwet_ac1, found.percent_agreement)]
    axis = html.alpha_axis([*drawn, *(found.intervals[_ALPHA].low for found in labels if _ALPHA in found.intervals)])
    ticks = [(value, html.coefficient(value)) for value in axis.ticks(0.2) if value not in (0.6, words.THRESHOLDS[1])]
    ticks += [(t, f"{t:.3f}".lstrip("0").rstrip("0")) for t in words.THRESHOLDS]
    foot = html.element("tbody", html.row("", html.scale(axis, ticks), "", "", ""))
    caption = html.element("caption", "Agreement on each label", html.element("div", _legend(), class_="keys"))
    bodies = (_task_rows(task, figures, axis) for task, figures in agreement.tasks.items())
    return html.element("table", caption, html.heads(_PLOT_COLUMNS), bodies, foot, class_="forest")


def _task_rows(task: schema.MeasuredTask, figures: schema.TaskAgreement, axis: html.Axis) -> Element:
    sizes = f" {counted(figures.n_units, UNITS[task])}, {counted(len(figures.annotators), 'annotator')}"
    if figures.macro_alpha:
        sizes += f", mean α {words.estimate(figures.macro_alpha, figures.macro_interval)}"
    name = [html.element("b", task.capitalize()), html.element("small", sizes.replace("-", "−"))]
    title = html.row(html.element("th", name, colspan=len(_PLOT_COLUMNS), scope="rowgroup", class_="group"))
    return html.element("tbody", title, (_forest_row(label, found, axis) for label, found in figures.labels.items()))


def label_section(figures: schema.TaskAgreement) -> list[html.Child]:
    rows = (_label_row(name, found) for name, found in figures.labels.items())
    discards = "How many units were discarded is not known: the files do not tell."
    if figures.discards is not None:
        discards = words.discard_sentence(figures.discards) or "No unit was discarded."
    return [
        html.table("Figures of each label", _COLUMNS, rows, "figures whole", _MEANING),
        html.element("p", html.element("b", "Discards. "), html.element("bdi", discards), class_="note"),
    ]


def _legend() -> list[html.Child]:
    whole = html.Axis(-1.0, 1.0)
    marks: dict[str, html.Child] = {
        "α, 95 % interval": [*html.whisker(whole, -0.9, 0.9), html.dot(whole, 0)],
        "AC1": [html.diamond(whole, 0)],
        "percent agreement": [html.square(whole, 0)],
        "thresholds .667 and .8": [html.rule(whole, 0, "threshold")],
    }
    return [
        html.element(
            "span",
            html.element("svg", drawing, width=26, height=30, aria_hidden="true", class_="strip"),
            name,
            class_="key",
        )
        for name, drawing in marks.items()
    ]


def _forest_row(name: str, found: schema.LabelAgreement, axis: html.Axis) -> Element:
    interval = found.intervals.get(_ALPHA)
    plot = html.estimate_strip(
        f"{name}: α",
        f"AC1 {html.coefficient(found.gwet_ac1)}, percent agreement {words.percent(found.percent_agreement)}",
        axis,
        found.krippendorff_alpha,
        (interval.low, interval.high) if interval else None,
        html.coefficient,
        [
            html.thresholds(axis),
            html.square(axis, found.percent_agreement),
            html.diamond(axis, found.gwet_ac1),
        ],
    )
    verdict = words.fitness(found)
    mark = html.element("span", SYMBOLS[verdict], aria_hidden="true", class_="symbol")
    return html.row(
        html.head(name),
        plot,
        _alpha_cell(found),
        _prevalence_bar(name, found),
        html.element("td", mark, words.FITNESS[verdict], class_=f"verdict {verdict}"),
    )


def _alpha_cell(found: schema.LabelAgreement) -> html.Child:
    return html.estimated(
        found.krippendorff_alpha,
        found.intervals.get(_ALPHA),
        found.undefined.get(_ALPHA),
        found.refused_intervals.get(_ALPHA),
    )


def _prevalence_bar(name: str, found: schema.LabelAgreement) -> list[html.Child]:
    if found.prevalence is None:
        return html.missing("no ratings")
    share = words.percent(found.prevalence)
    drawing = html.strip(f"{name}: {share} yes votes", f"{found.n_ratings:,} ratings", html.bar(found.prevalence))
    return [
        html.element("span", drawing, html.element("span", share, html.element("small", " yes")), class_="prevalence")
    ]


def _label_row(name: str, found: schema.LabelAgreement) -> Element:
    sizes = (found.n_pairable_items, found.required_items, found.n_cluster_records, found.n_effective)
    return html.row(
        html.head(name),
        *(words.UNDEFINED if size is None else f"{size:,.0f}" for size in sizes),
        _alpha_cell(found),
        *(_reaches(found, threshold) for threshold in ("0.667", "0.800")),
        *(_figure(found, name, is_share=entry.is_share) for name, entry, _ in _OTHER_COLUMNS),
    )


def _figure(found: schema.LabelAgreement, name: str, *, is_share: bool) -> html.Child:
    value = getattr(found, name)
    return words.percent(value) if is_share else html.number(value, found.undefined.get(name))


def _reaches(found: schema.LabelAgreement, threshold: str) -> str:
    """The share of the resamples in which α reaches the threshold; never rounded to certainty."""
    below = found.p_below.get(threshold)
    if below is None:
        return words.UNDEFINED
    share = 1 - below
    if 0 < share < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 < share < 1 else f"{share:.0%}"


def conditional_section(figures: schema.TaskAgreement) -> list[html.Child]:
    if not figures.conditional:
        return []
    columns = ("Label", "where", "N′", "α [95 %]", "AC1", "agree", "yes votes", "broken")
    rows = (_rule_row(figures, found) for found in figures.conditional)
    caption = "Agreement where a rule leaves the label open"
    return [
        html.element("h3", "Labels bound by a rule"),
        html.table(caption, columns, rows, "figures whole second", _CONDITIONAL_MEANING),
    ]


def _rule_row(figures: schema.TaskAgreement, found: schema.ConditionalAgreement) -> Element:
    whole = figures.labels[found.label]
    alpha = html.estimated(found.krippendorff_alpha, found.interval, found.undefined.get(_ALPHA))
    return html.row(
        html.head(found.label),
        html.element("td", f"{found.premise} is {'yes' if found.premise_value else 'no'}", class_="words"),
        f"{found.n_pairable_items:,}",
        _beside(alpha, html.number(whole.krippendorff_alpha)),
        _beside(html.number(found.gwet_ac1, found.undefined.get("gwet_ac1")), html.number(whole.gwet_ac1)),
        _beside(words.percent(found.percent_agreement), words.percent(whole.percent_agreement)),
        _beside(words.percent(found.prevalence), words.percent(whole.prevalence)),
        f"{figures.constraint_violations.get(found.rule, 0):,}",
    )


def _beside(figure: html.Child, whole: html.Child) -> list[html.Child]:
    return [figure, html.element("small", " (", whole, ")", class_="why")]


_WIDTH, _HEIGHT = 340, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 326, 12, 142  # where the drawing proper ends within a panel, in pixels


class _Point(NamedTuple):
    """A week that has an α, where it is drawn."""

    x: float  # pixels from the left
    week: str  # ISO week such as `2025-W10`
    alpha: float
    found: schema.SliceLabel


def time_section(figures: schema.TaskAgreement) -> list[html.Child]:
    parts: list[html.Child] = []
    labels = tuple(figures.labels)
    if len(figures.weeks) > 1:
        parts += [
            html.element("h3", "Agreement over time"),
            html.element(
                "p",
                "α by week of the unit's last response (ISO weeks, UTC), with its 95 % interval; open points have "
                "none, dashes at the foot are weeks without an α. The lines stand at .667 and .8.",
                class_="note",
            ),
            html.element("div", (week_panel(label, figures.weeks) for label in labels), class_="panels"),
            _change_note(figures.changes),
            html.folded("The weeks as a table", _slices_table("week", figures.weeks, labels)),
        ]
    if len(figures.rounds) > 1:
        changes = [change for change in figures.changes if change.kind == "round"]
        parts += [html.element("h3", "Rounds side by side"), _slices_table("round", figures.rounds, labels)]
        parts += [_changes_table("Change of α from round to round", changes)] if changes else []
    if len(figures.languages) > 1:
        parts += [html.element("h3", "Languages"), _slices_table("language", figures.languages, labels)]
    return parts


def week_panel(label: str, weeks: Sequence[schema.AgreementSlice]) -> Element:
    shown = [(part.name, part.labels[label]) for part in weeks if label in part.labels]
    mondays = [float(date.fromisocalendar(int(name[:4]), int(name[-2:]), 1).toordinal()) for name, _ in shown]
    days = html.Axis(mondays[0], mondays[-1])
    places = [_LEFT + 8 + (_RIGHT - _LEFT - 16) * days.place(monday) for monday in mondays]
    gaps: list[html.Child] = []
    runs: list[list[_Point]] = [[]]
    for x, (name, found) in zip(places, shown, strict=True):
        if found.krippendorff_alpha is not None:
            runs[-1].append(_Point(x, name, found.krippendorff_alpha, found))
        else:
            gaps.append(html.element("text", "–", x=x, y=_BOTTOM - 3, class_="gap", text_anchor="middle"))
            runs.append([])
    points = [point for run in runs for point in run]
    axis = html.alpha_axis([*(p.alpha for p in points), *(p.found.interval.low for p in points if p.found.interval)])
    drawing = html.figure_svg(
        f"{label}: α by week",
        "; ".join(map(_spoken, points)) or "No week has an α.",
        _grid(axis),
        _week_ticks([name for name, _ in shown], places),
        gaps,
        (_run_marks(run, axis) for run in runs if run),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        class_="weeks",
    )
    return html.element("figure", html.element("figcaption", label), drawing)


def _down(axis: html.Axis, alpha: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * axis.place(alpha)


def _grid(axis: html.Axis) -> Iterator[Element]:
    for value in axis.ticks(0.5):
        y = _down(axis, value)
        yield html.element("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="grid")
        yield html.element("text", html.coefficient(value), x=_LEFT - 6, y=y + 4, text_anchor="end", class_="tick")
    for value in words.THRESHOLDS:
        y = _down(axis, value)
        yield html.element("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="threshold")


def _week_ticks(weeks: Sequence[str], places: Sequence[float]) -> Iterator[Element]:
    step = max(1, -(-len(weeks) // 5))
    year = ""
    for week, place in list(zip(weeks, places, strict=True))[::step]:
        name = week if week[:4] != year else week[5:]
        x, anchor = (place, "middle") if year else (_LEFT, "start")
        year = week[:4]
        yield html.element("text", name, x=x, y=_BOTTOM + 18, text_anchor=anchor, class_="tick")


def _run_marks(run: Sequence[_Point], axis: html.Axis) -> Iterator[Element]:
    """Draw the line of a run, and a ribbon where its points have intervals."""
    for _, points in groupby(run, key=lambda point: point.found.interval is not None):
        ends = [(p.x, _down(axis, each.high), _down(axis, each.low)) for p in points if (each := p.found.interval)]
        if len(ends) > 1:
            outline = [(x, high) for x, high, _ in ends] + [(x, low) for x, _, low in reversed(ends)]
            yield html.element("polygon", points=_coordinates(outline), class_="ribbon")
        for x, high, low in ends:
            yield html.element("line", x1=x, x2=x, y1=high, y2=low, class_="whisker thin")
    yield html.element("polyline", points=_coordinates([(p.x, _down(axis, p.alpha)) for p in run]), class_="line")
    for p in run:
        kind = "estimate" if p.found.interval else "estimate open"
        yield html.element(
            "circle", html.element("title", _spoken(p)), cx=p.x, cy=_down(axis, p.alpha), r=3.5, class_=kind
        )


def _coordinates(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _spoken(point: _Point) -> str:
    interval = point.found.interval
    between = f", {html.coefficient(interval.low)} to {html.coefficient(interval.high)}" if interval else ""
    units = counted(point.found.n_pairable_items, "unit")
    return f"{point.week}: α {html.coefficient(point.alpha)}{between}, {units}"


def _change_note(changes: Sequence[schema.AlphaChange]) -> Element | None:
    tested = [change for change in changes if change.kind == "week"]
    certain = [change for change in tested if change.p_holm < words.SIGNIFICANT]
    if not tested:
        return None
    if not certain:
        text = f"Of {counted(len(tested), 'step')} from week to week none is more than chance (permutation, Holm)."
        return html.element("p", text, class_="note")
    return _changes_table("Steps from week to week that are more than chance", certain)


def _changes_table(caption: str, changes: Sequence[schema.AlphaChange]) -> Element:
    rows = []
    for change in changes:
        interval = change.interval
        ends = f" [{html.signed(interval.low)}, {html.signed(interval.high)}]" if interval else ""
        found = [html.element("b", html.signed(change.difference)), html.element("span", ends, class_="bounds")]
        step = html.element("td", html.quoted(change.before), " → ", html.quoted(change.after), class_="words")
        tested = map(words.decimal_p, (change.p_value, change.p_holm))
        rows.append(html.row(html.head(change.label), step, found, *tested))
    return html.table(caption, ("Label", "step", "change of α [95 %]", "p", "p after Holm"), rows, "figures second")


def _slices_table(kind: str, slices: Sequence[schema.AgreementSlice], labels: Sequence[str]) -> Element:
    rows = (
        html.row(
            html.head(html.quoted(part.name)),
            f"{part.n_records:,}",
            *(_slice_cell(part.labels[label]) if label in part.labels else "–" for label in labels),
        )
        for part in slices
    )
    meaning = "α [95 % interval]; beneath it units with two ratings or more, and the share of yes."
    return html.table(
        f"α of each label by {kind}", (kind.capitalize(), "records", *labels), rows, "figures whole", meaning
    )


def _slice_cell(found: schema.SliceLabel) -> list[html.Child]:
    return [
        html.estimated(found.krippendorff_alpha, found.interval, found.undefined.get(_ALPHA)),
        html.element("small", f"{found.n_pairable_items:,} · {words.percent(found.prevalence)} yes", class_="below"),
    ]
