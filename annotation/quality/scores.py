"""What controls and repeats show about each annotator: how often they are right, how often they say the same again.

Source: annotation/contracts/controls.md#scores.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.units import Answer, Unit
from pipeline.core.schema import Frozen

_Z = 1.959963984540054  # of 95 %, two-sided
Habit = Literal["same_always", "same_label", "many_wrong"]
_SELDOM = 0.1  # share of answers that may differ from the usual one and are still called the same


class Share(Frozen):
    """A share with its interval of 95 % (Wilson 1927), which takes the answers to be independent."""

    count: int
    """How many."""
    of: int
    """Of how many; at least 1."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""

    @property
    def value(self) -> float:
        return self.count / self.of


class Notice(Frozen):
    """What is said of one person because of her answers to controls."""

    habit: Habit
    """`same_always`: the same to each label whatever is shown; `same_label`: the same to one label; `many_wrong`: more
    wrong answers than one in five, beyond chance, and not just always the same ones."""
    task: TaskName | None
    """The task of the label; None where it is about all her controls."""
    label: str
    """The label; empty where it is about all her controls."""
    count: int
    """Answers that differ from the usual one, or wrong ones."""
    of: int
    """Answers to controls that were looked at."""

    def __str__(self) -> str:
        if self.habit == "many_wrong":
            return f"answers controls wrongly more often than one time in five: {self.count:,} of {self.of:,} answers"
        to = f" to `{self.label}` ({self.task})" if self.label else ""
        return f"gives the same answer{to} whatever is shown: {self.count:,} of {self.of:,} answers to controls differ"


class Scores(Frozen):
    """How one person answers what is known, to one label or to all."""

    sensitivity: Share | None
    """Controls with the known answer yes to which she said yes; None without any."""
    specificity: Share | None
    """Controls with the known answer no to which she said no; None without any."""
    consistency: Share | None
    """Repeats on which she said what she had said before; None without any."""


class AnnotatorScores(Frozen):
    """What controls and repeats tell about one person."""

    annotator: str
    """Who: her user name, or her user id where that is not known."""
    controls: int
    """Controls that she submitted."""
    discarded: int
    """Controls that she discarded."""
    repeats: int
    """Repeats that she submitted, and whose first submission still stands."""
    together: Scores
    """Over all labels of all tasks."""
    labels: Mapping[TaskName, Mapping[str, Scores]]
    """By task and label, in their order; labels without any answer that counts are left out."""
    notices: tuple[Notice, ...]
    """What is to be said of her; empty where nothing is."""


class ControlAnswer(NamedTuple):
    annotator: str
    task: TaskName
    label: str
    kind: str  # how the control came about; `repeat` for a repeat
    record_id: str
    known: bool  # the known answer; of a repeat, what they had said before, and yes to a label of another scale
    given: bool  # to a label of another scale, whether it is the known answer


class ControlTally:
    def __init__(self, task: TaskName) -> None:
        self.task = task
        self.discarded: Counter[str] = Counter()  # Controls that each person discarded, by user id
        self._special: list[Unit] = []
        self._answers: dict[str, tuple[Answer, ...]] = {}

    def add(self, unit: Unit) -> None:
        """Of units that are neither control nor repeat only the answers are kept, for their repeats."""
        if unit.assignment.purpose == "control":
            self.discarded.update(each.user_id for each in unit.answers if each.status == "discarded")
        if unit.assignment.purpose in {"control", "repeat"}:
            self._special.append(unit)
        elif unit.answers:
            self._answers[unit.external_id] = unit.answers

    def answers(self) -> list[ControlAnswer]:
        """In order of arrival, without labels of unknown answer and repeats whose first submission was withdrawn."""
        return [
            ControlAnswer(
                each.user_id,
                self.task,
                label,
                purpose.kind or purpose.purpose,
                unit.record_id,
                known if isinstance(known, bool) else True,
                given if isinstance(given, bool) else given == known,
            )
            for unit in self._special
            for purpose in [unit.assignment]
            for each in unit.answers
            if each.status == "submitted"
            for label, known in self._known(unit, each.user_id).items()
            if (given := each.labels.get(label)) is not None
        ]

    def _known(self, unit: Unit, user_id: str) -> Mapping[str, bool | str]:
        if unit.assignment.purpose == "control":
            return unit.assignment.answers
        earlier = self._answers.get(unit.assignment.repeats, ())
        return next((each.labels for each in earlier if each.user_id == user_id and each.status == "submitted"), {})


def score_tallies(tallies: Iterable[ControlTally], names: Mapping[str, str]) -> tuple[AnnotatorScores, ...]:
    """In the order of their names, which `names` gives by user id."""
    answers: list[ControlAnswer] = []
    discarded: Counter[str] = Counter()
    for tally in tallies:
        answers += tally.answers()
        discarded.update(tally.discarded)
    named = (each._replace(annotator=names.get(each.annotator, each.annotator)) for each in answers)
    return score_answers(named, {names.get(who, who): count for who, count in discarded.items()})


def score_answers(
    answers: Iterable[ControlAnswer], discarded: Mapping[str, int] | None = None
) -> tuple[AnnotatorScores, ...]:
    """By name; `discarded` is how many controls each discarded."""
    by_annotator: defaultdict[str, list[ControlAnswer]] = defaultdict(list)
    for each in answers:
        by_annotator[each.annotator].append(each)
    gone = discarded or {}
    return tuple(_scores_of(who, by_annotator[who], gone.get(who, 0)) for who in sorted({*by_annotator, *gone}))


def _by_label(answers: Iterable[ControlAnswer]) -> dict[tuple[TaskName, str], list[ControlAnswer]]:
    found: defaultdict[tuple[TaskName, str], list[ControlAnswer]] = defaultdict(list)
    for each in answers:
        found[each.task, each.label].append(each)
    return found


def _scores_of(annotator: str, answers: Sequence[ControlAnswer], discarded: int) -> AnnotatorScores:
    repeats = [each for each in answers if each.kind == "repeat"]
    controls = [each for each in answers if each.kind != "repeat"]
    by_label = _by_label(answers)
    return AnnotatorScores(
        annotator=annotator,
        controls=len({each.record_id for each in controls}),
        discarded=discarded,
        repeats=len({each.record_id for each in repeats}),
        together=_scored(answers),
        labels={
            task: {label: _scored(by_label[task, label]) for label in LABELS[task] if (task, label) in by_label}
            for task in TASKS
            if any(known == task for known, _ in by_label)
        },
        notices=_notices(controls),
    )


def _scored(answers: Sequence[ControlAnswer]) -> Scores:
    controls = [each for each in answers if each.kind != "repeat"]
    return Scores(
        sensitivity=_right([each for each in controls if each.known]),
        specificity=_right([each for each in controls if not each.known]),
        consistency=_right([each for each in answers if each.kind == "repeat"]),
    )


def _right(answers: Sequence[ControlAnswer]) -> Share | None:
    return share(sum(each.known == each.given for each in answers), len(answers)) if answers else None


def share(count: int, of: int) -> Share:
    """With its interval by Wilson's score (1927); `of` is at least 1."""
    middle = (count + _Z**2 / 2) / (of + _Z**2)
    half = _Z / (of + _Z**2) * math.sqrt(count * (of - count) / of + _Z**2 / 4)
    return Share(count=count, of=of, low=max(0.0, middle - half), high=min(1.0, middle + half))


def _notices(controls: Sequence[ControlAnswer]) -> tuple[Notice, ...]:
    by_label = _by_label(controls)
    both = [found for found in by_label.values() if _rarer(each.known for each in found)]
    rare = sum(_rarer(each.known for each in found) for found in both)
    differing, of = sum(_rarer(each.given for each in found) for found in both), sum(map(len, both))
    by_control: defaultdict[str, list[bool]] = defaultdict(list)
    for each in controls:
        by_control[each.record_id].append(each.known != each.given)
    notices: list[Notice] = []
    # Of so many known answers of the rarer kind, to all labels or to one, the given ones can be called always the same.
    if rare >= 8 and differing <= _SELDOM * of:
        notices.append(Notice(habit="same_always", task=None, label="", count=differing, of=of))
    else:
        notices += [
            Notice(habit="same_label", task=task, label=label, count=same, of=len(found))
            for (task, label), found in sorted(by_label.items())
            if _rarer(each.known for each in found) >= 5
            and (same := _rarer(each.given for each in found)) <= _SELDOM * len(found)
        ]
    # As if the answers to one control were all right or all wrong: a hard one brings several errors at once.
    wrong = math.floor(sum(sum(found) / len(found) for found in by_control.values()))
    is_said = any(notice.habit == "same_always" for notice in notices)
    if not is_said and _tail(wrong, len(by_control), 0.2) < 0.01:  # nobody is reproached with one wrong in five
        errors = sum(map(sum, by_control.values()))
        notices.append(Notice(habit="many_wrong", task=None, label="", count=errors, of=len(controls)))
    return tuple(notices)


def _rarer(values: Iterable[bool]) -> int:
    found = list(values)
    return min(sum(found), len(found) - sum(found))


def _tail(count: int, of: int, probability: float) -> float:
    """The probability of so many of so many or more, where each has the probability."""
    logs = (
        math.lgamma(of + 1)
        - math.lgamma(k + 1)
        - math.lgamma(of - k + 1)
        + k * math.log(probability)
        + (of - k) * math.log1p(-probability)
        for k in range(count, of + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))
