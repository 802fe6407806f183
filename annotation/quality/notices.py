"""What needs a look, in plain sentences that say what was seen, not why.

How often each is wrong: annotation/contracts/status.md#what-needs-a-look.
"""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from annotation.argilla.client import Argilla
from annotation.quality.schema import AnnotatorStatus, DatasetStatus, Kind, Notice, Question, Status
from annotation.quality.scores import AnnotatorScores
from annotation.quality.submissions import Submission, at_once, floor, highest_floor, too_fast
from annotation.quality.tally import Tally, WatchedDataset
from pipeline.core.sentences import packaged_table
from pipeline.core.terminal import counted

_TAG = re.compile(r"<[^>]*>")
_ENOUGH_JUDGED, _UNBALANCED = 20, 0.2  # Submissions, and by how much a share of them may be another than everybody's
_BEGUN, _MUCH_LEFT = 0.1, 10  # nobody is behind before the others have begun, or with few records left
_SAMPLE = 100  # records whose texts are read where somebody may have been too fast
_SENTENCES = packaged_table(__file__)
_COUNTED: tuple[Kind, ...] = ("unreachable", "closed_early", "split")  # fields of a dataset's status, too


def _notice(kind: Kind, annotators: Iterable[str] = (), *, told: str = "", **values: object) -> Notice:
    """`told` names its sentences where they are not those of the kind."""
    line, text = (_SENTENCES[told or kind][name].format(**values) for name in ("line", "text"))
    return Notice(kind=kind, line=line, text=text, annotators=tuple(annotators))


def of_datasets(watched: Iterable[WatchedDataset], status: Status) -> Iterator[Notice]:
    if unfinished := [each.dataset for each in watched if not each.dataset.is_ready]:
        named = ", ".join(f"'{each.workspace}/{each.name}'" for each in unfinished)
        yield _notice("unfinished", lists=counted(len(unfinished), "list"), named=named)
    datasets = status.datasets
    empty = [each for each in datasets if not each.records + each.apart and not each.is_superseded]
    if empty and len(empty) == len(datasets):
        yield _notice("empty", told="nothing_pushed")
    elif empty:
        lists, named = counted(len(datasets), "list"), ", ".join(map(_name, empty))
        yield _notice("empty", count=len(empty), lists=lists, named=named)
    for kind in _COUNTED:
        if found := [(_name(each), count) for each in datasets if (count := getattr(each, kind))]:
            named = ", ".join(f"{name}: {count}" for name, count in found)
            yield _notice(kind, records=counted(sum(count for _, count in found), "record"), named=named)
    if status.unreached:
        yield _notice("unreached", count=status.unreached, answers=counted(status.answers, "answer"))


def of_people(
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
        yield _notice("at_once", sorted(bulk), totals=_totals(bulk), named=_by_person(bulk, here))
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
        yield _notice("too_fast", sorted(fast), totals=_totals(fast), named=_by_person(fast, here), limits=limits)
    told = {each.annotator: each.notices for each in scores if each.notices}
    if told:
        said = "; ".join(f"{name} {notice}" for name, found in sorted(told.items()) for notice in found)
        yield _notice("controls", sorted(told), people=", ".join(sorted(told)), said=said)


def of_practice(tallies: Iterable[Tally], names: Mapping[str, str]) -> Iterator[Notice]:
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
    told = {"answers": counted(total, "answer"), "waiting": _waiting(total, "submission"), "parts": parts}
    yield _notice("practice", people, people=", ".join(people), **told)


def of_questions(questions: Sequence[Question]) -> Iterator[Notice]:
    if waiting := [each for each in questions if not each.reply]:
        told = {"questions": counted(len(waiting), "question"), "waiting": _waiting(len(waiting), "question")}
        yield _notice("questions", sorted({each.annotator for each in waiting}), id=waiting[0].id, **told)


def of_progress(people: Iterable[AnnotatorStatus]) -> Iterator[Notice]:
    """Who has done less than half the share of their work that the others have, by the median, done of theirs."""
    work = {each.annotator: each for each in people if each.is_member and each.done + each.left}
    shares = {name: each.done / (each.done + each.left) for name, each in work.items()}
    behind = {}
    for name, own in shares.items():
        usual = median([share for other, share in shares.items() if other != name] or [0.0])
        if own < usual / 2 and usual >= _BEGUN and work[name].left >= _MUCH_LEFT:
            behind[name] = f"{name} {own:.0%} of their work, the others {usual:.0%}"
    if behind:
        done = ", ".join(f"{name} ({shares[name]:.0%} done)" for name in behind)
        yield _notice("behind", behind, shares=done, named="; ".join(behind.values()))


def of_balance(people: Sequence[AnnotatorStatus]) -> Iterator[Notice]:
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
        yield _notice("unbalanced", sorted(unlike), people=", ".join(unlike), named=named)


def _waiting(count: int, what: str) -> str:
    return f"{counted(count, what)} wait{'s' * (count == 1)}"


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


def _name(dataset: DatasetStatus) -> str:
    return f"{dataset.workspace}/{dataset.dataset}"
