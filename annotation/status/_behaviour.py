"""What in somebody's answers no attentive person's look like: too fast, many at once, the same whatever the case.

Each rule says how it decides, and how often it is wrong stands in annotation/contracts/status.md#what-needs-a-look.
Nothing here knows a text: a speed is compared with what the caller knows of the texts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from math import exp, lgamma
from typing import NamedTuple

from annotation.labels import LABELS, TaskName
from annotation.status._pace import Submission
from annotation.units import CHARACTERS_A_MINUTE, CHARACTERS_A_MINUTE_OF_ALPHABETS, times_taken

_AT_ONCE = timedelta(seconds=1)
"""An answer that follows the one before sooner was not given by reading: the page alone takes .4 s to the next record,
and each question a key."""
_FEWEST_AT_ONCE = 5
_WINDOW, _FAST_OF_WINDOW = 30, 25
_TIMES_AS_FAST = 6
"""Nobody takes in a text so many times as fast as the mean reader."""
_LONGEST_READ = 30.0
"""Seconds of a mean reader after which the rest of a text may be skipped."""
_SECONDS_A_QUESTION = 0.3
_FEWEST_ALIKE, _FEWEST_OF_OTHERS = 20, 10
_SHARE_ALIKE, _MOST_OF_OTHERS = 0.95, 0.8
_CHANCE = 0.01


class Alike(NamedTuple):
    """Somebody's answers are nearly all the same, and other people's are not."""

    user_id: str
    """Whose."""
    answer: frozenset[str]
    """The labels that she says yes to."""
    same: int
    """Her answers that are so."""
    of: int
    """All of hers."""
    others: float
    """Share of such answers among the others'."""


def at_once(given: Iterable[Submission]) -> Counter[str]:
    """How many of one person's answers came in bulk, by dataset: each within a second of another, five or more.

    Datasets with fewer are missing.
    """
    in_order = sorted(given)
    near = [after.at - before.at < _AT_ONCE for before, after in pairwise(in_order)]
    beside = [any(pair) for pair in zip([False, *near], [*near, False], strict=True)]
    counts = Counter(each.dataset_id for each, is_near in zip(in_order, beside, strict=True) if is_near)
    return Counter({dataset_id: count for dataset_id, count in counts.items() if count >= _FEWEST_AT_ONCE})


def too_fast(given: Iterable[Submission], floors: Mapping[str, float]) -> Counter[str]:
    """How many of one person's answers stand in a row of 30 of which 25 took less than their dataset's floor.

    By dataset; datasets without such a row are missing. `floors` are in seconds, by dataset id. An answer took the
    time since the same person's answer before, in whichever dataset, also where that one was changed later. Not timed
    are those that follow a pause, came in bulk, or were changed later, as drafts and corrections are.
    """
    timed: defaultdict[str, list[bool]] = defaultdict(list)
    for each, taken in times_taken(given):
        if each.is_first and taken is not None and taken >= _AT_ONCE.total_seconds():
            timed[each.dataset_id].append(taken < floors.get(each.dataset_id, 0.0))
    counts = Counter({dataset_id: _in_fast_rows(fast) for dataset_id, fast in timed.items()})
    return Counter({dataset_id: count for dataset_id, count in counts.items() if count})


def _in_fast_rows(fast: Sequence[bool]) -> int:
    """How many of the fast ones stand in a row of 30 of which 25 are."""
    inside = [False] * len(fast)
    for begin in range(len(fast) - _WINDOW + 1):
        if sum(fast[begin : begin + _WINDOW]) >= _FAST_OF_WINDOW:
            inside[begin : begin + _WINDOW] = [True] * _WINDOW
    return sum(is_fast and is_inside for is_fast, is_inside in zip(fast, inside, strict=True))


def floor(task: TaskName, locale: str, characters: float) -> float:
    """Seconds below which nobody has read a text of so many characters and answered the task's questions about it.

    The text that decides is taken in at most six times as fast as by the mean reader of the language, of a longer one
    only what she reads in 30 seconds; each question takes a key.
    """
    reading = characters * 60 / CHARACTERS_A_MINUTE.get(locale, CHARACTERS_A_MINUTE_OF_ALPHABETS)
    return min(reading, _LONGEST_READ) / _TIMES_AS_FAST + _SECONDS_A_QUESTION * len(LABELS[task])


def highest_floor(task: TaskName) -> float:
    """The floor of a task's longest texts, in seconds."""
    return floor(task, "en", 1e9)


def alike(answers: Mapping[str, Sequence[tuple[str, frozenset[str]]]], comparisons: int) -> list[Alike]:
    """Who says nearly the same everywhere while others do not; `answers` are of one task and language.

    For each person her answers: the record's id and the labels that she said yes to. Named is whoever gave at least 20
    of which 95 % are the same, where at most 80 % of the others' are so and the chance of as many, given the others',
    is below 1 % divided by the number of such comparisons: a rule and no p-value, since others answer the same records.
    A record's passages count as one draw, since they resemble each other. Whoever has nobody to be compared with is not
    named.
    """
    counts = {user_id: Counter(answer for _, answer in own) for user_id, own in answers.items()}
    total = sum(counts.values(), Counter[frozenset[str]]())
    found = []
    for user_id, own in answers.items():
        answer, same = counts[user_id].most_common(1)[0] if own else (frozenset[str](), 0)
        share = (total[answer] - same) / max(1, total.total() - len(own))
        if len(own) < _FEWEST_ALIKE or same < _SHARE_ALIKE * len(own) or share > _MOST_OF_OTHERS:
            continue
        others = [each for other, theirs in answers.items() if other != user_id for each in _by_record(theirs)]
        hers, said = (
            Counter(all(each == answer for each in record) for record in records)
            for records in (_by_record(own), others)
        )
        chance = _chance_of(hers[True], hers.total(), said[True], said.total())
        if len(others) >= _FEWEST_OF_OTHERS and chance * comparisons < _CHANCE:
            found.append(Alike(user_id, answer, same, len(own), share))
    return found


def _by_record(answers: Iterable[tuple[str, frozenset[str]]]) -> list[list[frozenset[str]]]:
    """One person's answers, those to passages of one record together."""
    records: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for record, answer in answers:
        records[record].append(answer)
    return list(records.values())


def _chance_of(hits: int, of: int, others_hits: int, others_of: int) -> float:
    """The chance of so many hits or more where others had so many: the tail of a beta-binomial from a flat start."""
    begin_a, begin_b = others_hits + 1, others_of - others_hits + 1
    return sum(
        exp(_log_binomial(of, k) + _log_beta(begin_a + k, begin_b + of - k) - _log_beta(begin_a, begin_b))
        for k in range(hits, of + 1)
    )


def _log_binomial(n: int, k: int) -> float:
    """The logarithm of n over k."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)
