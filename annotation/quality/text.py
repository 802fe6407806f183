"""The status for people: one screen of a terminal, all of it, and an HTML page.

Nothing of names and notes reaches the terminal but characters that can be seen, and in the page they are only text.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from textwrap import wrap

from markupsafe import Markup
from rich.cells import cell_len

from annotation.argilla.pages import page_policy, render
from annotation.quality.schema import AnnotatorStatus, DatasetStatus, Question, Status
from annotation.quality.scores import AnnotatorScores, Share
from pipeline.core.files import output_errors, staged_file
from pipeline.core.tables import Table, cut_text
from pipeline.core.terminal import counted, printable

_NOTHING = "-"
_WIDTH, _HEIGHT = 80, 40
_FEW = 10  # how many half-done answers are named; the JSON has all of them
PERSON_HEAD = ("person", "done", "queue", "drafts", "discarded", "24 h", "an hour", "slips")
_MEANINGS = {
    "slips": "Slips: answers that break a rule between labels. An hour: records in an hour of one person's work.",
    "controls": "Sensitivity: of known yeses, how many they say yes to; specificity: of known noes, no; "
    "self-consistency: of answers to repeats, how many are what they said before. In brackets intervals of 95% "
    "(Wilson), as if answers were independent.",
}


def status_lines(status: Status, width: int = _WIDTH) -> Iterator[str]:
    """One screen: what needs the lead, the lists with work, and the people who have some left."""
    lists, people = _with_work(status)
    tables: list[str] = []
    if lists:
        rows = (_list_row(each, _named(status, each), status.moment) for each in lists)
        tables += ["", *table(("list", "done", "missing", "24 h", "ends"), rows, width)]
    if people:
        tables += [*table(("person", "done", "left", "hours left", "24 h"), map(_work_row, people), width)]
    others = len(status.datasets) - len(lists)
    begin = list(_beginning(status, width))
    room = max(5, _HEIGHT - len(begin) - len(tables) - 2)  # with the line below and the command's own
    shown = status.notices if len(status.notices) <= room else status.notices[: room - 1]
    yield from begin
    yield from (cut_text(f"! {printable(each.line)}", width) for each in shown)
    if len(shown) < len(status.notices):
        yield f"! and {len(status.notices) - len(shown)} more"
    yield from tables
    rest = f"{counted(others, 'list')} without work. " if others else ""
    yield from wrap(f"{rest}Everything: `citejury annotation status --all`.", width)


def all_lines(status: Status, width: int = _WIDTH) -> Iterator[str]:
    """Everything, in the same order."""
    yield from _beginning(status, width)
    for notice in status.notices:
        yield from wrap(printable(notice.text), width, initial_indent="! ", subsequent_indent="  ")
    columns = ("task", "done", "by", "drafts", "discarded", "24 h", "an hour", "ends")
    for place, datasets in groupby(status.datasets, key=attrgetter("workspace", "round", "language")):
        yield from ("", " · ".join(map(printable, place)))
        yield from table(columns, (_dataset_row(each, status.moment) for each in datasets), width)
    for heading, lines in _blocks(status, width):
        yield from ("", heading, *lines) if heading else ("", *lines)


def _beginning(status: Status, width: int) -> Iterator[str]:
    of = ", ".join(map(printable, status.workspaces))
    yield cut_text(f"{printable(status.server)}, {_minute(status.moment)} UTC: {of}", width)
    yield from wrap(" ".join((_progress(status), _end(status))), width)
    if status.notices:
        yield from ("", f"Needs you first: {len(status.notices)}")


def _progress(status: Status) -> str:
    done, of = (sum(map(attrgetter(name), status.datasets)) for name in ("overlap_reached", "records"))
    missing = f"{counted(status.needed, 'submission')} missing, {status.done_today:,} came in the last 24 hours."
    return f"{done:,} of {counted(of, 'record')} done. {missing}"


def _end(status: Status) -> str:
    """When all of it ends, or why that cannot be told."""
    if status.finish:
        return f"Ends on {_day(status.finish, status.moment)} if each day is like these."
    return f"No end can be told: {status.no_finish}."


def _with_work(status: Status) -> tuple[list[DatasetStatus], list[AnnotatorStatus]]:
    return [each for each in status.datasets if each.needed], [each for each in status.annotators if each.left]


def _named(status: Status, dataset: DatasetStatus) -> str:
    """With its workspace where there are several."""
    return f"{dataset.workspace}/{dataset.dataset}" if len(status.workspaces) > 1 else dataset.dataset


def _list_row(of: DatasetStatus, name: str, now: str) -> tuple[str, ...]:
    done = f"{of.overlap_reached:,} of {of.records:,}"
    return printable(name), done, f"{of.needed:,}", f"{of.done_today:,}", _day(of.finish, now)


def _work_row(of: AnnotatorStatus) -> tuple[str, ...]:
    return printable(of.annotator), f"{of.done:,}", f"{of.left:,.0f}", _hours(of.hours_left), f"{of.done_today:,}"


def _blocks(status: Status, width: int) -> Iterator[tuple[str, Iterable[str]]]:
    """Each heading, which may be empty, with the lines below it."""
    if status.annotators:
        yield "", [*table(PERSON_HEAD, _person_rows(status), width), *wrap(_MEANINGS["slips"], width)]
    models = sorted({model for person in status.annotators for model in person.by_model})
    if len(models) > 1:
        judged = ((printable(each.annotator), *_of_models(each, models)) for each in status.annotators if each.by_model)
        yield "Whose answers each person judged", table(("person", *map(printable, models)), judged, width)
    if status.controls:
        heading = ("person", "controls", "sensitivity", "specificity", "repeats", "self-consist.")
        rows = table(heading, map(_controls_row, status.controls), width)
        yield "", [*rows, *wrap(_MEANINGS["controls"], width)]
    slips = [f"  {_place(of)}: {rule} {count}×" for of in status.datasets for rule, count in of.broken_rules.items()]
    if slips:
        yield "Rules between labels that answers break", slips
    for dataset in status.datasets:
        if found := dataset.half_done:
            named = [f"  {printable(each.record_uuid)}: {each.done} of {each.units} passages" for each in found[:_FEW]]
            more = [f"  and {len(found) - _FEW} more; `--json` has all of them"] if len(found) > _FEW else []
            yield f"{len(found)} answers half done in {_place(dataset)}", named + more
    waiting = [question for question in status.questions if not question.reply]
    if waiting:
        yield f"Questions to you: {len(waiting)}", question_lines(waiting)


def _dataset_row(dataset: DatasetStatus, now: str) -> tuple[str, ...]:
    name = dataset.task if dataset.version == 1 else f"{dataset.task} v{dataset.version}"
    done = f"{dataset.overlap_reached:,} of {dataset.records:,}"
    counts = (dataset.min_submitted, dataset.drafts, dataset.discarded, dataset.done_today)
    end = "superseded" if dataset.is_superseded else _day(dataset.finish, now)
    return name, done, *map(str, counts), _pace(dataset.units_per_hour), end


def _person_rows(status: Status) -> Iterator[tuple[str, ...]]:
    for person in status.annotators:
        yield _person_row(printable(person.annotator) + ("" if person.is_member else " (gone)"), person)
        for dataset in status.datasets if len(status.datasets) > 1 else ():
            for work in dataset.annotators:
                if work.annotator == person.annotator and work.done + work.drafts + work.discarded:
                    yield _person_row(f" {printable(_named(status, dataset))}", work)


def _person_row(name: str, work: AnnotatorStatus) -> tuple[str, ...]:
    counts = (work.done, work.pending, work.drafts, work.discarded, work.done_today)
    return name, *map(str, counts), _pace(work.units_per_hour), str(sum(work.broken_rules.values()))


def _of_models(work: AnnotatorStatus, models: Sequence[str]) -> Iterator[str]:
    counts = [work.by_model.get(model, 0) for model in models]
    return (f"{count} ({count / sum(counts):.0%})" for count in counts)


def _share_text(share: Share | None) -> str:
    return _NOTHING if share is None else f"{share.value:.0%} [{share.low * 100:.0f}, {share.high * 100:.0f}]"


def _place(of: DatasetStatus | Question) -> str:
    return printable(f"{of.workspace}/{of.dataset}")


def _controls_row(of: AnnotatorScores) -> tuple[str, ...]:
    right = (of.together.sensitivity, of.together.specificity, of.together.consistency)
    sensitivity, specificity, consistency = map(_share_text, right)
    return printable(of.annotator), str(of.controls), sensitivity, specificity, str(of.repeats), consistency


def question_lines(questions: Iterable[Question]) -> Iterator[str]:
    """What several people ask in the same words stands once."""
    for text, asked in _by_text(questions).items():
        for each in asked:
            yield f"  {each.id} {printable(each.annotator)}, {_minute(each.at)} UTC, {_place(each)} ({each.status})"
            yield f"    record {printable(each.external_id)}"
        yield from (f"    | {printable(line)}" for line in text.splitlines())


def _by_text(questions: Iterable[Question]) -> dict[str, list[Question]]:
    found: dict[str, list[Question]] = {}
    for each in questions:
        found.setdefault(each.text.strip(), []).append(each)
    return found


def table(head: Sequence[str], rows: Iterable[Sequence[str]], width: int = _WIDTH) -> Iterator[str]:
    """Numbers flush right; names are cut to what the columns leave of the width."""
    found = [tuple(head), *map(tuple, rows)]
    taken = sum(2 + max(map(cell_len, column)) for column in list(zip(*found, strict=True))[1:])
    cut = [(_cut_name(first, max(8, width - taken)), *others) for first, *others in found]
    yield from Table(cut, left=1).terminal().splitlines()


def _cut_name(name: str, width: int) -> str:
    """Cut within, where it is long: the ends of datasets' names tell them apart."""
    if cell_len(name) <= width:
        return name
    end = name
    while cell_len(end) > width * 2 // 3:
        end = end[1:]
    return f"{cut_text(name[: -len(end)], width - cell_len(end))}{end}"


def _pace(units_per_hour: float | None) -> str:
    return _NOTHING if units_per_hour is None else f"{units_per_hour:.0f}"


def _hours(hours: float | None) -> str:
    return _NOTHING if hours is None else f"{hours:,.1f}" if hours >= 0.1 else "< 0.1"


def _minute(moment: str | None) -> str:
    return _NOTHING if moment is None else moment[:16].replace("T", " ")


def _day(moment: str | None, now: str) -> str:
    if moment is None:
        return _NOTHING
    day = datetime.fromisoformat(moment)
    return f"{day:%a} {day.day} {day:%b}" + ("" if moment[:4] == now[:4] else f" {day.year}")


_BAR_WIDTH = 170  # width of a bar, in its own units


def write_page(path: Path, status: Status, every: int | None = None, *, has_ended: bool = False) -> None:
    """Write the page, as `render_page` has it; an earlier one is replaced as a whole."""
    with output_errors(f"`{path}` cannot be written", "Name another `--html`."), staged_file(path) as file:
        file.write(render_page(status, every, has_ended=has_ended).encode())


def render_page(status: Status, every: int | None = None, *, has_ended: bool = False) -> str:
    """A page that reads itself anew after so many seconds, and without them one that holds no script."""
    style, script = (
        files("annotation.quality").joinpath(f"status_page.{kind}").read_text(encoding="utf-8")
        for kind in ("css", "js")
    )
    lists, people = _with_work(status)
    return render(
        "annotation.quality",
        "status_page.html",
        status=status,
        style=Markup(style),  # our own files
        script=Markup(script) if every else "",
        policy=page_policy(style, script),
        every=every,
        has_ended=has_ended,
        lists=lists,
        other_lists=[each for each in status.datasets if each not in lists],
        people=sorted(status.annotators, key=lambda each: each not in people),
        progress=_progress(status),
        end=_end(status),
        questions=_by_text(each for each in status.questions if not each.reply),
        meanings=_MEANINGS,
        name_of=lambda dataset: _named(status, dataset),
        day=lambda moment: _day(moment, status.moment),
        minute=_minute,
        pace=_pace,
        hours=_hours,
        share_text=_share_text,
        bar_parts=_bar_parts,
    )


def _bar_parts(done: int, begun: int, total: int) -> list[tuple[str, float, float]]:
    ends = [_BAR_WIDTH * part / total if total else 0.0 for part in (done, done + begun)]
    places = (("done", 0.0, ends[0]), ("begun", ends[0], ends[1]), ("rest", ends[1], float(_BAR_WIDTH)))
    return [(kind, start, end - start) for kind, start, end in places if end > start]
