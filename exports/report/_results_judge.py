"""Rates with a judge's help, as a short table with the sentences that belong to it, for every output."""

from collections import Counter
from collections.abc import Iterator, Mapping

from exports.report.results_words import Figure, figures, group_name, rate_estimate, share, shows_groups, span
from exports.report.sections import Section
from exports.report.words import UNDEFINED, decimal
from exports.results.schema import JudgeHelp, NoHelp, Rate, Results
from pipeline.tables import PART, Table

TITLE = "Rates with the judge's help (people's labels correct it)"
_REASONS: Mapping[NoHelp, str] = {
    "few_narratives": "in fewer than 30 narratives people labelled what the judge judged",
    "not_a_random_part": "what people labelled is no random part of what the judge judged",
    "all_labelled": "people labelled all that the judge judged",
    "not_judged": "the judge judged none of it",
}


def judge_blocks(results: Results, narrow: bool = False) -> Iterator[Section]:
    """The rates with the judge's help beside those of people alone; nothing where no judge was named.

    With `narrow` the table is for few columns, and of many groups none is shown.
    """
    shown = [
        (name, rate, rate.judge_help)
        for figure in figures(results)
        for name, rate in _rates(figure, not narrow or shows_groups(results))
        if rate.judge_help is not None
    ]
    if not shown:
        return
    counts = ("both/judged",) if narrow else ("labelled", "judged", "narratives")
    rows: list[tuple[str, ...]] = [("", "people [95 %]", "+ judge [95 %]", *counts, "λ")]
    for name, rate, told in shown:
        if told.undefined in (None, "few_narratives"):
            rows.append((name, rate_estimate(rate), _helped_estimate(rate), *_counts(told, narrow)))
    reasons = Counter(told.undefined for _, _, told in shown if told.undefined)
    notes = [
        f"{shown[0][2].judge} judged what people did not label too. The rate is people's, moved by what the judge says "
        "of the rest as far as people's labels show that it can be relied on (prediction-powered inference); λ is how "
        "much it counts. The judge's rate alone is no finding, and is not shown.",
        *(f"None with its help for {count} of {len(shown)}: {_REASONS[why]}." for why, count in reasons.items()),
    ]
    if narrow and len(rows) > 1:
        notes.insert(0, "both/judged: what people labelled and the judge judged, of all that it judged.")
    tables = (Table(rows, left=1),) if len(rows) > 1 else ()
    yield Section(TITLE, tables=tables, notes=tuple(notes), name="judge")


def _helped_estimate(rate: Rate) -> str:
    """The rate with the judge's help and its interval; a dash without."""
    return f"{share(rate.rate_ppi)} {span(rate.interval_ppi)}".rstrip()


def _rates(figure: Figure, groups: bool) -> Iterator[tuple[str, Rate]]:
    """The rate over all and those of the groups, by name."""
    yield figure.title, figure.found
    for group in figure.found.groups if groups else ():
        yield f"{PART}{group_name(group.by)}", group


def _counts(told: JudgeHelp, narrow: bool) -> tuple[str, ...]:
    """How many were labelled and judged, and λ."""
    weight = UNDEFINED if told.weight is None else decimal(told.weight)
    if narrow:
        return f"{told.n_labelled:,}/{told.n_judged:,}", weight
    return f"{told.n_labelled:,}", f"{told.n_judged:,}", f"{told.n_narratives:,}", weight
