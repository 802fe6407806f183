"""What moved between months as sections: findings by month, and what changed."""

from collections.abc import Iterator

from exports.report.results_differences import no_difference_sentence, standing_out
from exports.report.results_words import (
    GROUPS_SHOWN,
    SHARES,
    Figure,
    figures,
    group_name,
    rate_estimate,
    rate_meaning,
)
from exports.report.sections import Section, marked
from exports.report.words import UNDEFINED, p_phrase
from exports.results.schema import Difference, GroupRate, RateInterval, Results
from pipeline.tables import PART, Table
from pipeline.terminal import counted

MEANING = (
    "Each month is compared with the one before it and with the first, on the narratives that both have, each "
    "narrative against itself. Beyond chance: p below .05 after Holm's correction for all of these comparisons of all "
    "labels and findings."
)
_WIDTHS = (24, 16, 16, 16)
_CHANGES_SHOWN = 12


def trend_sections(results: Results) -> Iterator[Section]:
    """All of it; the months are the values of the first column of `by`."""
    column = results.by[0]
    months = _months(results, column)
    answers, narratives = counted(results.n_records, "answer"), counted(results.n_narratives, "narrative")
    over = f"{counted(len(months), column)}, {months[0]} to {months[-1]}"
    yield Section(notes=(f"What the jury found over {over}, about {answers} to {narratives}.",))
    yield from (_finding_section(figure, results, months) for figure in figures(results) if figure.task is None)
    yield Section("What changed beyond chance", points=marked("* ", change_sentences(results)))
    if results.remarks:
        yield Section("What to mind", points=marked("! ", results.remarks))
    yield Section(notes=(rate_meaning(results),))
    yield Section(notes=(MEANING,))


def change_sentences(results: Results) -> Iterator[str]:
    """What changed from month to month beyond chance, a sentence each and the newest first, or that nothing did."""
    column = results.by[0]
    told = [(figure, found) for figure, found in standing_out(results) if found.by == column]
    compared = [
        found
        for figure in figures(results)
        for found in figure.found.differences
        if found.by == column and found.p is not None
    ]
    if told:
        newest = sorted(told, key=lambda each: each[1].b, reverse=True)
        yield from (_change_sentence(figure.title, found) for figure, found in newest[:_CHANGES_SHOWN])
        more = f"; the others are in differences.csv, by {column}" if len(told) > _CHANGES_SHOWN else ""
        yield f"{counted(len(told), 'change')} of {len(compared):,} that were looked for{more}."
    elif compared:
        together = [found.model_copy(update={"within": {}}) for found in compared]  # one family, crossed or not
        yield no_difference_sentence(together)
    else:
        yield "Cannot be told: no two months have narratives in common."


def _change_sentence(title: str, found: Difference) -> str:
    """A change, the earlier month first."""
    change = -(found.difference or 0.0)
    low, high = (found.interval.low, found.interval.high) if found.interval else (0.0, 0.0)
    ends = RateInterval(low=low, high=high, method="") if change < 0 else RateInterval(low=-high, high=-low, method="")
    level = f" ({group_name(found.within)})" if found.within else ""
    return (
        f"{title}{level}: {'rose' if change > 0 else 'fell'} from {SHARES.value(found.rate_a)} in {found.a} to "
        f"{SHARES.value(found.rate_b)} in {found.b}, by {SHARES.apart(abs(change))} {SHARES.interval(ends)}, "
        f"{p_phrase(found.p_holm or 0.0)} after Holm, on {counted(found.n_narratives, 'narrative')} that both have."
    )


def _months(results: Results, column: str) -> list[str]:
    """The months in their order."""
    first = next(figures(results)).found
    return [group.by[column] for group in first.groups if tuple(group.by) == (column,) and group.by[column]]


def _finding_section(figure: Figure, results: Results, months: list[str]) -> Section:
    """A line for all answers and one for each group: the first month, the one before the last, and the last."""
    column, others = results.by[0], tuple(results.by[1:])
    shown = list(dict.fromkeys((months[0], *months[-2:])))
    rates: dict[tuple[str, ...], dict[str, GroupRate]] = {}
    for group in figure.found.groups:
        if tuple(group.by) in ((column,), (column, *others)):
            level = tuple(value for name, value in group.by.items() if name != column)
            rates.setdefault(level, {})[group.by[column]] = group
    rows: list[tuple[str, ...]] = [("", *shown)]
    for level, of_month in list(rates.items())[: GROUPS_SHOWN + 1]:
        name = f"{PART}{group_name(dict(zip(others, level, strict=False)))}" if level else figure.title
        rows.append((name, *(rate_estimate(of_month[m]) if m in of_month else UNDEFINED for m in shown)))
    more = len(rates) - GROUPS_SHOWN - 1
    notes = (f"{more:,} more groups in results.csv.",) if more > 0 else ()
    return Section(figure.title, tables=(Table(rows, left=1),), notes=notes, widths=_WIDTHS[: len(rows[0])])
