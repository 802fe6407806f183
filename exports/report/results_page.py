"""What the jury found as sections: for `exports results` in every form, and in short for agreement and the demo."""

from collections.abc import Iterator, Sequence

from exports.report.results_differences import DIFFERENCE_MEANING, difference_sentences, standing_out
from exports.report.results_gaps import NOT_IN_EVERY_PART, incomparable_sentences
from exports.report.results_landscape import landscape_blocks
from exports.report.results_words import (
    GROUPS_SHOWN,
    Figure,
    definition,
    denominator_sentences,
    extent,
    figures,
    group_name,
    left_out_sentence,
    rate_estimate,
    rate_meaning,
    rate_rows,
    shows_groups,
    summary_sentence,
)
from exports.report.sections import Place, Point, Section, marked
from exports.report.words import UNDEFINED
from exports.results.schema import Finding, Results
from pipeline.tables import PART, Table
from pipeline.terminal import counted

MARKDOWN_MARK, LATEX_MARK = "<!-- citejury exports results -->", "% citejury exports results"
"""The first lines: by them the files are known as ours."""
_CAPTION = "What the jury found"
_WIDTHS = (30, 20, 10, 12)
_FIRST = 1
"""So many differences, and things that cannot be compared, are in the short form; the report has all."""


def results_sections(results: Results, place: Place = "page") -> Iterator[Section]:
    """All of it: composite findings, the labels of each task, what runs tell, what differs, what cannot be told."""
    shown = list(figures(results))
    findings = [figure for figure in shown if figure.task is None]
    tasks = {task: [figure for figure in shown if figure.task == task] for task in results.tasks}
    behind = denominator_sentences([*([figure] for figure in findings), *tasks.values()])
    summary, meaning, groups = summary_sentence(results), rate_meaning(results), shows_groups(results)
    differences = tuple(difference_sentences(results))
    yield Section(_CAPTION if place == "page" else "", notes=(summary,), depth=2)
    for number, figure in enumerate(findings, start=1):
        found = _finding_section(figure, next(behind))
        name = "findings" if number == 1 else f"findings-{number}"
        told = tuple(f"Beyond chance: {each}" for each in differences) if number == len(findings) else ()
        yield found._replace(name=name, caption=f"{_CAPTION}: {figure.title}", alone=(summary, meaning, *told))
    for task, of_task in tasks.items():
        table = _rate_table(of_task, of_task[0].unit, groups or place == "page")
        found = Section(task, tables=(table,), notes=tuple(next(behind)), widths=_WIDTHS)
        yield found._replace(name=task, caption=f"{_CAPTION}: {task}", alone=(summary, meaning))
    if not groups and place == "terminal":
        yield Section(notes=(f"More than {GROUPS_SHOWN} groups: the rates of labels by group are in results.csv.",))
    yield from landscape_blocks(results, narrow=place != "page")
    yield Section("What differs beyond chance", points=marked("* ", differences))
    minded = marked("! ", incomparable_sentences(results))
    if minded:
        yield Section("What cannot be told, and what to mind", points=minded)
    yield Section(notes=(meaning,))
    yield Section(notes=(DIFFERENCE_MEANING,))


def opening_sections(results: Results, people: int) -> Iterator[Section]:
    """What opens a page on agreement: composite findings by group, what differs, what cannot be told.

    `people` is how many annotators there are.
    """
    yield Section(_CAPTION, notes=(extent(results, people),), depth=2)
    yield from (_finding_section(figure) for figure in figures(results) if figure.task is None)
    points = (*marked("* ", difference_sentences(results)), *marked("! ", incomparable_sentences(results)))
    yield Section(points=points)


def short_section(results: Results, people: int) -> Section:
    """The same in some ten lines for one finding."""
    shown = [figure for figure in figures(results) if figure.task is None]
    rows = [row for figure in shown for row in _short_rows(figure, tuple(results.by[:1]))]
    star = "* " if any(standing_out(results)) else ""
    points: list[Point] = []
    for mark, found in ((star, difference_sentences(results)), ("! ", incomparable_sentences(results))):
        sentences = list(found)
        more = len(sentences) - _FIRST
        if more > 0:
            sentences[_FIRST - 1] += f" {more:,} more in report.html."
        points += marked(mark, sentences[:_FIRST])
    return Section(
        title=f"Found in {extent(results, people).removesuffix('.')}:",
        tables=(Table(rows, left=1),) if rows else (),
        points=tuple(points),
        widths=_WIDTHS[:2],
    )


def _short_rows(figure: Figure, by: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """The rate over all answers and in each group, and in one row the groups that have none."""
    assert isinstance(figure.found, Finding)
    left_out = f", {figure.found.n_incomplete:,} left out" if figure.found.n_incomplete else ""
    yield figure.title, rate_estimate(figure.found), f"of {counted(figure.found.n_units, figure.unit)}{left_out}"
    groups = [group for group in figure.found.groups if tuple(group.by) == by]
    for group in groups[:GROUPS_SHOWN]:
        if group.rate is not None:
            yield f"  {group_name(group.by)}", rate_estimate(group), f"of {counted(group.n_units, figure.unit)}"
    without = [group_name(group.by) for group in groups[:GROUPS_SHOWN] if group.rate is None]
    if without:
        yield f"  {', '.join(without)}", UNDEFINED, NOT_IN_EVERY_PART
    if len(groups) > GROUPS_SHOWN:
        yield f"  {len(groups) - GROUPS_SHOWN:,} more groups", "", "in report.html"


def _finding_section(figure: Figure, behind: Sequence[str] = ()) -> Section:
    """A composite finding by group, what makes an answer count, and what stands behind it."""
    assert isinstance(figure.found, Finding)
    notes = (f"Yes: {definition(figure.found)}.", left_out_sentence(figure.found), *behind)
    table = _rate_table([figure], figure.unit)
    return Section(figure.title, tables=(table,), notes=tuple(filter(None, notes)), widths=_WIDTHS)


def _rate_table(shown: Sequence[Figure], unit: str, groups: bool = True) -> Table:
    """A line for each label or finding, and one for each of its groups below it."""
    rows: list[tuple[str, ...]] = [("", "yes [95 %]", f"{unit}s", "narratives")]
    for name, depth, rate in rate_rows(shown, groups):
        rows.append((PART * depth + name, rate_estimate(rate), f"{rate.n_units:,}", f"{rate.n_narratives:,}"))
    return Table(rows, left=1)
