"""Agreement, judges against the jury, audit and controls as sections of sentences and tables."""

from collections.abc import Iterator, Sequence
from functools import partial

from annotation.argilla.labels import TaskName
from annotation.quality.scores import AnnotatorScores, Scores, Share
from exports.report import words
from exports.report.results_page import opening_sections, short_section
from exports.report.sections import Column, Place, Section, described, marked
from exports.statistics import agreement_schema as schema
from exports.statistics.alt_test import LEAST_PEOPLE, LEAST_RECORDS, LEAST_UNITS, AltTest
from exports.statistics.consensus import Audit, RightShare
from exports.statistics.results_schema import Results
from exports.statistics.table import columns_at
from pipeline.core.tables import Table
from pipeline.core.terminal import counted

JUDGE_LEGEND = (
    "Judges: n: units with a majority of the jury, which counts as right; a single vote is one, and ties are left out. "
    "tp: both say yes; fp: only the judge; fn: only the jury; tn: neither. κ: Cohen's kappa with "
    "its 95 % interval over records. ω, ρ: alternative annotator test: share of people against whom the judge wins, "
    "mean share of units on which it is as near to the others as they are. prec, rec: precision and recall of yes. "
    "AUC: of the P(yes) that the judge states. –: undefined, or too few to tell."
)
ALT_TEST_MEANING = (
    "The alternative annotator test (Calderon, Reichart & Dror 2025): each person is left out in turn, and the judge "
    "and she are compared by how many of the others they agree with. ω: share of the people against whom the judge "
    "wins, that is behind by less than ε; ρ: mean share of the units on which it is as near or nearer. What may be "
    "concluded rests on the variance between whole records. Where people hardly agree with each other, it is easy to "
    "be as good as they are: look at α first."
)
_JUDGE_REASONS: dict[schema.JudgeReason, str] = {
    "no_compared_units": "no unit has an answer of the judge and a majority of the jury",
    "judge_never_says_yes": "the judge never says yes",
    "jury_never_says_yes": "the jury never says yes",
    "nobody_says_yes": "neither ever says yes",
    "constant_both_raters": "both give the same answer everywhere",
    "jury_is_constant": "the jury gives the same answer everywhere",
}
_NAMES = {"precision": "precision", "recall": "recall", "f1": "F1", "accuracy": "accuracy", "cohen_kappa": "κ"}
_REFUSED_INTERVALS: dict[schema.RefusedInterval, str] = {
    "few_units": "fewer than 20 units are compared",
    "undefined_resamples": "it is undefined in more than 5 % of the resamples",
    "single_record": "all compared units belong to one record",
    "constant": "every resample gives the same value",
    "too_few_rare_ratings": "both say its rarer value on fewer than 2 units",
}


def left_out_sentences(found: schema.JudgedTask) -> Iterator[str]:
    if found.n_unknown:
        yield f"{counted(found.n_unknown, 'judgement')} of units that the export does not hold."
    if found.statuses:
        counts = ", ".join(f"{status} {count:,}" for status, count in found.statuses.items())
        yield f"Judgements that cannot be used, by status: {counts}."
    silent = [f"{label} {figures.n_left_out:,}" for label, figures in found.labels.items() if figures.n_left_out]
    if silent:
        yield f"Left out by the judge, as where it cannot tell: {', '.join(silent)}."
    ties = [f"{label} {figures.n_ties:,}" for label, figures in found.labels.items() if figures.n_ties]
    if ties:
        yield f"Left out because the jury ties: {', '.join(ties)}."
    for label, figures in found.labels.items():
        undefined = figures.confusion.undefined
        for reason in dict.fromkeys(undefined.values()):
            names = [name for field, name in _NAMES.items() if undefined.get(field) == reason]
            told = f"{', '.join(names)} of {label} {'is' if len(names) == 1 else 'are'}"
            yield f"{told} undefined: {_JUDGE_REASONS[reason]}."
    for refused, meaning in _REFUSED_INTERVALS.items():
        without = [
            label
            for label, figures in found.labels.items()
            if figures.confusion.cohen_kappa is not None and figures.refused_interval == refused
        ]
        if without:
            yield f"κ without an interval, since {meaning}: {', '.join(without)}."


def conclusion_sentences(found: schema.JudgedTask) -> Iterator[str]:
    for label, figures in found.labels.items():
        yield f"{label}: {conclusion(figures.alt_test)}"


def conclusion(found: AltTest) -> str:
    counting = found.counting
    beaten = [each.annotator for each in counting if each.won_by_record]
    rest = [each.annotator for each in counting if not each.won_by_record]
    margin = f"ε = {words.decimal(found.epsilon)}"
    if found.conclusion == "any":
        return f"may stand in for any of these {len(counting)} people; it is behind none of them by {margin} or more."
    if found.conclusion == "most":
        return (
            f"may stand in for {len(beaten)} of these {len(counting)} people ({', '.join(beaten)}); that it is behind "
            f"by less than {margin} is not shown of {', '.join(rest)}."
        )
    if found.conclusion == "not_shown":
        return (
            f"is not shown to be able to stand in for these people: that it is behind by less than {margin} is shown "
            f"of {len(beaten)} of {len(counting)}."
        )
    if found.conclusion == "by_chance":
        return (
            "is not shown to be able to stand in for these people: that it agrees with them by more than chance is "
            "not shown, as of one who gives the usual answer everywhere."
        )
    if found.conclusion == "few_people":
        return (
            f"too few people to tell: {len(found.people)} of the {LEAST_PEOPLE} it takes share {LEAST_UNITS} units "
            "with somebody else and with the judge."
        )
    return (
        f"too few units to tell: {len(counting)} of the {LEAST_PEOPLE} people that it takes; one counts with "
        f"{LEAST_UNITS} units, of {LEAST_RECORDS} records, that the judge and two others answered."
    )


def shown_alt_test(found: AltTest) -> tuple[float | None, float | None]:
    """ω and ρ where something may be concluded from them; None of both where people or units are too few."""
    if found.conclusion in ("few_people", "few_units"):
        return None, None
    return found.winning_rate, found.advantage_probability


def difference_sentences(differences: Sequence[schema.JudgeDifference]) -> Iterator[str]:
    same: list[str] = []
    for each in differences:
        ahead, behind = (each.model_a, each.agreement_a), (each.model_b, each.agreement_b)
        interval = each.interval
        if each.difference <= 0:
            ahead, behind = behind, ahead
            interval = interval and (-interval[1], -interval[0])
        points = f"{abs(each.difference):.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
        if not each.differs:
            same.append(f"{each.label} ({each.model_a}, {each.model_b}: {points})")
            continue
        shares = f"{words.percent(ahead[1])} against {words.percent(behind[1])} of {counted(each.n_units, 'unit')}"
        yield (
            f"{each.label}: {ahead[0]} agrees with the jury more often than {behind[0]}, on {shares} "
            f"(difference {points}, p {each.p_holm:.3f} after Holm)."
        )
    if same:
        yield f"No difference between judges is shown: {'; '.join(same)}."


_Label = tuple[str, schema.LabelAgreement]


def _label_table(figures: schema.TaskAgreement, place: Place, left: int | None = 1) -> Table:
    scaled = any(isinstance(found, schema.ScaledLabelAgreement) for found in figures.labels.values())
    columns = [Column[_Label]("", lambda row: row[0])]
    if scaled:
        columns.append(Column("scale", lambda row: getattr(row[1], "scale", "boolean")))
    if place != "terminal" or scaled:
        columns.append(Column("n", lambda row: f"{row[1].n_pairable_items:,}"))
    for name, _, shown in columns_at(place):
        if _has(figures, name):
            columns.append(Column(shown.head, partial(_figure, name)))
        if scaled and name == "gwet_ac1":
            columns.append(Column("AC2", lambda row: words.decimal(getattr(row[1], "gwet_ac2", None))))
        if name == "krippendorff_alpha" and place == "page":
            columns.append(Column("P(α < .667)", lambda row: words.percent(row[1].p_below.get("0.667"))))
    if place == "terminal":
        columns.append(Column("verdict", lambda row: words.FITNESS[words.fitness(row[1])]))
    return described(columns, list(figures.labels.items()), place, left)


def _has(figures: schema.TaskAgreement, name: str) -> bool:
    """Whether one of the labels can have such a figure, as those of yes and no have all."""
    labels = figures.labels.values()
    return not labels or any(found.undefined.get(name) != "not_boolean" for found in labels)


def _figure(name: str, row: _Label) -> str:
    return words.figure_text(row[1], name)


def _legend(agreement: schema.Agreement) -> str:
    tasks = agreement.tasks.values()
    told = [shown.legend for name, _, shown in columns_at("page") if any(_has(figures, name) for figures in tasks)]
    if any(figures.scaled_pairs for figures in tasks):
        told.append("AC2: Gwet's, with the weights of the scale.")
    if schema.RATINGS in agreement.tasks:
        told.append("A record is a cluster of units, or a unit where no cluster is named.")
    return " ".join(("n: units with two answers or more.", *filter(None, told), "–: undefined."))


_PAGE_LEGEND = (
    "P(α < .667): share of the resamples below that threshold. Annotators are named where chance would name anybody in "
    "at most one file of twenty."
)
_SHORT_LEGEND = (
    "α: Krippendorff's alpha with its 95 % interval over records; –: undefined. Fit for use: the whole interval is at "
    ".800 or above, for tentative conclusions at .667."
)
_WIDTHS = (27, 16, 29)

_Judged = tuple[str, schema.JudgedLabel]
_JUDGED: tuple[Column[_Judged], ...] = (
    Column("", lambda row: row[0]),
    Column("n", lambda row: f"{row[1].n_compared:,}"),
    Column(
        "tp / fp / fn / tn",
        lambda row: " / ".join(f"{getattr(row[1].confusion, cell):,}" for cell in ("tp", "fp", "fn", "tn")),
        ("page",),
    ),
    Column("κ [95 %]", lambda row: words.estimate(row[1].confusion.cohen_kappa, row[1].interval)),
    Column("ω", lambda row: words.decimal(shown_alt_test(row[1].alt_test)[0])),
    Column("ρ", lambda row: words.decimal(shown_alt_test(row[1].alt_test)[1])),
    Column("prec", lambda row: words.decimal(row[1].confusion.precision)),
    Column("rec", lambda row: words.decimal(row[1].confusion.recall)),
    Column("F1", lambda row: words.decimal(row[1].confusion.f1), ("page",)),
    Column("accuracy", lambda row: words.decimal(row[1].confusion.accuracy), ("page",)),
    Column("AUC", lambda row: words.decimal(row[1].calibration.auc)),
    Column("Brier", lambda row: words.decimal(row[1].calibration.brier), ("page",)),
    Column("ECE", lambda row: words.decimal(row[1].calibration.ece), ("page",)),
)
_Scored = tuple[str, Scores, int, int]  # an annotator or a label, and how many controls and repeats were answered
_CONTROLS: tuple[Column[_Scored], ...] = (
    Column("", lambda row: row[0]),
    Column("controls", lambda row: f"{row[2]:,}"),
    Column("sensitivity", lambda row: _share(row[1].sensitivity)),
    Column("specificity", lambda row: _share(row[1].specificity)),
    Column("repeats", lambda row: f"{row[3]:,}"),
    Column("self-consistency", lambda row: _share(row[1].consistency)),
)
_CONTROLS_LEGEND = (
    "Sensitivity: share of known yeses to which they said yes; specificity: of known noes, no; self-consistency: share "
    "of answers to repeats that are what they said before. Intervals of 95 % (Wilson), as if answers were independent."
)
_CHANCE = "How often each of these sentences is said of somebody who looks: annotation/contracts/controls.md#notices."


def short_sections(agreement: schema.Agreement, results: Results | None = None) -> Iterator[Section]:
    people = {name for figures in agreement.tasks.values() for name in figures.annotators}
    if results:
        yield short_section(results, len(people))
    for task, figures in agreement.tasks.items():
        is_ours = task != schema.RATINGS
        yield Section(
            title=f"{task}: {_sizes(task, figures)}",
            tables=(_label_table(figures, "terminal", left=None),),
            points=(*marked("! ", words.undefined_sentences(figures)), *marked("* ", words.finding_sentences(figures))),
            widths=_WIDTHS if is_ours else (),
        )
    cautions = sum(1 for figures in agreement.tasks.values() for _ in words.warning_sentences(figures))
    if cautions:
        where = "agreement.md" if schema.RATINGS in agreement.tasks else "report.html and agreement.md"
        sentence = f"{counted(cautions, 'caution')} to read first: {where}."
        yield Section(points=marked("! ", [sentence]))
    is_starred = any(True for figures in agreement.tasks.values() for _ in words.finding_sentences(figures))
    nouns = {words.cluster_noun(task, figures) for task, figures in agreement.tasks.items()}
    legend = _SHORT_LEGEND.replace("records", f"{min(nouns, default='record')}s")
    yield Section(notes=(legend + (" *: beyond chance." if is_starred else ""),))


def agreement_sections(
    agreement: schema.Agreement, results: Results | None = None, controls: Sequence[AnnotatorScores] = ()
) -> Iterator[Section]:
    people = {name for figures in agreement.tasks.values() for name in figures.annotators}
    if results:
        yield from opening_sections(results, len(people))
    yield Section("Agreement between annotators", depth=2)
    for task, figures in agreement.tasks.items():
        yield from _task_sections(agreement, task, figures)
    yield Section(notes=(words.FITNESS_MEANING, f"{_legend(agreement)} {_PAGE_LEGEND}"))
    if agreement.judges:
        yield Section("Judges against the jury", depth=2)
        yield from judge_sections(agreement, "page")
    yield from audit_sections(agreement.audit)
    yield from control_sections(controls)


def _task_sections(
    agreement: schema.Agreement, task: schema.MeasuredTask, figures: schema.TaskAgreement
) -> Iterator[Section]:
    discarded, mean = words.discard_sentence(figures.discards), words.macro_sentence(agreement, task)
    yield Section(
        title=f"{task}: {_sizes(task, figures)}",
        lead=(
            *marked("= ", words.fitness_sentences(figures)),
            *marked("! ", words.warning_sentences(figures)),
            *marked("! ", [discarded] if discarded else ()),
        ),
        tables=(_label_table(figures, "page"),),
        notes=(f"{mean}.",) if mean else (),
        points=marked("* ", words.finding_sentences(figures)),
    )
    if len(figures.rounds) > 1:
        rows = [("α by round", *(part.name for part in figures.rounds))]
        for label in figures.labels:
            found = [part.labels[label] for part in figures.rounds]
            estimates = (
                f"{words.estimate(p.krippendorff_alpha, p.interval)}, n = {p.n_pairable_items:,}" for p in found
            )
            rows.append((label, *estimates))
        yield Section(tables=(Table(rows, left=1),))
    cited = [f"{label}: {words.label_sentence(agreement, task, label)}." for label in figures.labels]
    yield Section("To cite", points=marked("", cited), folded=True)


def judge_sections(agreement: schema.Agreement, place: Place) -> Iterator[Section]:
    """Each judge on each task, what tells judges apart, then the legend; nothing where there are none."""
    for judge in agreement.judges:
        for task, found in judge.tasks.items():
            yield judge_section(judge.model, task, found, place)
    yield from closing_sections(agreement)


def judge_section(model: str, task: TaskName, found: schema.JudgedTask, place: Place) -> Section:
    coverage = f"{found.n_judged:,} of {counted(found.n_units, 'unit')} judged, {found.n_not_judged:,} not."
    return Section(
        title=f"{model} against the jury: {task}",
        lead=(*marked("= ", [coverage]), *marked("! ", left_out_sentences(found))),
        tables=(described(_JUDGED, list(found.labels.items()), place),) if found.labels else (),
        points=marked("* ", conclusion_sentences(found)) if found.labels else (),
    )


def closing_sections(agreement: schema.Agreement) -> Iterator[Section]:
    others = [
        f"{judge.model}: {counted(count, 'judgement')} of {task}, which has no file in the export."
        for judge in agreement.judges
        for task, count in judge.other_tasks.items()
    ]
    if others:
        yield Section(points=marked("! ", others))
    if agreement.judge_differences:
        points = marked("* ", difference_sentences(agreement.judge_differences))
        yield Section("Judges against each other", points=points)
    if agreement.judges:
        yield Section(notes=(JUDGE_LEGEND,))


def audit_sections(audit: Audit | None) -> Iterator[Section]:
    if audit:
        yield Section("Before and after the audit", points=marked("= ", audit_sentences(audit)), depth=2)


def control_sections(controls: Sequence[AnnotatorScores]) -> Iterator[Section]:
    if not controls:
        return
    notices = [f"{each.annotator} {notice}." for each in controls for notice in each.notices]
    people = [(each.annotator, each.together, each.controls, each.repeats) for each in controls]
    yield Section(
        "Controls",
        lead=marked("* ", notices or ["Nothing is to be said of anybody."]),
        tables=(described(_CONTROLS, people, "page"),),
        notes=(_CONTROLS_LEGEND, _CHANCE) if notices else (_CONTROLS_LEGEND,),
        depth=2,
    )
    for each in controls:
        labels = [
            (label, found, sum(part.of for part in (found.sensitivity, found.specificity) if part), repeats)
            for of_task in each.labels.values()
            for label, found in of_task.items()
            for repeats in [found.consistency.of if found.consistency else 0]
        ]
        table = described(_CONTROLS, labels, "page")
        yield Section(f"Label by label: {each.annotator}", tables=(table,), folded=True)


def _sizes(task: schema.MeasuredTask, figures: schema.TaskAgreement) -> str:
    people = counted(len(figures.annotators), "annotator")
    if task == schema.RATINGS:
        groups = f"{counted(figures.n_records, 'cluster')}, " if figures.n_records < figures.n_units else ""
        ratings = counted(sum(found.n_ratings for found in figures.labels.values()), "rating")
        return f"{counted(figures.n_units, 'unit')}, {groups}{ratings}, {people}"
    return f"{counted(figures.n_units, 'unit')}, {counted(figures.n_records, 'record')}, {people}"


def _share(found: Share | None) -> str:
    if not found:
        return words.UNDEFINED
    return f"{words.percent(found.value)} [{words.percent(found.low)}, {words.percent(found.high)}] of {found.of:,}"


def audit_sentences(audit: Audit) -> Iterator[str]:
    disputed = f", {audit.n_disputed:,} of them where a judge and the jury differ" if audit.n_disputed else ""
    yield (
        f"Labels {audit.version_after}: {counted(audit.n_decisions, 'decision')} of adjudicators{disputed}, before the "
        f"votes of annotators ({audit.version_before})."
    )
    if not audit.labels:
        yield "Whether the labels are better for it cannot be told: nobody has answered a control."
    for each in audit.labels:
        ties = f", {each.n_ties:,} left out because annotators tie" if each.n_ties else ""
        before = f"{each.label}: {_right(each.before)} of {counted(each.before.n, 'control')} right before the audit"
        if each.n_decided:
            changed = f"{each.n_changed:,} of {each.n_decided:,} decided against the majority"
            yield f"{before}, {_right(each.after)} after; {changed}{ties}."
        else:
            yield f"{before}; adjudicators decided on none of them{ties}."


def _right(found: RightShare) -> str:
    return f"{words.percent(found.share)} [{words.percent(found.low)}, {words.percent(found.high)}]"
