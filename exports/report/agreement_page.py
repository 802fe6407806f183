"""Agreement between annotators as sections of sentences, tables and charts, for every output."""

import math
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial

from annotation.quality.scores import AnnotatorScores
from exports.report import sections as model
from exports.report import words
from exports.report.judge_page import audit_sections, control_sections, judge_sections
from exports.report.methods import agreement_methods, methods_of, results_methods
from exports.report.people_page import pair_sections, people_section
from exports.report.results_page import results_sections, short_section
from exports.report.results_words import standing_out
from exports.report.sections import SHARES, Cell, Column, Figure, Place, Rows, Section, described, marked
from exports.report.words import TEXTS
from exports.statistics import agreement_schema as schema
from exports.statistics.results_schema import Results
from exports.statistics.table import STATISTICS, columns_at
from pipeline.core.tables import Table
from pipeline.core.terminal import counted

_ALPHA = "krippendorff_alpha"
_Label = tuple[str, schema.LabelAgreement]
_SIZES: tuple[Column[_Label], ...] = (
    Column("needed", lambda row: _count(row[1].required_items), ("report",)),
    Column("records", lambda row: _count(row[1].n_cluster_records), ("report",)),
    Column("n eff", lambda row: _count(row[1].n_effective), ("report",)),
)
_AFTER_ALPHA: tuple[Column[_Label], ...] = (
    Column("P(α < .667)", lambda row: words.percent(row[1].p_below.get("0.667")), ("page", "report")),
    Column("P(α < .800)", lambda row: words.percent(row[1].p_below.get("0.800")), ("report",)),
)
_WIDTHS = (27, 16, 29)
_RULES: tuple[tuple[model.Mark, float], ...] = (("zero", 0.0), *(("threshold", value) for value in words.THRESHOLDS))


def _count(size: float | None) -> str:
    return words.UNDEFINED if size is None else f"{size:,.0f}"


def _label_table(figures: schema.TaskAgreement, place: Place, left: int | None = 1) -> Table:
    scaled = any(isinstance(found, schema.ScaledLabelAgreement) for found in figures.labels.values())
    columns = [Column[_Label]("", lambda row: row[0])]
    if scaled:
        columns.append(Column("scale", lambda row: getattr(row[1], "scale", "boolean")))
    if place != "terminal" or scaled:
        columns.append(Column("n", lambda row: f"{row[1].n_pairable_items:,}"))
    columns += _SIZES
    for name, _, shown in columns_at("terminal" if place == "terminal" else "page"):
        if _has(figures, name):
            columns.append(Column(shown.head, partial(_figure, name)))
        if scaled and name == "gwet_ac1":
            columns.append(Column("AC2", partial(_figure, "gwet_ac2")))
        if name == _ALPHA:
            columns += _AFTER_ALPHA
    if place == "terminal":
        columns.append(Column("verdict", lambda row: words.verdict(row[1])))
    return described(columns, list(figures.labels.items()), place, left)


def _has(figures: schema.TaskAgreement, name: str) -> bool:
    """Whether one of the labels can have such a figure, as those of yes and no have all."""
    labels = figures.labels.values()
    return not labels or any(found.undefined.get(name) != "not_boolean" for found in labels)


def _figure(name: str, row: _Label) -> Figure:
    return words.label_figure(row[1], name)


def _legend(agreement: schema.Agreement) -> str:
    tasks = agreement.tasks.values()
    told = [shown.legend for name, _, shown in columns_at("page") if any(_has(figures, name) for figures in tasks)]
    if any(figures.scaled_pairs for figures in tasks):
        told.append("AC2: Gwet's, with the weights of the scale.")
    if schema.RATINGS in agreement.tasks:
        told.append("A record is a cluster of units, or a unit where no cluster is named.")
    return " ".join(("n: units with two answers or more.", *filter(None, told), "–: undefined."))


def short_sections(agreement: schema.Agreement, results: Results | None = None) -> Iterator[Section]:
    yield from words.interim_sections(agreement.work)
    if results:
        people = {name for figures in agreement.tasks.values() for name in figures.annotators}
        yield short_section(results, len(people))
    for task, figures in agreement.tasks.items():
        is_ours = task != schema.RATINGS
        yield Section(
            title=f"{task}: {_sizes(task, figures)}",
            tables=(_label_table(figures, "terminal", left=None),),
            points=(
                *marked("! ", words.undefined_sentences(figures)),
                *marked("* ", words.annotator_sentences(figures)),
            ),
            widths=_WIDTHS if is_ours else (),
        )
    cautions = sum(1 for figures in agreement.tasks.values() for _ in words.warning_sentences(figures))
    if cautions:
        sentence = f"{counted(cautions, 'caution')} to read first: details.html and agreement.md."
        yield Section(points=marked("! ", [sentence]))
    is_starred = any(True for figures in agreement.tasks.values() for _ in words.annotator_sentences(figures))
    is_starred |= results is not None and any(True for _ in standing_out(results))
    nouns = {words.cluster_noun(task, figures) for task, figures in agreement.tasks.items()}
    legend = TEXTS["legend"]["short"].replace("records", f"{min(nouns, default='record')}s")
    yield Section(notes=(legend + (" *: beyond chance." if is_starred else ""),))


def agreement_sections(
    agreement: schema.Agreement,
    results: Results | None = None,
    controls: Sequence[AnnotatorScores] = (),
    place: Place = "page",
) -> Iterator[Section]:
    """Behind what the jury found, which only the report has in front."""
    others: list[Section] = []
    if results and place == "report":
        caption, *others = results_sections(results.model_copy(update={"work": {}}))  # said once, for all tasks
        yield caption._replace(depth=1, name="found")
    yield from words.interim_sections(agreement.work)
    yield from (each._replace(depth=2) for each in others)
    if place == "report":
        yield _overview(agreement)
    else:
        yield Section("Agreement between annotators", depth=2)
    for task, figures in agreement.tasks.items():
        yield from _task_sections(agreement, task, figures, place)
    legend = f"{_legend(agreement)} {TEXTS['legend']['sizes'] if place == 'report' else ''}".rstrip()
    page = TEXTS["legend"]["page"].format(least=f"{100 * agreement.least_excess:g}")
    yield Section(notes=(words.FITNESS_MEANING, f"{legend} {page}"))
    if place == "report":
        yield people_section(agreement)
    yield from judge_sections(agreement, place)
    yield from audit_sections(agreement.audit)
    yield from control_sections(controls)
    if place != "report":
        told = (agreement_methods(agreement, controls), *([results_methods(results, controls)] if results else []))
        yield methods_of(*told)


def _task_sections(
    agreement: schema.Agreement, task: schema.MeasuredTask, figures: schema.TaskAgreement, place: Place
) -> Iterator[Section]:
    """In HTML one section, on a click."""
    discarded, mean = words.discard_sentence(figures.discards), words.macro_sentence(figures)
    is_report = place == "report"
    found = Section(
        title=f"{task}: {_sizes(task, figures)}",
        lead=(
            *marked("= ", words.fitness_sentences(figures)),
            *marked("! ", words.warning_sentences(figures)),
            *marked("! ", [discarded] if discarded else ()),
        ),
        tables=(_label_table(figures, place),),
        notes=(f"{mean}.",) if mean else (),
        points=marked("* ", words.annotator_sentences(figures)),
    )
    if is_report:
        yield found._replace(
            notes=(*found.notes, *_coverage(figures)),
            parts=(*_value_sections(figures), *pair_sections(figures), *_time_sections(figures)),
            folded=True,
        )
        return
    yield found
    if len(figures.rounds) > 1:
        yield Section(tables=(_slices_table("round", figures.rounds, figures),))


def _sizes(task: schema.MeasuredTask, figures: schema.TaskAgreement) -> str:
    people = counted(len(figures.annotators), "annotator")
    if task == schema.RATINGS:
        groups = f"{counted(figures.n_records, 'cluster')}, " if figures.n_records < figures.n_units else ""
        ratings = counted(sum(found.n_ratings for found in figures.labels.values()), "rating")
        return f"{counted(figures.n_units, 'unit')}, {groups}{ratings}, {people}"
    return f"{counted(figures.n_units, 'unit')}, {counted(figures.n_records, 'record')}, {people}"


def _overview(agreement: schema.Agreement) -> Section:
    """One forest plot of all labels of all tasks, with verdicts."""
    labels = [found for figures in agreement.tasks.values() for found in figures.labels.values()]
    drawn = [value for found in labels for value in (found.krippendorff_alpha, found.gwet_ac1, found.percent_agreement)]
    axis = model.alpha_axis([*drawn, *(found.intervals[_ALPHA].low for found in labels if _ALPHA in found.intervals)])
    rows: Rows = [("Label", "Coefficients", "α [95 %]", "Yes votes", "", "Verdict")]
    for task, figures in agreement.tasks.items():
        sizes = _sizes(task, figures)
        if figures.macro_alpha is not None and not figures.scaled_pairs:
            sizes += f", mean α {words.estimate(figures.macro_alpha, figures.macro_interval)}"
        rows.append((model.Named(task.capitalize(), sizes, heads_rows=True), *[""] * 5))
        rows += [_overview_row(label, found, axis) for label, found in figures.labels.items()]
    ticks = [(value, words.decimal(value)) for value in axis.ticks(0.2) if value not in (0.6, words.THRESHOLDS[1])]
    ticks += [(value, f"{value:.3f}".lstrip("0").rstrip("0")) for value in words.THRESHOLDS]
    rows.append(("", model.Ticks(axis, tuple(ticks)), *[""] * 4))
    cautions = {task: sum(1 for _ in words.warning_sentences(each)) for task, each in agreement.tasks.items()}
    counts = ", ".join(f"{task} {count}" for task, count in cautions.items() if count)
    told = f"{counted(sum(cautions.values()), 'caution')} to read first, in the parts below: {counts}."
    return Section(
        "How far the annotators agree",
        depth=2,
        name="agreement",
        look="forest",
        tables=(Table(rows, left=1),),
        points=marked("! ", [told] if counts else ()),
        notes=() if counts else ("No warning applies.",),
    )


def _overview_row(label: str, found: schema.LabelAgreement, axis: model.Axis) -> tuple[Cell, ...]:
    interval, alpha, share = found.intervals.get(_ALPHA), found.krippendorff_alpha, found.prevalence
    others: dict[model.Mark, float | None] = {"square": found.percent_agreement, "diamond": found.gwet_ac1}
    marks = ((mark, value) for mark, value in others.items() if value is not None)
    between = f" between {words.decimal(interval.low)} and {words.decimal(interval.high)}" if interval else ""
    said = f"{label}: α {words.decimal(alpha)}{between}"
    meaning = f"AC1 {words.decimal(found.gwet_ac1)}, percent agreement {words.percent(found.percent_agreement)}"
    ends = (interval.low, interval.high) if interval else None
    verdict, yes = words.fitness(found), words.percent(share)
    return (
        model.Named(label, getattr(found, "scale", "")),
        model.Strip(said, meaning, axis, alpha, ends, (*_RULES, *marks)),
        words.label_figure(found, _ALPHA),
        ""
        if share is None
        else model.Strip(f"{label}: {yes} yes", f"{found.n_ratings:,} ratings", SHARES, share, is_bar=True),
        yes,
        f"{words.SYMBOLS[verdict]} {words.FITNESS[verdict]}",
    )


def _coverage(figures: schema.TaskAgreement) -> Iterator[str]:
    overlap, pairs = figures.overlap, math.comb(len(figures.annotators), 2)
    sizes = ", ".join(f"{ratings} for {units:,}" for ratings, units in sorted(overlap.units_by_ratings.items()))
    if sizes:
        yield f"Annotators per unit: {sizes}."
    if figures.n_duplicates:
        repeats = counted(figures.n_duplicates, "older response")
        yield f"{repeats} left out because the annotator has a newer one on the unit."
    if apart := overlap.pairs_apart:
        yield f"{apart:,} of {counted(pairs, 'pair')} of annotators share no unit and cannot be compared."
    if len(groups := overlap.components) > 1:
        named = "; ".join(f"({place}) {', '.join(group)}" for place, group in enumerate(groups, start=1))
        yield f"{len(groups)} groups of annotators share no unit with each other: {named}."
    if figures.discards is None:
        yield "How many units were discarded is not known: the files do not tell."
    elif not figures.discards.n_responses:
        yield "No unit was discarded."


def _value_sections(figures: schema.TaskAgreement) -> Iterator[Section]:
    for label, found in figures.labels.items():
        if isinstance(found, schema.ScaledLabelAgreement) and found.values:
            rows: Rows = [("Value", "ratings", "agreement")]
            rows += [
                (each.value, f"{each.n_ratings:,}", words.percent(each.specific_agreement)) for each in found.values
            ]
            meaning = "Agreement: given that an annotator gives the value, how often another one does."
            yield Section(
                f"{label}: its values ({found.scale})", tables=(Table(rows, left=1),), notes=(meaning,), depth=4
            )


def _slices_table(kind: str, slices: Sequence[schema.AgreementSlice], figures: schema.TaskAgreement) -> Table:
    rows: Rows = [(f"α by {kind}", *(part.name for part in slices))]
    for label in figures.labels:
        found = (part.labels.get(label) for part in slices)
        rows.append((label, *(words.UNDEFINED if each is None else _slice_figure(each) for each in found)))
    return Table(rows, left=1)


def _slice_figure(found: schema.SliceLabel) -> Figure:
    alpha = words.estimate(found.krippendorff_alpha, found.interval, found.undefined.get(_ALPHA))
    return alpha._replace(of=f", n = {found.n_pairable_items:,}")


def _time_sections(figures: schema.TaskAgreement) -> Iterator[Section]:
    if len(figures.weeks) > 1:
        table = Section(
            "The weeks as a table", tables=(_slices_table("week", figures.weeks, figures),), folded=True, depth=5
        )
        charts = tuple(week_chart(label, figures.weeks) for label in figures.labels)
        yield Section("Agreement over time", notes=(TEXTS["meaning"]["weeks"],), charts=charts, parts=(table,), depth=4)
    for title, kind, slices in (
        ("Rounds side by side", "round", figures.rounds),
        ("Languages", "language", figures.languages),
    ):
        if len(slices) > 1:
            yield Section(title, tables=(_slices_table(kind, slices, figures),), depth=4)
    if figures.conditional:
        rows: Rows = [("Label", "where", "n", "α [95 %]", "AC1", "agr.", "yes", "broken")]
        rows += [_conditional_row(figures, found) for found in figures.conditional]
        notes = (TEXTS["meaning"]["conditional"],)
        yield Section("Labels bound by a rule", tables=(Table(rows, left=2),), notes=notes, depth=4)


def week_chart(label: str, weeks: Sequence[schema.AgreementSlice]) -> model.Chart:
    shown = [(part.name, part.labels[label]) for part in weeks if label in part.labels]
    mondays = [float(date.fromisocalendar(int(name[:4]), int(name[-2:]), 1).toordinal()) for name, _ in shown]
    days = model.Axis(mondays[0], max(mondays[-1], mondays[0] + 1))
    known = [found for _, found in shown if found.krippendorff_alpha is not None]
    ends = [found.interval.low for found in known if found.interval]
    axis = model.alpha_axis([*(found.krippendorff_alpha for found in known), *ends])
    dots = tuple(
        model.Dot(
            days.place(monday),
            found.krippendorff_alpha,
            f"{name}: α {words.estimate(found.krippendorff_alpha, found.interval)}, "
            f"{counted(found.n_pairable_items, 'unit')}",
            (found.interval.low, found.interval.high) if found.interval else None,
        )
        for monday, (name, found) in zip(mondays, shown, strict=True)
    )
    named = [
        name if not place or name[:4] != shown[place - 1][0][:4] else name[5:] for place, (name, _) in enumerate(shown)
    ]
    step = max(1, -(-len(shown) // 5))
    across = tuple((dot.x, name) for dot, name in list(zip(dots, named, strict=True))[::step])
    up = model.Ticks(axis, tuple((value, words.decimal(value)) for value in axis.ticks(0.5)))
    return model.Chart(label, f"{label}: α by week", dots, across, up)


def _conditional_row(figures: schema.TaskAgreement, found: schema.ConditionalAgreement) -> tuple[Cell, ...]:
    whole = figures.labels[found.label]
    alpha = words.estimate(found.krippendorff_alpha, found.interval, found.undefined.get(_ALPHA))
    return (
        found.label,
        f"{found.premise} is {'yes' if found.premise_value else 'no'}",
        f"{found.n_pairable_items:,}",
        alpha._replace(of=f" ({words.decimal(whole.krippendorff_alpha)})"),
        f"{words.decimal(found.gwet_ac1)} ({words.decimal(whole.gwet_ac1)})",
        f"{words.percent(found.percent_agreement)} ({words.percent(whole.percent_agreement)})",
        f"{words.percent(found.prevalence)} ({words.percent(whole.prevalence)})",
        f"{figures.constraint_violations.get(found.rule, 0):,}",
    )


def methods_section(
    agreement: schema.Agreement, results: Results | None, controls: Sequence[AnnotatorScores], remarks: Sequence[str]
) -> Section:
    methods = [method for name in dict.fromkeys((_ALPHA, *STATISTICS)) if (method := STATISTICS[name].method)]
    first, *others = TEXTS["terms"].items()
    terms = Table([("Term", "meaning"), first, *methods, *others], left=2)
    files: Rows = [("File", "rows", "SHA-256")]
    files += [(found.file, f"{found.rows:,}", found.sha256) for found in agreement.inputs]
    told = (agreement_methods(agreement, controls), *([results_methods(results, controls)] if results else []))
    return methods_of(*told)._replace(
        parts=(
            Section("What the figures of agreement mean", tables=(terms,), folded=True),
            Section(
                "Files read, and what of them did not count",
                tables=(Table(files, left=1),),
                points=marked("", remarks or ["Every row counts."]),
                folded=True,
            ),
        )
    )
