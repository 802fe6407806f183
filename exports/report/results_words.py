"""What the jury found, in plain sentences and short numbers, for terminal, Markdown, LaTeX, the report and the demo.

Sentences hold names of models, narratives and findings as they are: whoever puts one into HTML, Markdown, LaTeX or a
terminal escapes it whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from annotation.labels import TaskName
from exports.report.words import UNDEFINED, decimal
from exports.results.schema import (
    Denominators,
    Finding,
    LabelResults,
    Rate,
    RateInterval,
    Results,
)
from exports.results.study import Consensus
from pipeline.terminal import counted

UNITS: dict[TaskName, str] = {"retrieval": "passage", "grounding": "answer", "generation": "answer"}
"""What one unit of each task is."""
GROUPS_SHOWN = 12
"""With more groups than these, labels are shown without them in terminal and paper."""
NOT_KNOWN = "(not known)"
"""How a group is called whose value is empty."""
_VALUES: dict[Consensus, str] = {
    "share": "An answer or passage counts by the share of its annotators who say yes.",
    "majority": "An answer or passage counts by the majority of its annotators; ties are left out.",
    "adjudicated": (
        "An answer or passage counts as the adjudicators decided, else as all of its annotators say; others are left "
        "out."
    ),
}
"""How an answer or passage counts on a label by the votes on it."""
FINDING_VALUES: dict[Consensus, str] = {
    "share": "A finding counts an answer where most annotators say so on one of its labels; half where they tie.",
    "majority": "A finding counts an answer where most annotators say so on one of its labels; ties are left out.",
    "adjudicated": (
        "A finding counts an answer where adjudicators decided so on one of its labels, or all of its annotators say "
        "so; others are left out."
    ),
}
"""How an answer counts for a composite finding by the votes on its parts."""
_ROUNDING = 1e-9
"""What is closer to 0 or 1 than this, sums of fractions made so."""
_COLUMNS = {"model_name": "model", "model_version": "model version", "narrative_type": "narrative type"}


class Figure(NamedTuple):
    """One label or composite finding, as a table or a plot shows it."""

    task: TaskName | None
    """The task of a label; None for a composite finding."""
    name: str
    """Name in `results.json`."""
    title: str
    """What people read: the title of a finding, the name of a label."""
    unit: str
    """What one unit is: `answer` or `passage`."""
    found: LabelResults
    """The figures."""


def figures(results: Results) -> Iterator[Figure]:
    """All that was measured in the order in which people read it: composite findings, then the labels of each task."""
    for name, finding in results.findings.items():
        yield Figure(None, name, finding.title, "answer", finding)
    for task, measured in results.tasks.items():
        for label, found in measured.labels.items():
            yield Figure(task, label, label, UNITS[task], found)


def rate_rows(shown: Sequence[Figure], groups: bool = True) -> Iterator[tuple[str, int, Rate]]:
    """For each label or finding its rate over all answers, then those of its groups: name, depth in the list, rate.

    Groups of which no unit was judged come last, in one row: of each label, or of all where they are the same.
    """
    told = {
        figure.title: figure.found.groups if groups and not _is_one_unknown(figure.found) else () for figure in shown
    }
    without = {
        title: [(group_name(group.by), group) for group in found if not group.n_units] for title, found in told.items()
    }
    alike = len(shown) > 1 and len({tuple(name for name, _ in found) for found in without.values()}) == 1
    for figure in shown:
        yield figure.title, 0, figure.found
        for group in told[figure.title]:
            if group.n_units:
                yield group_name(group.by), 1, group
        if (lacking := without[figure.title]) and not alike:
            yield joined([name for name, _ in lacking]), 1, lacking[0][1]
    if alike and (lacking := without[shown[0].title]):
        yield f"none judged: {joined([name for name, _ in lacking])}", 0, lacking[0][1]


def _is_one_unknown(found: LabelResults) -> bool:
    """Whether nothing is known that could tell groups apart: a line for it would repeat that of all."""
    return len(found.groups) == 1 and not any(found.groups[0].by.values())


def shows_groups(results: Results) -> bool:
    """Whether labels are shown by group where people read them; of hundreds of lines nobody reads any."""
    return all(len(figure.found.groups) <= GROUPS_SHOWN for figure in figures(results))


def summary_sentence(results: Results) -> str:
    """What all of it is about, with `60 answers to 12 narratives` and the columns that group them."""
    answers, narratives = counted(results.n_records, "answer"), counted(results.n_narratives, "narrative")
    weighted = ", weighted by inclusion probability" if results.weighted else ""
    return f"What the jury found about {answers} to {narratives}, by {', '.join(results.by)}{weighted}."


def extent(results: Results, people: int) -> str:
    """How much was judged by so many people, such as `60 answers of 5 models to 12 narratives, judged by 4 people.`."""
    first = next((figure.found for figure in figures(results)), None)
    by = tuple(results.by[:1])
    groups = sum(tuple(group.by) == by and any(group.by.values()) for group in first.groups) if first and by else 0
    of_groups = f" of {counted(groups, column_name(by[0]))}" if groups else ""
    jury = "1 person" if people == 1 else f"{people:,} people"
    narratives = counted(results.n_narratives, "narrative")
    return f"{counted(results.n_records, 'answer')}{of_groups} to {narratives}, judged by {jury}."


def column_name(column: str) -> str:
    """What a column of groups is called, such as `model`; the others by their names."""
    return _COLUMNS.get(column, column)


def rate_meaning(results: Results) -> str:
    """What a rate and its interval are."""
    return (
        f"Each figure is the share of yes, with its 95 % interval. {_VALUES[results.consensus]} "
        f"{FINDING_VALUES[results.consensus] + ' ' if results.findings else ''}Intervals take "
        "narratives as what was drawn: answers to one narrative are no independent cases."
    )


def share(value: float | None) -> str:
    """A share as a percentage such as `41 %`, `0.4 %`, `<0.1 %` or `–` where there is none; 0 and 100 are exact."""
    if value is None:
        return UNDEFINED
    if 0 < value < 0.0005:
        return "<0.1 %"
    return ">99.9 %" if 0.9995 <= value < 1 else f"{_hundredths(value)} %"


def span(interval: RateInterval | None) -> str:
    """An interval in per cent or points, such as `[30, 53]`; empty where there is none."""
    if interval is None:
        return ""
    low, high = _hundredths(interval.low), _hundredths(interval.high)
    if low == high:
        low, high = f"{100 * interval.low:.1f}", f"{100 * interval.high:.1f}"
    return f"[{low}, {high}]"


class Scale(NamedTuple):
    """How figures of a kind are told."""

    value: Callable[[float | None], str]
    """One figure."""
    interval: Callable[[RateInterval | None], str]
    """An interval; empty where there is none."""
    apart: Callable[[float], str]
    """How far two of them lie from each other."""


SHARES = Scale(share, span, lambda difference: f"{_hundredths(difference)} points")
"""Shares, in per cent and points: `41 % [30, 53]`."""
COEFFICIENTS = Scale(
    decimal, lambda ends: f"[{decimal(ends.low)}, {decimal(ends.high)}]" if ends else "", lambda apart: decimal(apart)
)
"""Figures between 0 and 1 that are no shares: `.41 [.30, .53]`."""


def rate_estimate(rate: Rate, scale: Scale = SHARES) -> str:
    """The rate with its interval, such as `41 % [30, 53]`; without one the rate alone."""
    return f"{scale.value(rate.rate)} {scale.interval(rate.interval)}".rstrip()


def group_name(by: Mapping[str, str]) -> str:
    """What a group is called: its values, such as `perplexity` or `perplexity, de`."""
    return ", ".join(value or NOT_KNOWN for value in by.values()) or "all"


def basis(rate: Rate, unit: str) -> str:
    """What a rate is of, such as `60 answers, 12 narratives`."""
    return f"{counted(rate.n_units, unit)}, {counted(rate.n_narratives, 'narrative')}"


def joined(names: Sequence[str]) -> str:
    """The names as a list in words; those of crossed groups hold commas themselves."""
    *first, last = names
    between = "; " if any(", " in name for name in names) else ", "
    return f"{between.join(first)} and {last}" if first else last


def definition(finding: Finding) -> str:
    """What makes an answer count, such as `contradicted_claim_present, unsafe_content or not response_on_topic`."""
    *first, last = finding.any
    return f"{', '.join(first)} or {last}" if first else last


def left_out_sentence(finding: Finding) -> str:
    """How many answers a composite finding leaves out because a part was not judged; empty where none is."""
    if not finding.n_incomplete:
        return ""
    parts = ", ".join(f"{label} {count:,}" for label, count in finding.missing.items() if count)
    return f"Left out, since the jury has not judged every part: {counted(finding.n_incomplete, 'answer')} ({parts})."


def denominator_sentence(found: Denominators, shown: Denominators | None = None) -> str:
    """What stands behind a rate, part by part; parts that the files do not tell are left out.

    Where `shown` stands above already, only what differs from it is told, and how many responses were discarded.
    """
    asked, answers, discards = _asked(found), _answers(found), ""
    if found.discarded is not None:
        discards = f"{counted(found.discarded, 'response')} discarded"
    if shown is not None and (asked, answers) == (_asked(shown), _answers(shown)):
        asked = answers = ""
    told = "; ".join(filter(None, (asked, answers, discards)))
    return f"{told}." if told else ""


def denominator_sentences(blocks: Sequence[Sequence[Figure]]) -> Iterator[list[str]]:
    """For each block of figures what stands behind them, where it is not what stands behind the block before."""
    before: Denominators | None = None
    for block in blocks:
        own = [figure.found.denominators for figure in block]
        yield list(dict.fromkeys(filter(None, (denominator_sentence(found, before) for found in own))))
        before = own[-1] if own else before


def _asked(found: Denominators) -> str:
    """What became of the questions; empty where it is not known."""
    if found.asked is None:
        return ""
    return (
        f"{counted(found.asked, 'question')} asked: {found.answered or 0:,} answered, {found.refused or 0:,} refused, "
        f"{found.failed or 0:,} failed"
    )


def _answers(found: Denominators) -> str:
    """How many answers there are, and what of their sources is known."""
    parts = {
        "without citations": found.without_citations,
        "with a page that was not read": found.with_unread_sources,
    }
    told = [f"{count:,} {what}" for what, count in parts.items() if count is not None]
    return ", ".join([f"{counted(found.answers, 'answer')} before the jury", *told])


def _hundredths(value: float) -> str:
    """A share in per cent or points: whole, with a decimal where it would be 0 or 100 and is not."""
    size = abs(value)
    if 0.01 <= size <= 0.99 or min(size, abs(1 - size)) < _ROUNDING:
        return f"{100 * value:.0f}" if size > _ROUNDING else "0"
    digits = f"{100 * value:.1f}".replace("-0.0", "0.0")
    return digits if digits in ("0.0", "100.0", "-100.0") else digits.removesuffix(".0")
