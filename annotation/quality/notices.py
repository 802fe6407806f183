"""What needs a look, in plain sentences that say what was seen, not why.

How often each is wrong: annotation/contracts/status.md#what-needs-a-look.
"""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from annotation.argilla.client import Argilla
from annotation.quality.schema import AnnotatorStatus, DatasetStatus, Notice, Question, Status
from annotation.quality.scores import AnnotatorScores
from annotation.quality.submissions import Submission, at_once, floor, highest_floor, too_fast
from annotation.quality.tally import Tally, WatchedDataset
from pipeline.core.terminal import counted

_TAG = re.compile(r"<[^>]*>")
_ENOUGH_JUDGED, _UNBALANCED = 20, 0.2  # Submissions, and by how much a share of them may be another than everybody's
_BEGUN, _MUCH_LEFT = 0.1, 10  # nobody is behind before the others have begun, or with few records left
_SAMPLE = 100  # records whose texts are read where somebody may have been too fast


def notices_of_datasets(watched: Iterable[WatchedDataset], status: Status) -> Iterator[Notice]:
    unfinished = [each.dataset for each in watched if not each.dataset.is_ready]
    if unfinished:
        named = ", ".join(f"'{each.workspace}/{each.name}'" for each in unfinished)
        yield Notice(
            kind="unfinished",
            line=f"{counted(len(unfinished), 'list')} not finished, nobody can work there: citejury annotation setup",
            text=f"Not finished, so that nobody can work there: {named}. Run `citejury annotation setup`.",
        )
    datasets = status.datasets
    empty = [each for each in datasets if not each.records + each.apart and not each.is_superseded]
    if empty and len(empty) == len(datasets):
        yield Notice(
            kind="empty",
            line="no list holds a record yet: citejury annotation push RECORDS.jsonl",
            text="No dataset holds a record yet. Run `citejury annotation push RECORDS.jsonl`.",
        )
    elif empty:
        yield Notice(
            kind="empty",
            line=f"{len(empty)} of {counted(len(datasets), 'list')} without a record",
            text=f"These datasets hold no record, so there is nothing to do in them: {', '.join(map(_name, empty))}. "
            "Push records for them, or leave their round, language or task out of what people are sent.",
        )
    stuck, total = _counts_by_name((each, each.unreachable) for each in datasets)
    if stuck:
        yield Notice(
            kind="unreachable",
            line=f"{counted(total, 'record')} with too few people left to answer: citejury annotation setup",
            text="Some records cannot get all their answers: too few annotators are left who have neither submitted "
            f"nor discarded them ({stuck}). Add annotators with `citejury annotation setup`.",
        )
    closed, total = _counts_by_name((each, each.closed_early) for each in datasets)
    if closed:
        yield Notice(
            kind="closed_early",
            line=f"{counted(total, 'record')} handed out to nobody, though answers are missing",
            text="Argilla hands some records out to nobody, though fewer annotators submitted them than their dataset "
            f"waits for ({closed}). They were done when the overlap was smaller.",
        )
    split, total = _counts_by_name((each, each.split) for each in datasets)
    if split:
        yield Notice(
            kind="split",
            line=f"{counted(total, 'record')} with split labels: citejury exports adjudicate push --one-more",
            text=f"On some records annotators differ in a label ({split}). Give them to one annotator more with "
            "`citejury exports adjudicate push --one-more`, or export and put them before adjudicators with `citejury "
            "exports adjudicate push EXPORT`.",
        )
    if status.unreached:
        yield Notice(
            kind="unreached",
            line=f"{status.unreached:,} of {counted(status.answers, 'answer')} with sources that were not reached",
            text=f"Of {status.unreached:,} of {counted(status.answers, 'answer')} some sources were not reached, and "
            "nobody sees their pages. `citejury pipeline sources` tries them again; push what it finds.",
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
            line=f"many answers within a second: {_totals(bulk)}",
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
            line=f"faster than anybody reads: {_totals(fast)}",
            text=f"Answers came faster than their texts can be read: {_by_person(fast, here)}; 25 of 30 in a row took "
            f"less than the least time ({limits}). Talk to them, and look at some of these answers.",
            annotators=tuple(sorted(fast)),
        )
    told = {each.annotator: each.notices for each in scores if each.notices}
    if told:
        said = "; ".join(f"{name} {notice}" for name, found in sorted(told.items()) for notice in found)
        line = f"controls answered oddly by {', '.join(sorted(told))}"
        yield Notice(kind="controls", line=line, text=f"Controls show: {said}.", annotators=tuple(sorted(told)))


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
    people = sorted({names.get(user_id, user_id) for tally in waiting for user_id in tally.waits_for})
    yield Notice(
        kind="practice",
        line=f"{counted(total, 'answer')} missing of people who have not passed the practice: {', '.join(people)}",
        text=f"{counted(total, 'submission')} wait{'s' * (total == 1)} for people who have not passed the practice: "
        f"{parts}. Ask them to practise, or open the list to somebody with `citejury annotation practice --open NAME`.",
        annotators=tuple(people),
    )


def notices_of_questions(questions: Sequence[Question]) -> Iterator[Notice]:
    waiting = [each for each in questions if not each.reply]
    if waiting:
        yield Notice(
            kind="questions",
            line=f"{counted(len(waiting), 'question')} without your reply: citejury annotation reply",
            text=f"{counted(len(waiting), 'question')} wait{'s' * (len(waiting) == 1)} for your reply. Answer with "
            f'`citejury annotation reply {waiting[0].id} "…"`.',
            annotators=tuple(sorted({each.annotator for each in waiting})),
        )


def notices_of_progress(people: Iterable[AnnotatorStatus]) -> Iterator[Notice]:
    """Who has done less than half the share of their work that the others have, by the median, done of theirs."""
    work = {each.annotator: each for each in people if each.is_member and each.done + each.left}
    shares = {name: each.done / (each.done + each.left) for name, each in work.items()}
    behind = {}
    for name, own in shares.items():
        usual = median([share for other, share in shares.items() if other != name] or [0.0])
        if own < usual / 2 and usual >= _BEGUN and work[name].left >= _MUCH_LEFT:
            behind[name] = f"{name} {own:.0%} of their work, the others {usual:.0%}"
    if behind:
        yield Notice(
            kind="behind",
            line=f"behind the others: {', '.join(f'{name} ({shares[name]:.0%} done)' for name in behind)}",
            text=f"People are behind the others; done are: {'; '.join(behind.values())}. Ask them, or let others take "
            "over.",
            annotators=tuple(behind),
        )


def notices_of_balance(people: Sequence[AnnotatorStatus]) -> Iterator[Notice]:
    """Whose share of some model is far from everybody's."""
    together = sum((Counter(each.by_model) for each in people), Counter[str]())
    unlike: dict[str, float] = {}
    for each in people:
        judged = sum(each.by_model.values())
        for model, count in together.items() if judged >= _ENOUGH_JUDGED else ():
            own, usual = each.by_model.get(model, 0) / judged, count / together.total()
            if abs(own - usual) > _UNBALANCED:
                unlike[each.annotator] = max(unlike.get(each.annotator, 0.0), abs(own - usual))
    if unlike:  # without names of models: the page may be shown
        named = ", ".join(f"{name} (up to {share * 100:.0f} points)" for name, share in unlike.items())
        yield Notice(
            kind="unbalanced",
            line=f"other models judged than by the rest: {', '.join(unlike)}",
            text=f"People did not judge the same models; shares of one model that differ from everybody's: {named}. "
            "What people make differ then looks like what models do. Let everybody judge some answers of each; "
            "`citejury annotation status --all` has the table.",
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


def _totals(found: Mapping[str, Counter[str]]) -> str:
    return ", ".join(f"{name} {counts.total():,}" for name, counts in sorted(found.items()))


def _counts_by_name(counts: Iterable[tuple[DatasetStatus, int]]) -> tuple[str, int]:
    """In words where there is any, and all together."""
    found = [each for each in counts if each[1]]
    return ", ".join(f"{_name(dataset)}: {count}" for dataset, count in found), sum(count for _, count in found)


def _name(dataset: DatasetStatus) -> str:
    return f"{dataset.workspace}/{dataset.dataset}"
