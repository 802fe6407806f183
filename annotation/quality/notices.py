"""What needs a look, in plain sentences that say what was seen, not why.

How often each is wrong: annotation/contracts/status.md#what-needs-a-look.
"""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from annotation.argilla.client import Argilla
from annotation.quality.schema import AnnotatorStatus, DatasetStatus, Notice, Question
from annotation.quality.scores import AnnotatorScores
from annotation.quality.submissions import Submission, at_once, floor, highest_floor, too_fast
from annotation.quality.tally import Tally, WatchedDataset
from pipeline.core.terminal import counted

_TAG = re.compile(r"<[^>]*>")
_ENOUGH_JUDGED, _UNBALANCED = 20, 0.2  # Submissions, and by how much a share of them may be another than everybody's
_SAMPLE = 100  # records whose texts are read where somebody may have been too fast


def notices_of_datasets(watched: Iterable[WatchedDataset], datasets: Sequence[DatasetStatus]) -> Iterator[Notice]:
    for each in watched:
        if not each.dataset.is_ready:
            yield Notice(
                kind="unfinished",
                text=f"The dataset '{each.dataset.workspace}/{each.dataset.name}' is not finished, so nobody can work "
                "in it. Run `citejury annotation setup`.",
            )
    empty = [each for each in datasets if not each.records + each.apart and not each.is_superseded]
    if empty and len(empty) == len(datasets):
        yield Notice(kind="empty", text="No dataset holds a record yet. Run `citejury annotation push RECORDS.jsonl`.")
    elif empty:
        yield Notice(
            kind="empty",
            text=f"These datasets hold no record, so there is nothing to do in them: {', '.join(map(_name, empty))}. "
            "Push records for them, or leave their round, language or task out of what people are sent.",
        )
    stuck = [(each, each.unreachable) for each in datasets if each.unreachable]
    if stuck:
        yield Notice(
            kind="unreachable",
            text="Some records cannot reach their overlap: too few annotators are left who have neither submitted nor "
            f"discarded them ({_counts_by_name(stuck)}). Add annotators with `citejury annotation setup`.",
        )
    closed = [(each, each.closed_early) for each in datasets if each.closed_early]
    if closed:
        yield Notice(
            kind="closed_early",
            text="Argilla hands some records out to nobody, though fewer annotators submitted them than their dataset "
            f"waits for ({_counts_by_name(closed)}). They were done when the overlap was smaller.",
        )


def notices_of_people(
    tallies: Sequence[Tally], names: Mapping[str, str], scores: Iterable[AnnotatorScores], argilla: Argilla
) -> Iterator[Notice]:
    """Each kind in one notice; some texts are read where somebody may be too fast."""
    by_person: defaultdict[str, list[Submission]] = defaultdict(list)
    for tally in tallies:
        for each in tally.submissions:
            by_person[each.user_id].append(each)
    here = {tally.id: tally for tally in tallies}
    bulk = {names.get(user_id, user_id): counts for user_id, found in by_person.items() if (counts := at_once(found))}
    if bulk:
        yield Notice(
            kind="at_once",
            text=f"Answers came many at once, each within a second of another: {_by_person(bulk, here)}. Nobody reads "
            "so fast; a script sends so, and so does a browser whose link was down for a while.",
            annotators=tuple(sorted(bulk)),
        )
    floors = {tally.id: highest_floor(tally.watched.dataset.task) for tally in tallies}
    if any(too_fast(found, floors) for found in by_person.values()):
        floors = {tally.id: _floor_of(tally, argilla) for tally in tallies}
    fast = {
        names.get(user_id, user_id): counts
        for user_id, found in by_person.items()
        if (counts := too_fast(found, floors))
    }
    if fast:
        limits = ", ".join(
            f"{here[each].watched.dataset.name} {floors[each]:.1f} s"
            for each in floors
            if any(each in counts for counts in fast.values())
        )
        yield Notice(
            kind="too_fast",
            text=f"Answers came faster than their texts can be read: {_by_person(fast, here)}; 25 of 30 in a row took "
            f"less than the least time ({limits}). Talk to them, and look at some of these answers.",
            annotators=tuple(sorted(fast)),
        )
    told = {each.annotator: each.notices for each in scores if each.notices}
    if told:
        said = "; ".join(f"{name} {notice}" for name, found in sorted(told.items()) for notice in found)
        yield Notice(kind="controls", text=f"Controls show: {said}.", annotators=tuple(sorted(told)))


def notices_of_practice(tallies: Iterable[Tally], names: Mapping[str, str]) -> Iterator[Notice]:
    waiting = [tally for tally in tallies if tally.kept_out]
    if not waiting:
        return
    total = sum(tally.kept_out for tally in waiting)
    parts = "; ".join(
        f"{tally.kept_out} in {tally.watched.dataset.workspace}/{tally.watched.dataset.name} for "
        + " or ".join(
            f"{name} ({tally.watched.kept_out[user_id]})"
            for name, user_id in sorted((names.get(user_id, user_id), user_id) for user_id in tally.waits_for)
        )
        for tally in waiting
    )
    people = tuple(sorted({names.get(user_id, user_id) for tally in waiting for user_id in tally.waits_for}))
    yield Notice(
        kind="practice",
        text=f"{counted(total, 'submission')} wait{'s' * (total == 1)} for people who have not passed the practice: "
        f"{parts}. Ask them to practise, or open the list to somebody with `citejury annotation practice --open NAME`.",
        annotators=people,
    )


def notices_of_questions(questions: Sequence[Question]) -> Iterator[Notice]:
    waiting = [each for each in questions if not each.reply]
    if waiting:
        yield Notice(
            kind="questions",
            text=f"{counted(len(waiting), 'question')} wait{'s' * (len(waiting) == 1)} for your reply. Answer with "
            f'`citejury annotation reply {waiting[0].id} "…"`.',
            annotators=tuple(sorted({each.annotator for each in waiting})),
        )


def notices_of_balance(people: Sequence[AnnotatorStatus]) -> Iterator[Notice]:
    """Whose share of some model is far from everybody's."""
    together = sum((Counter(each.by_model) for each in people), Counter[str]())
    unlike: dict[str, str] = {}
    for each in people:
        judged = sum(each.by_model.values())
        for model, count in together.items() if judged >= _ENOUGH_JUDGED else ():
            own, usual = each.by_model.get(model, 0) / judged, count / together.total()
            if abs(own - usual) > _UNBALANCED:
                unlike.setdefault(each.annotator, f"{own:.0%} of {each.annotator}'s are by {model}, {usual:.0%} of all")
    if unlike:
        yield Notice(
            kind="unbalanced",
            text=f"People did not judge the same models: {'; '.join(unlike.values())}. What people make differ then "
            "looks like what models do. Let everybody judge some answers of each.",
            annotators=tuple(sorted(unlike)),
        )


def _floor_of(tally: Tally, argilla: Argilla) -> float:
    """By the median of the texts of its first records."""
    dataset = tally.watched.dataset
    _, page = next(argilla.record_pages(dataset.id, include=(), page_size=_SAMPLE), (0, []))
    lengths = [
        len(html.unescape(_TAG.sub("", each["fields"].get("chunk") or each["fields"].get("answer") or "")))
        for each in page
    ]
    return floor(dataset.task, dataset.locale, median(lengths) if lengths else 0)


def _by_person(found: Mapping[str, Counter[str]], here: Mapping[str, Tally]) -> str:
    return ", ".join(
        f"{name} {counts.total():,} ({', '.join(here[each].watched.dataset.name for each in here if each in counts)})"
        for name, counts in sorted(found.items())
    )


def _counts_by_name(found: Iterable[tuple[DatasetStatus, int]]) -> str:
    return ", ".join(f"{_name(dataset)}: {count}" for dataset, count in found)


def _name(dataset: DatasetStatus) -> str:
    return f"{dataset.workspace}/{dataset.dataset}"
