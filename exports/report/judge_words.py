"""A judge against the jury in plain sentences: what was compared, and what may be concluded.

Sentences hold names of judges and annotators as they are: whoever puts one into HTML, Markdown or LaTeX escapes it
whole.
"""

from collections.abc import Iterator, Sequence

from exports.agreement.alt_test import LEAST_PEOPLE, LEAST_RECORDS, LEAST_UNITS, AltTest
from exports.agreement.schema import (
    JudgeAgreement,
    JudgeDifference,
    JudgedTask,
    JudgeReason,
    RefusedInterval,
)
from exports.report.words import decimal, percent
from pipeline.terminal import counted

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
_JUDGE_REASONS: dict[JudgeReason, str] = {
    "no_compared_units": "no unit has an answer of the judge and a majority of the jury",
    "judge_never_says_yes": "the judge never says yes",
    "jury_never_says_yes": "the jury never says yes",
    "nobody_says_yes": "neither ever says yes",
    "constant_both_raters": "both give the same answer everywhere",
    "jury_is_constant": "the jury gives the same answer everywhere",
}
_NAMES = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "accuracy": "accuracy",
    "cohen_kappa": "κ",
}
_REFUSED_INTERVALS: dict[RefusedInterval, str] = {
    "few_units": "fewer than 20 units are compared",
    "undefined_resamples": "it is undefined in more than 5 % of the resamples",
    "single_record": "all compared units belong to one record",
    "constant": "every resample gives the same value",
    "too_few_rare_ratings": "both say its rarer value on fewer than 2 units",
}


def coverage_sentence(found: JudgedTask) -> str:
    """How many units of the export the judge answered."""
    return f"{found.n_judged:,} of {counted(found.n_units, 'unit')} judged, {found.n_not_judged:,} not."


def left_out_sentences(found: JudgedTask) -> Iterator[str]:
    """What of the judgements or of the units does not count, and figures that are undefined, with the reason."""
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


def other_task_sentences(judge: JudgeAgreement) -> Iterator[str]:
    """How many judgements are of tasks that the export has no file of."""
    for task, count in judge.other_tasks.items():
        yield f"{judge.model}: {counted(count, 'judgement')} of {task}, which has no file in the export."


def conclusion_sentences(found: JudgedTask) -> Iterator[str]:
    """What may be concluded of the judge on each label."""
    for label, figures in found.labels.items():
        yield f"{label}: {conclusion(figures.alt_test)}"


def conclusion(found: AltTest) -> str:
    """What may be concluded of the judge on one label."""
    counting = found.counting
    beaten = [each.annotator for each in counting if each.won_by_record]
    rest = [each.annotator for each in counting if not each.won_by_record]
    margin = f"ε = {decimal(found.epsilon)}"
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


def difference_sentences(differences: Sequence[JudgeDifference]) -> Iterator[str]:
    """Which judge agrees with the jury more often than another, and of which pairs no difference is shown."""
    for each in differences:
        if each.differs:
            ahead, behind = (each.model_a, each.model_b)[:: 1 if each.difference > 0 else -1]
            shares = (each.agreement_a, each.agreement_b)[:: 1 if each.difference > 0 else -1]
            yield (
                f"{each.label}: {ahead} agrees with the jury more often than {behind}, on {percent(shares[0])} against "
                f"{percent(shares[1])} of {counted(each.n_units, 'unit')} (difference {_points(each)}, p "
                f"{each.p_holm:.3f} after Holm)."
            )
    same = [
        f"{each.label} ({each.model_a}, {each.model_b}: {_points(each)})" for each in differences if not each.differs
    ]
    if same:
        yield f"No difference between judges is shown: {'; '.join(same)}."


def _points(found: JudgeDifference) -> str:
    """The difference with its interval."""
    if found.interval is None:
        return f"{abs(found.difference):.2f}"
    low, high = found.interval if found.difference > 0 else (-found.interval[1], -found.interval[0])
    return f"{abs(found.difference):.2f} [{low:.2f}, {high:.2f}]"
