"""What the jury found, in plain sentences and short numbers, for terminal, Markdown, the report and the demo."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from annotation.argilla.labels import is_of_passages
from exports.report.sections import Figure as Number
from exports.report.words import ENGLISH, TEXTS, UNDEFINED, Language, decimal, minus, p_phrase, turned
from exports.statistics import results_schema as schema
from exports.statistics.groups import Denominators
from exports.statistics.rates import narratives_needed, telling_narratives, within_reach
from exports.statistics.ratings import RATINGS, MeasuredTask
from pipeline.core.terminal import counted

GROUPS_SHOWN = 12
NOT_KNOWN = "(not known)"
_ROUNDING = 1e-9  # what is closer to 0 or 1 than this, sums of fractions made so


class Figure(NamedTuple):
    """One label or composite finding, as a table or a plot shows it."""

    task: MeasuredTask | None  # the task of a label; None for a composite finding
    name: str
    title: str
    unit: str
    found: schema.LabelResults
    kind: str = "yes"  # what `found` has: shares of yes, the share of a value, or means
    scale: "Scale | None" = None  # how it is told; as shares where there is none


def figures(results: schema.Results) -> Iterator[Figure]:
    for name, finding in results.findings.items():
        yield Figure(None, name, finding.title, "answer", finding)
    for task, measured in results.tasks.items():
        unit = "unit" if task == RATINGS else "passage" if is_of_passages(task) else "answer"
        for label, found in measured.labels.items():
            yield Figure(task, label, label, unit, found)
        for label, scaled in (measured.scaled or {}).items():
            for value, found in scaled.shares.items():
                yield Figure(task, f"{label}={value}", f"{label} = {value}", unit, found, "share")
            if scaled.mean:
                yield Figure(task, f"mean {label}", f"mean {label}", unit, scaled.mean, "mean", NUMBERS)


def told_findings(results: schema.Results, by_votes: bool = True) -> list[Figure]:
    """Those of the jury, or those that need no votes; what cannot be told is no headline."""
    return [
        figure
        for figure in figures(results)
        if figure.task is None and figure.found.rate is not None and needs_no_votes(figure) != by_votes
    ]


def rate_rows(shown: Sequence[Figure]) -> Iterator[tuple[str, int, schema.Rate]]:
    """For each label or finding its rate over all answers, then those of its groups: name, depth in the list, rate.

    Groups of which no unit was judged come last, in one row: of each label, or of all where they are the same.
    """
    told = {figure.title: () if is_one_unknown(figure.found) else figure.found.groups for figure in shown}
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
            yield _joined([name for name, _ in lacking]), 1, lacking[0][1]
    if alike and (lacking := without[shown[0].title]):
        yield f"none judged: {_joined([name for name, _ in lacking])}", 0, lacking[0][1]


def is_one_unknown(found: schema.LabelResults) -> bool:
    """Whether nothing is known that could tell groups apart: a line for it would repeat that of all."""
    return len(found.groups) == 1 and not any(found.groups[0].by.values())


def summary_sentence(results: schema.Results) -> str:
    weighted = ", weighted by inclusion probability" if results.weighted else ""
    by = f", by {', '.join(results.by)}" if results.by else ""
    return f"What the jury found about {_judged(results)}{by}{weighted}."


def _judged(results: schema.Results, of_groups: str = "") -> str:
    """How much was judged: answers to narratives or, of anybody's ratings, units in clusters."""
    if RATINGS in results.tasks:
        return f"{counted(results.n_records, 'record')}{of_groups} in {counted(results.n_narratives, 'cluster')}"
    return f"{counted(results.n_records, 'answer')}{of_groups} to {counted(results.n_narratives, 'narrative')}"


def extent(results: schema.Results, people: int) -> str:
    first = next((figure.found for figure in figures(results)), None)
    by = tuple(results.by[:1])
    groups = sum(tuple(group.by) == by and any(group.by.values()) for group in first.groups) if first and by else 0
    of_groups = f" of {counted(groups, TEXTS['columns'].get(by[0], by[0]))}" if groups else ""
    jury = "1 person" if people == 1 else f"{people:,} people"
    return f"{_judged(results, of_groups)}, judged by {jury}."


def value_sentences(results: schema.Results, language: Language = ENGLISH) -> str:
    """What a figure is, what a unit counts by the votes on it, and an answer for a finding."""
    texts, scaled = language.texts, _has_values(results)
    found = [
        texts["methods"]["values" if scaled else "shares"],
        texts["values_of_all" if scaled else "values"][results.consensus],
        *([texts["finding_values"][results.consensus]] if told_findings(results) else []),
    ]
    return str(texts["methods"]["space"].join(found))


def rate_meaning(results: schema.Results) -> str:
    drawn = "narratives as what was drawn: answers to one narrative are no independent cases."
    drawn = "clusters, or units without one, as what was drawn." if RATINGS in results.tasks else drawn
    others = "They say what others of these would show, not what other annotators would say."
    return f"{value_sentences(results)} Intervals are 95 % and take {drawn} {others}"


def _has_values(results: schema.Results) -> bool:
    return any(task == RATINGS or found.scaled for task, found in results.tasks.items())


def share(value: float | None) -> str:
    """A share as a percentage such as `41 %`, `0.4 %`, `<0.1 %` or `–` where there is none; 0 and 100 are exact."""
    if value is None:
        return UNDEFINED
    if 0 < value < 0.0005:
        return "<0.1 %"
    return ">99.9 %" if 0.9995 <= value < 1 else f"{_hundredths(value)} %"


def span(interval: schema.RateInterval | None) -> str:
    """An interval in per cent or points, such as `[30, 53]`; empty where there is none."""
    if interval is None:
        return ""
    low, high = _hundredths(interval.low), _hundredths(interval.high)
    if low == high:
        low, high = minus(f"{100 * interval.low:.1f}"), minus(f"{100 * interval.high:.1f}")
    return f"[{low}, {high}]"


class Scale(NamedTuple):
    value: Callable[[float | None], str]
    interval: Callable[[schema.RateInterval | None], str]
    apart: Callable[[float], str]


SHARES = Scale(share, span, lambda apart: f"{_hundredths(apart)} point{'s' * (_hundredths(apart) != '1')}")
"""Shares, in per cent and points: `41 % [30, 53]`."""
COEFFICIENTS = Scale(
    decimal, lambda ends: f"[{decimal(ends.low)}, {decimal(ends.high)}]" if ends else "", lambda apart: decimal(apart)
)
"""Figures between 0 and 1 that are no shares: `.41 [.30, .53]`."""


def _number(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    digits = 2 - math.floor(math.log10(abs(value))) if value else 2
    return minus(f"{value:,.{min(max(digits, 0), 12)}f}")


NUMBERS = Scale(_number, lambda ends: f"[{_number(ends.low)}, {_number(ends.high)}]" if ends else "", _number)
"""Means in the numbers of their scale, with three digits: `3.41 [3.05, 3.72]`."""


def rate_estimate(rate: schema.Rate, scale: Scale = SHARES) -> Number:
    why = "" if rate.rate is None or rate.interval else "no interval"
    if rate.rate is None:
        why = (rate.undefined or "not_known").replace("_", " ")
    return Number(scale.value(rate.rate), scale.interval(rate.interval), why=why)


def group_name(by: Mapping[str, str]) -> str:
    return ", ".join(value or NOT_KNOWN for value in by.values()) or "all"


def basis(rate: schema.Rate, unit: str) -> str:
    return f"{counted(rate.n_units, unit)}, {counted(rate.n_narratives, 'narrative')}"


def _joined(names: Sequence[str]) -> str:
    """The names as a list in words; those of crossed groups hold commas themselves."""
    *first, last = names
    between = "; " if any(", " in name for name in names) else ", "
    return f"{between.join(first)} and {last}" if first else last


def definition(finding: schema.Finding) -> str:
    """What makes an answer count, such as `contradicted_claim_present, unsafe_content or not response_on_topic`."""
    if not finding.any:
        return "the answer is in another language than its query; what is too short to tell is not"
    *first, last = finding.any
    return f"{', '.join(first)} or {last}" if first else last


def left_out_sentence(finding: schema.Finding) -> str:
    if not finding.n_incomplete:
        return ""
    if not finding.any:
        return f"Left out, since query or language is not told: {counted(finding.n_incomplete, 'answer')}."
    parts = ", ".join(f"{label} {count:,}" for label, count in finding.missing.items() if count)
    return f"Left out, since the jury has not judged all labels: {counted(finding.n_incomplete, 'answer')} ({parts})."


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
        own = [figure.found.denominators for figure in block if figure.task != RATINGS]
        yield list(dict.fromkeys(filter(None, (denominator_sentence(found, before) for found in own))))
        before = own[-1] if own else before


def _asked(found: Denominators) -> str:
    if found.asked is None:
        return ""
    return (
        f"{counted(found.asked, 'question')} asked: {found.answered or 0:,} answered, {found.refused or 0:,} refused, "
        f"{found.failed or 0:,} failed"
    )


def _answers(found: Denominators) -> str:
    told = counted(found.answers, "answer") + " before the jury"
    if found.without_citations is not None:
        told += f", {found.without_citations:,} without citations"
    if found.with_unread_sources is not None:
        told += f", {found.with_unread_sources:,} with a page that was not read"
    return told


def _hundredths(value: float) -> str:
    size = abs(value)
    if 0.01 <= size <= 0.99 or min(size, abs(1 - size)) < _ROUNDING:
        return minus(f"{100 * value:.0f}") if size > _ROUNDING else "0"
    return minus(f"{100 * value:.1f}".replace("-0.0", "0.0").removesuffix(".0"))


def _drawn(results: schema.Results) -> str:
    return "cluster" if RATINGS in results.tasks else "narrative"


def difference_sentence(title: str, found: schema.Difference, scale: Scale = SHARES, noun: str = "narrative") -> str:
    """A difference that has a figure, the group with the higher rate first: without what annotators make, if known."""
    (first, high), (second, low) = (found.a, found.rate_a), (found.b, found.rate_b)
    difference, interval = found.difference or 0.0, found.interval
    if difference < 0:
        first, high, second, low = second, low, first, high
        difference, interval = -difference, turned(interval)
    ends = f" {scale.interval(interval)}" if interval else ""
    level = f" ({group_name(found.within)})" if found.within else ""
    p = "" if found.p_all is None else f", {p_phrase(found.p_all)} after Holm"
    first = first or NOT_KNOWN
    rates = f"{first} {scale.value(high)}, {second or NOT_KNOWN} {scale.value(low)}"
    apart = f"{rates}: {scale.apart(difference)} apart"
    if found.leniency:
        apart = f"as judged {rates}; {leniency_words(found, scale)} {first} is {scale.apart(difference)} higher"
    return f"{title}{level}: {apart}{ends}{p}, on {counted(found.n_narratives, noun)} that both have."


def leniency_words(found: schema.Difference, scale: Scale = SHARES) -> str:
    """What of a difference comes from who judged; what is left of it follows."""
    lenient = (found.a if (found.leniency or 0) > 0 else found.b) or NOT_KNOWN
    return str(TEXTS["adjusted"]["share" if scale is SHARES else "mean"]).format(
        lenient=lenient, size=scale.apart(abs(found.leniency or 0.0))
    )


def standing_out(results: schema.Results) -> Iterator[tuple[Figure, schema.Difference]]:
    """The differences beyond chance: composite findings first, within one the greatest difference first.

    Last are those of findings that need no votes.
    """
    for figure in sorted(figures(results), key=needs_no_votes):
        told = [found for found in figure.found.differences if found.stands_out]
        for found in sorted(told, key=lambda found: -abs(found.difference or 0.0)):
            yield figure, found


def needs_no_votes(figure: Figure) -> bool:
    return isinstance(figure.found, schema.Finding) and not figure.found.any


def clearest_difference(results: schema.Results) -> list[str]:
    """Of the differences beyond chance that of the smallest p, then the largest, and how many more there are."""
    told = list(standing_out(results))
    if not told:
        return list(difference_sentences(results))
    figure, found = min(
        told, key=lambda each: (needs_no_votes(each[0]), each[1].p_all or 0.0, -abs(each[1].difference or 0.0))
    )
    sentence = difference_sentence(figure.title, found, figure.scale or SHARES, _drawn(results))
    return [sentence + (f" {len(told) - 1:,} more: details.html." if told[1:] else "")]


def difference_sentences(results: schema.Results) -> Iterator[str]:
    told = [
        difference_sentence(figure.title, found, figure.scale or SHARES, _drawn(results))
        for figure, found in standing_out(results)
    ]
    compared = [found for figure in figures(results) for found in figure.found.differences if found.p is not None]
    if told:
        reached = sum(within_reach(compared))
        few = f", of which {reached:,} have enough {_drawn(results)}s in common to stand out"
        few = few if reached < len(compared) else ""
        yield from told
        yield f"{counted(len(told), 'difference')} of {len(compared):,} that were compared{few}."
    elif compared:
        yield no_difference_sentence(compared, _drawn(results))
    elif results.by and (one := _only_group(results)):
        yield f"There is nothing to compare: all of it is {one}."
    elif results.by:
        yield "Cannot be told: no two groups could be compared."


def _only_group(results: schema.Results) -> str:
    """The one group that there is, alone and crossed; empty where there are more, or it is not known."""
    groups = next((figure.found.groups for figure in figures(results)), ())
    columns = {tuple(group.by) for group in groups}
    return group_name(groups[-1].by) if len(columns) == len(groups) and groups and any(groups[-1].by.values()) else ""


def no_difference_sentence(compared: Sequence[schema.Difference], noun: str = "narrative") -> str:
    """That none of the differences, of which each has a p, is beyond chance, or that none could have been."""
    reached = sum(within_reach(compared))
    if not reached:
        most, needed = max(map(telling_narratives, compared)), narratives_needed(compared)
        unlike = any(telling_narratives(found) < found.n_narratives for found in compared)
        common, more = ("judged in both by the same people", "let more be judged so; ") if unlike else ("in common", "")
        none = f"none of {len(compared):,} differences" if compared[1:] else "the one difference"
        could = f"{none} could{' not' * (not compared[1:])} be beyond chance"
        return f"Cannot be told: with at most {counted(most, noun)} {common} {could}; {more}{needed:,} are needed."
    if not compared[1:]:
        return "The one difference is not beyond chance."
    few = "" if reached == len(compared) else f"; only {reached:,} have enough shared {noun}s"
    return f"None of {len(compared):,} differences is beyond chance{few}."


_NAMES_SHOWN = 6
_MUCH = 0.05
NOT_IN_EVERY_PART = "not judged on all labels"
_REASONS: dict[schema.NoFigure, str] = TEXTS["no_figure"]


def incomparable_sentences(results: schema.Results) -> Iterator[str]:
    yield from _as_judged(results)
    yield from _without_difference(results)
    yield from _without_figure(results)
    yield from _unknown_denominators(results)
    yield from results.remarks


def _as_judged(results: schema.Results) -> Iterator[str]:
    """That the figures of groups are as judged, where who judged makes them differ by five points or more."""
    unlike = [
        (figure.title, found)
        for figure in figures(results)
        for found in figure.found.differences
        if not (figure.scale or found.within) and abs(found.leniency or 0.0) >= _MUCH
    ]
    if unlike:
        title, found = max(unlike, key=lambda each: abs(each[1].leniency or 0.0))
        size = SHARES.apart(abs(found.leniency or 0.0))
        yield TEXTS["adjusted"]["minded"].format(size=size, a=found.a, b=found.b, title=title)


def _without_difference(results: schema.Results) -> Iterator[str]:
    """For each reason the groups that cannot be compared, and on which labels; not where one of them has no rate.

    One that cannot be compared with several others is named once, with them.
    """
    levels: dict[tuple[str, str, schema.NoFigure, str], list[str]] = {}
    for (a, b, level), reasons in _reasons_by_pair(results).items():
        by_reason: dict[schema.NoFigure, list[str]] = {}
        for title, reason in reasons.items():
            if reason is not None and reason != "no_units":
                by_reason.setdefault(reason, []).append(title)
        for reason, told in by_reason.items():
            named = "any label" if {*reasons.values()} <= {reason, "no_units"} else _named(told, 0)
            levels.setdefault((a, b, reason, named), []).append(level)
    pairs: dict[tuple[tuple[str, ...], schema.NoFigure, str], list[tuple[str, str]]] = {}
    for (a, b, reason, named), own in levels.items():
        pairs.setdefault((tuple(own), reason, named), []).append((a, b))
    for (own_levels, reason, named), found in pairs.items():
        for group, others in _by_most_frequent(found):
            end = f"{_levels(own_levels)} on {named}: {_REASONS[reason].replace('narrative', _drawn(results))}."
            with_one = f"{group} and {others[0]} cannot be compared{end}"
            yield with_one if len(others) == 1 else f"{group} cannot be compared with {_joined(others)}{end}"


def _levels(levels: Sequence[str]) -> str:
    """Within which levels of other columns, behind a space; the empty one stands for all of them together."""
    names = [level for level in levels if level]
    if not names:
        return ""
    return f" ({'nor ' if '' in levels else ''}within {_some(names)})"


def _reasons_by_pair(results: schema.Results) -> dict[tuple[str, str, str], dict[str, schema.NoFigure | None]]:
    """By the label's title; None where they can."""
    pairs: dict[tuple[str, str, str], dict[str, schema.NoFigure | None]] = {}
    for figure in figures(results):
        for found in figure.found.differences:
            level = group_name(found.within) if found.within else ""
            reason = (found.undefined or "not_known") if found.p is None else None
            names = (found.a or NOT_KNOWN, found.b or NOT_KNOWN, level)
            pairs.setdefault(names, {})[figure.title] = reason
    return pairs


def _by_most_frequent(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Each pair once, under that one of its names that is in most of the pairs."""
    left = list(pairs)
    while left:
        counts = Counter(name for pair in left for name in pair)
        group = max(counts, key=lambda name: counts[name])
        yield group, [b if a == group else a for a, b in left if group in (a, b)]
        left = [pair for pair in left if group not in pair]


def _without_figure(results: schema.Results) -> Iterator[str]:
    lacking: dict[tuple[str, bool, str], list[str]] = {}
    for figure in figures(results):
        if isinstance(figure.found, schema.Finding) and figure.found.rate is None and figure.found.n_incomplete:
            yield f"{figure.title} cannot be told. {left_out_sentence(figure.found)}"
            continue
        parts = [("all", figure.found), *((group_name(group.by), group) for group in figure.found.groups)]
        for name, rate in parts:
            if rate.undefined:
                in_part = figure.task is None and rate.undefined == "no_units" and not needs_no_votes(figure)
                reason = _REASONS[rate.undefined].replace("narrative", _drawn(results))
                reason = NOT_IN_EVERY_PART if in_part else reason
                lacking.setdefault((name, rate.rate is None, reason), []).append(figure.title)
    kinds = [figure.task is None for figure in figures(results)]
    totals = {NOT_IN_EVERY_PART: 0, _REASONS["no_units"]: kinds.count(False)}
    alike: dict[tuple[str, bool, str], list[str]] = {}
    for (name, no_rate, reason), titles in lacking.items():
        alike.setdefault((_named(titles, totals.get(reason, len(kinds))), no_rate, reason), []).append(name)
    for (named, no_rate, reason), names in alike.items():
        what = "no rate" if no_rate else "a rate without interval"
        if "all" in names:
            yield f"all: {what} for {named}: {reason}."
            continue
        then = f", so {'they' if len(names) > 1 else 'it'} cannot be compared there" if no_rate else ""
        yield f"{_joined(names)}: {what} for {named}{then}: {reason}."


def _named(titles: Sequence[str], total: int) -> str:
    if len(titles) == total:
        return "any label" if total > 1 else titles[0]
    return _some(titles)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return _joined([*names[:_NAMES_SHOWN], f"{more:,} more"] if more > 0 else names)


def _unknown_denominators(results: schema.Results) -> Iterator[str]:
    shown = [
        figure
        for figure in figures(results)
        if figure.task != RATINGS and (not isinstance(figure.found, schema.Finding) or figure.found.any)
    ]
    known = [figure.found.denominators for figure in shown]
    of_groups = [group.denominators for figure in shown for group in figure.found.groups]
    parts: dict[str, str] = TEXTS["unknown"]
    unknown = [told for name, told in parts.items() if any(getattr(found, name) is None for found in known)]
    if all(found.discarded is not None for found in known) and any(found.discarded is None for found in of_groups):
        unknown.append("how many discarded responses belong to each group (`exports csv --discarded` tells)")
    if unknown:
        yield f"Not known: {'; '.join(unknown)}."


def share_of(rate: schema.Rate, term: str) -> float | None:
    return 1 - rate.rate if rate.rate is not None and term.startswith("not ") else rate.rate


def interval_of(rate: schema.Rate, term: str) -> schema.RateInterval | None:
    ends = rate.interval
    if ends is None or not term.startswith("not "):
        return ends
    return ends.model_copy(update={"low": 1 - ends.high, "high": 1 - ends.low})
