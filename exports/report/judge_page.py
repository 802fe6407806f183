"""Judges against the jury, the audit and controls, as sections of sentences and tables."""

from collections.abc import Iterator, Sequence

from annotation.quality.scores import AnnotatorScores, Scores, Share
from exports.report import words
from exports.report.sections import SHARES, Chart, Column, Dot, Figure, Place, Rows, Section, Ticks, described, marked
from exports.report.words import TEXTS
from exports.statistics import agreement_schema as schema
from exports.statistics.alt_test import LEAST_PEOPLE, LEAST_RECORDS, LEAST_UNITS, AltTest
from exports.statistics.consensus import Audit, RightShare
from exports.statistics.warnings import FEW_SHARED
from pipeline.core.tables import Table
from pipeline.core.terminal import counted

_JUDGE_REASONS: dict[schema.JudgeReason, str] = TEXTS["judge_undefined"]
_NAMES: dict[str, str] = TEXTS["judge_names"]
_REFUSED_INTERVALS: dict[schema.RefusedInterval, str] = TEXTS["judge_refused"]
_SMALLEST, _LARGEST = 3.0, 11.0  # the radii of circles, in pixels


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
    scaled = {label: each.alt_test for label, each in (found.scaled or {}).items()}
    for label, test in ({label: each.alt_test for label, each in found.labels.items()} | scaled).items():
        yield f"{label}: {conclusion(test)}"


_Scaled = tuple[str, schema.JudgedScale, schema.ScaledLabelAgreement | None]
_SCALED: tuple[Column[_Scaled], ...] = (
    Column("", lambda row: row[0]),
    Column("scale", lambda row: row[2].scale if row[2] else words.UNDEFINED),
    Column("n", lambda row: f"{row[1].n_compared:,}"),
    Column("same", lambda row: words.decimal(row[2].percent_agreement if row[2] else None)),
    Column("κ [95 %]", lambda row: _scaled_kappa(row[1])),
    Column("α", lambda row: words.decimal(row[2].krippendorff_alpha if row[2] else None)),
    Column("ω", lambda row: words.decimal(shown_alt_test(row[1].alt_test)[0])),
    Column("ρ", lambda row: words.decimal(shown_alt_test(row[1].alt_test)[1])),
)


def _scaled_kappa(found: schema.JudgedScale) -> str | Figure:
    if found.agreement is None:
        return words.UNDEFINED
    interval = found.agreement.intervals.get("mean_pairwise_weighted_kappa") if found.n_compared >= FEW_SHARED else None
    return words.estimate(found.agreement.mean_pairwise_weighted_kappa, interval)


def conclusion(found: AltTest) -> str:
    counting = found.counting
    beaten = [each.annotator for each in counting if each.won_by_record]
    rest = [each.annotator for each in counting if not each.won_by_record]
    said: str = TEXTS["conclusion"][found.conclusion]
    return said.format(
        margin=f"ε = {words.decimal(found.epsilon)}",
        people=len(counting) if found.conclusion != "few_people" else len(found.people),
        n_beaten=len(beaten),
        beaten=", ".join(beaten),
        rest=", ".join(rest),
        least_people=LEAST_PEOPLE,
        least_units=LEAST_UNITS,
        least_records=LEAST_RECORDS,
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
        points = words.minus(points)
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


_Judged = tuple[str, schema.JudgedLabel]
_JUDGED: tuple[Column[_Judged], ...] = (
    Column("", lambda row: row[0]),
    Column("n", lambda row: f"{row[1].n_compared:,}"),
    Column(
        "tp / fp / fn / tn",
        lambda row: " / ".join(f"{count:,}" for count in _cells(row[1].confusion)),
        ("page", "report"),
    ),
    Column("κ [95 %]", lambda row: words.estimate(row[1].confusion.cohen_kappa, row[1].interval)),
    Column("ω", lambda row: words.decimal(shown_alt_test(row[1].alt_test)[0])),
    Column("ρ", lambda row: words.decimal(shown_alt_test(row[1].alt_test)[1])),
    Column("prec", lambda row: words.decimal(row[1].confusion.precision)),
    Column("rec", lambda row: words.decimal(row[1].confusion.recall)),
    Column("F1", lambda row: words.decimal(row[1].confusion.f1), ("page", "report")),
    Column("accuracy", lambda row: words.decimal(row[1].confusion.accuracy), ("page", "report")),
    Column("AUC", lambda row: words.decimal(row[1].calibration.auc)),
    Column("Brier", lambda row: words.decimal(row[1].calibration.brier), ("page", "report")),
    Column("ECE", lambda row: words.decimal(row[1].calibration.ece), ("page", "report")),
)


def judge_sections(agreement: schema.Agreement, place: Place) -> Iterator[Section]:
    """Each judge on each task, what tells judges apart, then the legend; nothing where there are none."""
    if agreement.judges and place != "terminal":
        yield Section("Judges against the jury", depth=2, name="judges")
    for judge in agreement.judges:
        for task, found in judge.tasks.items():
            scaled = [(label, each, each.agreement) for label, each in (found.scaled or {}).items()]
            coverage = f"{found.n_judged:,} of {counted(found.n_units, 'unit')} judged, {found.n_not_judged:,} not."
            yield Section(
                title=f"{judge.model} against the jury: {task}",
                lead=(*marked("= ", [coverage]), *marked("! ", left_out_sentences(found))),
                tables=(
                    *((described(_JUDGED, list(found.labels.items()), place),) if found.labels else ()),
                    *((described(_SCALED, scaled, place, 2),) if scaled else ()),
                ),
                points=marked("* ", conclusion_sentences(found)),
                parts=tuple(_details(found)) if found.labels and place == "report" else (),
            )
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
        if place == "report":
            table = described(_APART, agreement.judge_differences, place, 3)
            yield Section("All differences of agreement with the majority", tables=(table,), folded=True)
    if agreement.judges:
        legend: dict[str, str] = TEXTS["legend"]
        of_ratings = any(found.scaled for judge in agreement.judges for found in judge.tasks.values())
        yield Section(notes=(legend["judge"], *([legend["scaled_judge"]] if of_ratings else [])))


_APART: tuple[Column[schema.JudgeDifference], ...] = (
    Column("Label", lambda row: row.label),
    Column("judge", lambda row: row.model_a),
    Column("other", lambda row: row.model_b),
    Column("N", lambda row: f"{row.n_units:,}"),
    Column("records", lambda row: f"{row.n_records:,}"),
    Column("agrees", lambda row: words.percent(row.agreement_a)),
    Column("other agrees", lambda row: words.percent(row.agreement_b)),
    Column("difference [95 %]", lambda row: _apart(row.difference, row.interval)),
    Column("p", lambda row: words.decimal_p(row.p)),
    Column("p (Holm)", lambda row: words.decimal_p(row.p_holm)),
)


def _cells(found: schema.Confusion) -> tuple[int, int, int, int]:
    return found.tp, found.fp, found.fn, found.tn


def _apart(difference: float, interval: tuple[float, float] | None) -> Figure:
    ends = f"[{interval[0]:+.2f}, {interval[1]:+.2f}]" if interval else ""
    return Figure(words.minus(f"{difference:+.2f}"), words.minus(ends))


def _details(found: schema.JudgedTask) -> Iterator[Section]:
    charts = tuple(_reliability(label, figures.calibration) for label, figures in found.labels.items())
    meaning = TEXTS["meaning"]
    yield Section(charts=charts, notes=(meaning["calibration"],))
    against: Rows = [("Label", "annotator", "N", "tp / fp / fn / tn", "accuracy", "κ")]
    tested: Rows = [("Label", "annotator", "N", "two others", "records", "judge wins", "they win", "p", "p by record")]
    for label, figures in found.labels.items():
        for one in figures.annotators:
            own, counts = one.confusion, _cells(one.confusion)
            shown = (f"{sum(counts):,}", " / ".join(f"{count:,}" for count in counts), words.percent(own.accuracy))
            against.append((label, one.annotator, *shown, words.decimal(own.cohen_kappa)))
        for each in figures.alt_test.people:
            sizes = (f"{number:,}" for number in (each.n_units, each.n_units_two_others, each.n_records))
            wins = map(words.percent, (each.judge_wins, each.person_wins))
            tests = ((each.p, each.won), (each.p_by_record, each.won_by_record))
            p_values = (f"{words.decimal_p(p)}{' *' if won else ''}" for p, won in tests)
            tested.append((label, each.annotator, *sizes, *wins, *p_values))
    for title, rows, told in (
        ("The judge against each annotator", against, meaning["kappa"]),
        ("Who is nearer to the others; * the judge wins", tested, meaning["alt_test"]),
    ):
        yield Section(title, tables=(Table(rows, left=2),), notes=(told,), folded=True)


def _reliability(label: str, found: schema.Calibration) -> Chart:
    most = max((each.n for each in found.bins), default=0)
    ticks = tuple((value, words.percent(value)) for value in (0.0, 0.5, 1.0))
    dots = tuple(
        Dot(each.mean_p_yes, each.share_yes, said, size=max(_SMALLEST, _LARGEST * (each.n / most) ** 0.5))
        for each in found.bins
        if each.mean_p_yes is not None and each.share_yes is not None
        for said in [f"{each.n:,} units at {words.percent(each.mean_p_yes)}: {words.percent(each.share_yes)} yes"]
    )
    said = f"{label}: reliability of the judge's P(yes)"
    return Chart(label, said, dots, ticks, Ticks(SHARES, ticks), ("judge's P(yes)", "jury says yes"), is_line=False)


_Scored = tuple[str, Scores, int, int]  # an annotator or a label, and how many controls and repeats were answered
_CONTROLS: tuple[Column[_Scored], ...] = (
    Column("", lambda row: row[0]),
    Column("controls", lambda row: f"{row[2]:,}"),
    Column("sensitivity", lambda row: _share(row[1].sensitivity)),
    Column("specificity", lambda row: _share(row[1].specificity)),
    Column("repeats", lambda row: f"{row[3]:,}"),
    Column("self-consistency", lambda row: _share(row[1].consistency)),
)


def audit_sections(audit: Audit | None) -> Iterator[Section]:
    if audit:
        yield Section("Before and after the audit", points=marked("= ", audit_sentences(audit)), depth=2, name="audit")


def control_sections(controls: Sequence[AnnotatorScores]) -> Iterator[Section]:
    if not controls:
        return
    notices = [f"{each.annotator} {notice}." for each in controls for notice in each.notices]
    people = [(each.annotator, each.together, each.controls, each.repeats) for each in controls]
    yield Section(
        "Controls",
        lead=marked("* ", notices or ["Nothing is to be said of anybody."]),
        tables=(described(_CONTROLS, people, "page"),),
        notes=(TEXTS["legend"]["controls"], *([TEXTS["meaning"]["notices"]] if notices else [])),
        depth=2,
        name="controls",
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


def _share(found: Share | None) -> Figure:
    if not found:
        return Figure(words.UNDEFINED)
    interval = f"[{words.percent(found.low)}, {words.percent(found.high)}]"
    return Figure(words.percent(found.value), interval, f" of {found.of:,}")


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
