"""Agreement on each label: one forest plot for all tasks with verdicts, and for each task the table of its numbers."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from annotation.labels import TaskName
from exports.agreement.schema import Agreement, ConditionalAgreement, LabelAgreement, TaskAgreement
from exports.agreement.statistics import columns_at, legends_at
from exports.report.html._elements import (
    Child,
    cell,
    coefficient,
    element,
    estimated,
    head,
    missing,
    number,
    row,
    table,
)
from exports.report.html._plot import (
    THRESHOLDS,
    Axis,
    alpha_axis,
    bar,
    diamond,
    dot,
    rule,
    scale,
    square,
    strip,
    thresholds,
    whisker,
)
from exports.report.words import FITNESS, UNDEFINED, Fitness, discard_sentence, estimate, fitness, percent
from pipeline.terminal import counted

_CONDITIONAL_MEANING = (
    "Where a rule settles a label, its no says nothing about agreement and flatters AC1 and percent agreement. Here "
    "only annotators count who say that the premise holds, on units where at least two do. In brackets the figure on "
    "all units. Broken: responses that break the rule."
)


_ALPHA = "krippendorff_alpha"
_PLOT_COLUMNS = ("Label", "Coefficients", "α [95 %]", "Yes votes", "Verdict")
SYMBOLS: dict[Fitness, str] = {"fit": "✓", "tentative": "~", "open": "?", "unfit": "✗", "unknown": "–"}
"""What stands before each verdict, so that it can be told without its colour."""

_SIZES: tuple[Child, ...] = ("Label", "N′", "needed", "records", ["n", element("sub", "eff")])
_ALPHA_COLUMN, *_OTHER_COLUMNS = columns_at("report")
_COLUMNS: tuple[Child, ...] = (
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


def forest_plot(agreement: Agreement) -> Element:
    """α of each label with its interval, lighter marks for AC1 and percent agreement, the share of yes, the verdict."""
    labels = [found for figures in agreement.tasks.values() for found in figures.labels.values()]
    axis = alpha_axis(value for found in labels for value in _drawn_values(found))
    ticks = [(value, coefficient(value)) for value in axis.ticks(0.2) if abs(value - THRESHOLDS[1]) > 1e-9]
    ticks = [tick for tick in ticks if abs(tick[0] - 0.6) > 1e-9] + [
        (t, f"{t:.3f}".lstrip("0").rstrip("0")) for t in THRESHOLDS
    ]
    names = element("tr", (element("th", name, scope="col") for name in _PLOT_COLUMNS))
    foot = element("tbody", row(element("td"), cell(scale(axis, ticks)), *(element("td") for _ in _PLOT_COLUMNS[2:])))
    caption = element("caption", "Agreement on each label", element("div", _legend(), class_="keys"))
    bodies = (_task_rows(task, figures, axis) for task, figures in agreement.tasks.items())
    return element("table", caption, element("thead", names), bodies, foot, class_="forest")


def _task_rows(task: TaskName, figures: TaskAgreement, axis: Axis) -> Element:
    """The labels of one task under its name and size."""
    sizes = [
        counted(figures.n_units, "passage" if task == "retrieval" else "answer"),
        counted(len(figures.annotators), "annotator"),
    ]
    sizes += [f"mean α {estimate(figures.macro_alpha, figures.macro_interval)}"] if figures.macro_alpha else []
    name = [element("b", task.capitalize()), element("small", f" {', '.join(sizes)}".replace("-", "−"))]
    title = row(element("th", name, colspan=len(_PLOT_COLUMNS), scope="rowgroup", class_="group"))
    return element("tbody", title, (_forest_row(label, found, axis) for label, found in figures.labels.items()))


def label_section(figures: TaskAgreement) -> list[Child]:
    """The table of every label, and the discards beside it."""
    rows = (_label_row(name, found) for name, found in figures.labels.items())
    return [table("Figures of each label", _COLUMNS, rows, "figures whole", _MEANING), _discard_note(figures)]


def _legend() -> list[Child]:
    """The marks of the plot, each with its name."""
    whole = Axis(-1.0, 1.0)
    marks = {
        "α, 95 % interval": [*whisker(whole, -0.9, 0.9), dot(whole, 0)],
        "AC1": [diamond(whole, 0)],
        "percent agreement": [square(whole, 0)],
        "thresholds .667 and .8": [rule(whole, 0, "threshold")],
    }
    return [
        element(
            "span", element("svg", drawing, width=26, height=30, aria_hidden="true", class_="strip"), name, class_="key"
        )
        for name, drawing in marks.items()
    ]


def _drawn_values(found: LabelAgreement) -> Iterator[float | None]:
    """What the plot shows of a label."""
    interval = found.intervals.get(_ALPHA)
    yield from (found.krippendorff_alpha, found.gwet_ac1, found.percent_agreement)
    yield interval.low if interval else None


def _forest_row(name: str, found: LabelAgreement, axis: Axis) -> Element:
    """One label of the plot."""
    alpha, interval = found.krippendorff_alpha, found.intervals.get(_ALPHA)
    marks: list[Child] = [thresholds(axis)]
    if found.percent_agreement is not None:
        marks.append(square(axis, found.percent_agreement))
    if found.gwet_ac1 is not None:
        marks.append(diamond(axis, found.gwet_ac1))
    if interval is not None:
        marks.append(whisker(axis, interval.low, interval.high))
    if alpha is not None:
        marks.append(dot(axis, alpha))
    spoken = f"AC1 {coefficient(found.gwet_ac1)}, percent agreement {percent(found.percent_agreement)}"
    between = f" between {coefficient(interval.low)} and {coefficient(interval.high)}" if interval else ""
    plot = strip(f"{name}: α {coefficient(alpha)}{between}", spoken, marks)
    verdict = fitness(found)
    mark = element("span", SYMBOLS[verdict], aria_hidden="true", class_="symbol")
    return row(
        head(name),
        cell(plot),
        cell(_alpha_cell(found)),
        cell(_prevalence_bar(name, found)),
        element("td", mark, FITNESS[verdict], class_=f"verdict {verdict}"),
    )


def _alpha_cell(found: LabelAgreement) -> Child:
    """α with its interval, or why there is none."""
    return estimated(
        found.krippendorff_alpha,
        found.intervals.get(_ALPHA),
        found.undefined.get(_ALPHA),
        found.refused_intervals.get(_ALPHA),
    )


def _prevalence_bar(name: str, found: LabelAgreement) -> list[Child]:
    """The share of yes as a bar with its number."""
    if found.prevalence is None:
        return missing("no ratings")
    share = percent(found.prevalence)
    drawing = strip(f"{name}: {share} yes votes", f"{found.n_ratings:,} ratings", bar(found.prevalence))
    return [element("span", drawing, element("span", share, element("small", " yes")), class_="prevalence")]


def _label_row(name: str, found: LabelAgreement) -> Element:
    """The numbers of one label."""
    return row(
        head(name),
        cell(f"{found.n_pairable_items:,}"),
        cell(UNDEFINED if found.required_items is None else f"{found.required_items:,}"),
        cell(f"{found.n_cluster_records:,}"),
        cell(UNDEFINED if found.n_effective is None else f"{found.n_effective:,.0f}"),
        cell(_alpha_cell(found)),
        *(cell(_reaches(found, threshold)) for threshold in ("0.667", "0.800")),
        *(cell(_figure(found, name, is_share=entry.is_share)) for name, entry, _ in _OTHER_COLUMNS),
    )


def _figure(found: LabelAgreement, name: str, *, is_share: bool) -> Child:
    """A statistic, or why it is undefined."""
    value = getattr(found, name)
    return percent(value) if is_share else number(value, found.undefined.get(name))


def _reaches(found: LabelAgreement, threshold: str) -> str:
    """The share of the resamples in which α reaches the threshold; never rounded to certainty."""
    below = found.p_below.get(threshold)
    if below is None:
        return UNDEFINED
    share = 1 - below
    if 0 < share < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 < share < 1 else f"{share:.0%}"


def _discard_note(figures: TaskAgreement) -> Element:
    """What annotators discarded: agreement does not see it."""
    if figures.discards is None:
        text = "How many units were discarded is not known: the files do not tell."
    else:
        text = discard_sentence(figures.discards) or "No unit was discarded."
    return element("p", element("b", "Discards. "), element("bdi", text), class_="note")


def conditional_section(figures: TaskAgreement) -> list[Child]:
    """The figures of each rule, and how many responses break it; nothing in tasks without rules."""
    if not figures.conditional:
        return []
    return [element("h3", "Labels bound by a rule"), _conditional_table(figures, figures.conditional)]


def _conditional_table(figures: TaskAgreement, rules: Sequence[ConditionalAgreement]) -> Element:
    """One row for each rule."""
    columns = ("Label", "where", "N′", "α [95 %]", "AC1", "agree", "yes votes", "broken")
    rows = (_rule_row(figures, found) for found in rules)
    return table(
        "Agreement where a rule leaves the label open", columns, rows, "figures whole second", _CONDITIONAL_MEANING
    )


def _rule_row(figures: TaskAgreement, found: ConditionalAgreement) -> Element:
    whole = figures.labels[found.label]
    broken = figures.constraint_violations.get(found.rule, 0)
    return row(
        head(found.label),
        element("td", f"{found.premise} is {'yes' if found.premise_value else 'no'}", class_="words"),
        cell(f"{found.n_pairable_items:,}"),
        cell(
            estimated(found.krippendorff_alpha, found.interval, found.undefined.get("krippendorff_alpha")),
            _beside(number(whole.krippendorff_alpha)),
        ),
        cell(number(found.gwet_ac1, found.undefined.get("gwet_ac1")), _beside(number(whole.gwet_ac1))),
        cell(percent(found.percent_agreement), _beside(percent(whole.percent_agreement))),
        cell(percent(found.prevalence), _beside(percent(whole.prevalence))),
        cell(f"{broken:,}"),
    )


def _beside(figure: Child) -> Element:
    """The figure on all units."""
    return element("small", " (", figure, ")", class_="why")
