"""The status for people: tables of some 80 columns for a terminal, and one HTML page.

Nothing of names and notes reaches the terminal but characters that can be seen, and in the page they are only text.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from textwrap import wrap

from markupsafe import Markup
from rich.cells import cell_len

from annotation.argilla.pages import render
from annotation.quality.schema import AnnotatorStatus, DatasetStatus, Question, Status
from annotation.quality.scores import AnnotatorScores, Share
from pipeline.core.files import output_errors, staged_file
from pipeline.core.tables import Table
from pipeline.core.terminal import printable

_NOTHING = "-"
_WIDTH = 80
_FEW = 10  # how many half-done answers are named; the JSON has all of them
ANNOTATOR_HEAD = ("annotator", "done", "queue", "draft", "disc.", "today", "/h", "broken", "asks")
_CONTROLS_MEANING = (
    "Sensitivity: of known yeses, how many she says yes to; specificity: of known noes, no; self-consistency: of "
    "answers to repeats, how many are what she said before. In brackets intervals of 95% (Wilson), as if answers were "
    "independent."
)


def status_lines(status: Status) -> Iterator[str]:
    yield f"{', '.join(map(printable, status.workspaces))} on {printable(status.server)}, {_minute(status.moment)} UTC"
    for heading, lines in _blocks(status):
        yield from ("", heading, *lines) if heading else ("", *lines)


def _blocks(status: Status) -> Iterator[tuple[str, Iterable[str]]]:
    """Each heading, which may be empty, with the lines below it."""
    columns = ("task", "done", "of", "by", "draft", "disc.", "today", "/h", "finish")
    for place, datasets in groupby(status.datasets, key=attrgetter("workspace", "round", "language")):
        yield " · ".join(map(printable, place)), table(columns, map(_dataset_row, datasets))
    finish = f"Expected finish: {_minute(status.finish)} UTC." if status.finish else f"No finish: {status.no_finish}."
    beyond = wrap(_out_of_reach(status), _WIDTH) if status.needed > status.reachable else []
    wanting = f"Wanting: {status.needed} submissions. Submitted in the last 24 hours: {status.done_today}."
    yield wanting, [finish, *beyond]
    if status.annotators:
        yield "", table(ANNOTATOR_HEAD, _annotator_rows(status))
    models = sorted({model for person in status.annotators for model in person.by_model})
    if len(models) > 1:
        judged = ((printable(each.annotator), *_of_models(each, models)) for each in status.annotators if each.by_model)
        yield "Whose answers each person judged", table(("annotator", *map(printable, models)), judged)
    if status.controls:
        heading = ("annotator", "controls", "sensitivity", "specificity", "repeats", "self-consist.")
        yield "", [*table(heading, map(_controls_row, status.controls)), *wrap(_CONTROLS_MEANING, _WIDTH)]
    broken = [
        f"  {_place(each)}: {rule} {count}×" for each in status.datasets for rule, count in each.broken_rules.items()
    ]
    if broken:
        yield "Rules between labels that are broken", broken
    for dataset in status.datasets:
        if found := dataset.half_done:
            named = [f"  {printable(each.record_uuid)}: {each.done} of {each.units} passages" for each in found[:_FEW]]
            more = [f"  and {len(found) - _FEW} more; `--json` has all of them"] if len(found) > _FEW else []
            yield f"{len(found)} answers half done in {_place(dataset)}", named + more
    if status.notices:
        told = (
            wrap(printable(each.text), _WIDTH, initial_indent="! ", subsequent_indent="  ") for each in status.notices
        )
        yield f"Needs a look: {len(status.notices)}", chain.from_iterable(told)
    waiting = [question for question in status.questions if not question.reply]
    if waiting:
        yield f"Questions to the lead: {len(waiting)}", chain.from_iterable(map(question_lines, waiting))


def _out_of_reach(status: Status) -> str:
    kept_out = sum(each.kept_out for each in status.datasets)
    lacking = status.needed - status.reachable - kept_out
    parts = [f"{kept_out} of the submissions wait for people who have not passed their practice."] if kept_out else []
    parts += [f"For {lacking} of the submissions too few annotators are left."] if lacking else []
    return " ".join(parts)


def _dataset_row(dataset: DatasetStatus) -> tuple[str, ...]:
    name = dataset.task if dataset.version == 1 else f"{dataset.task} v{dataset.version}"
    counts = (dataset.overlap_reached, dataset.records, dataset.min_submitted, dataset.drafts, dataset.discarded)
    finish = "superseded" if dataset.is_superseded else _minute(dataset.finish)
    return name, *map(str, counts), str(dataset.done_today), _pace(dataset.units_per_hour), finish


def _annotator_rows(status: Status) -> Iterator[tuple[str, ...]]:
    for person in status.annotators:
        yield _annotator_row(printable(person.annotator) + ("" if person.is_member else " (left)"), person)
        if len(status.datasets) > 1:
            several = len({dataset.workspace for dataset in status.datasets}) > 1
            for dataset in status.datasets:
                name = f"{dataset.workspace}/{dataset.dataset}" if several else dataset.dataset
                for work in dataset.annotators:
                    if work.annotator == person.annotator and work.done + work.drafts + work.discarded:
                        yield _annotator_row(f" {printable(name)}", work)


def _annotator_row(name: str, work: AnnotatorStatus) -> tuple[str, ...]:
    counts = (work.done, work.pending, work.drafts, work.discarded, work.done_today)
    broken = sum(work.broken_rules.values())
    return name, *map(str, counts), _pace(work.units_per_hour), str(broken), str(work.questions)


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


def question_lines(question: Question) -> Iterator[str]:
    who, when = printable(question.annotator), _minute(question.at)
    yield f"  {question.id} {who}, {when} UTC, {_place(question)} ({question.status})"
    yield f"    record {printable(question.external_id)}"
    yield from (f"    | {printable(line)}" for line in question.text.strip().splitlines())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Numbers flush right; names are cut to what the columns leave of the width."""
    found = [tuple(head), *map(tuple, rows)]
    taken = sum(2 + max(map(cell_len, column)) for column in list(zip(*found, strict=True))[1:])
    cut = [(_cut_name(first, _WIDTH - taken), *others) for first, *others in found]
    yield from Table(cut, left=1).terminal().splitlines()


def _cut_name(name: str, width: int) -> str:
    """Cut within, where it is long: the ends of datasets' names tell them apart."""
    if cell_len(name) <= width:
        return name
    end = name
    while cell_len(end) > width * 2 // 3:
        end = end[1:]
    begin = name[: -len(end)]
    while cell_len(begin) + 1 + cell_len(end) > width:
        begin = begin[:-1]
    return f"{begin}…{end}"


def _pace(units_per_hour: float | None) -> str:
    return _NOTHING if units_per_hour is None else f"{units_per_hour:.0f}"


def _minute(moment: str | None) -> str:
    return _NOTHING if moment is None else moment[:16].replace("T", " ")


_BAR_WIDTH = 170  # width of a bar, in its own units


def write_page(path: Path, status: Status) -> None:
    """Write the page; an earlier one is replaced as a whole."""
    with output_errors(f"`{path}` cannot be written", "Name another `--html`."), staged_file(path) as file:
        file.write(render_page(status).encode())


def render_page(status: Status) -> str:
    several = len(status.workspaces) > 1

    def name_of(dataset: DatasetStatus) -> str:
        """With its workspace where there are several."""
        return f"{dataset.workspace}/{dataset.dataset}" if several else dataset.dataset

    style = files("annotation.quality").joinpath("status_page.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return render(
        "annotation.quality",
        "status_page.html",
        status=status,
        style=Markup(style),  # our own file
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        name_of=name_of,
        minute=_minute,
        pace=_pace,
        share_text=_share_text,
        out_of_reach=_out_of_reach(status),
        controls_meaning=_CONTROLS_MEANING,
        bar_parts=_bar_parts,
    )


def _bar_parts(done: int, begun: int, total: int) -> list[tuple[str, float, float]]:
    ends = [_BAR_WIDTH * part / total if total else 0.0 for part in (done, done + begun)]
    places = (("done", 0.0, ends[0]), ("begun", ends[0], ends[1]), ("rest", ends[1], float(_BAR_WIDTH)))
    return [(kind, start, end - start) for kind, start, end in places if end > start]
