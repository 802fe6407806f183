"""What cannot be told or compared, and why, in plain sentences.

Sentences hold names as they are: whoever puts one into HTML, Markdown, LaTeX or a terminal escapes it whole.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from exports.report.results_words import NOT_KNOWN, Figure, figures, group_name, joined
from exports.results.schema import NoFigure, Results

_NAMES_SHOWN = 6
NOT_IN_EVERY_PART = "not judged in every part"
"""Why a composite finding has no figure where labels may have one."""
_REASONS: dict[NoFigure, str] = {
    "no_units": "the jury judged none",
    "one_narrative": "all of it is on one narrative",
    "no_shared_narrative": "they have no narrative in common",
    "not_known": "the files do not tell",
}


def incomparable_sentences(results: Results) -> Iterator[str]:
    """What cannot be compared or has no figure, and why; then what the measuring remarked."""
    yield from _without_difference(results)
    yield from _without_figure(results)
    yield from _unknown_denominators(results)
    yield from results.remarks


def _without_difference(results: Results) -> Iterator[str]:
    """For each reason the groups that cannot be compared, and on which labels; not where one of them has no rate.

    One that cannot be compared with several others is named once, with them.
    """
    levels: dict[tuple[str, str, NoFigure, str], list[str]] = {}
    for (a, b, level), reasons in _reasons_by_pair(results).items():
        told = [title for title, reason in reasons.items() if reason is not None and reason != "no_units"]
        if told:
            named = "any label" if None not in reasons.values() else _named(told, 0)
            levels.setdefault((a, b, reasons[told[0]] or "not_known", named), []).append(level)
    pairs: dict[tuple[tuple[str, ...], NoFigure, str], list[tuple[str, str]]] = {}
    for (a, b, reason, named), own in levels.items():
        pairs.setdefault((tuple(own), reason, named), []).append((a, b))
    for (own_levels, reason, named), found in pairs.items():
        for group, others in _by_most_frequent(found):
            end = f"{_levels(own_levels)} on {named}: {_REASONS[reason]}."
            with_one = f"{group} and {others[0]} cannot be compared{end}"
            yield with_one if len(others) == 1 else f"{group} cannot be compared with {joined(others)}{end}"


def _levels(levels: Sequence[str]) -> str:
    """Within which levels of other columns, behind a space; the empty one stands for all of them together."""
    names = [level for level in levels if level]
    if not names:
        return ""
    return f" ({'nor ' if '' in levels else ''}within {_some(names)})"


def _reasons_by_pair(results: Results) -> dict[tuple[str, str, str], dict[str, NoFigure | None]]:
    """For each two groups and level why they cannot be compared, by the label's title; None where they can."""
    pairs: dict[tuple[str, str, str], dict[str, NoFigure | None]] = {}
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


def _without_figure(results: Results) -> Iterator[str]:
    """For each reason the groups that have no rate on some labels, or a rate without an interval."""
    lacking: dict[tuple[str, bool, str], list[str]] = {}
    for figure in figures(results):
        parts = [("all", figure.found), *((group_name(group.by), group) for group in figure.found.groups)]
        for name, rate in parts:
            if rate.undefined:
                reason = _reason(figure, rate.undefined)
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
        yield f"{joined(names)}: {what} for {named}{then}: {reason}."


def _reason(figure: Figure, reason: NoFigure) -> str:
    """Why there is no figure; of a composite finding some parts may have been judged."""
    return NOT_IN_EVERY_PART if figure.task is None and reason == "no_units" else _REASONS[reason]


def _named(titles: Sequence[str], total: int) -> str:
    """The labels by name, or how many they are where they are many."""
    if len(titles) == total:
        return "any label" if total > 1 else titles[0]
    return _some(titles)


def _some(names: Sequence[str]) -> str:
    """The names as a list in words, the first of them where they are many."""
    more = len(names) - _NAMES_SHOWN
    return joined([*names[:_NAMES_SHOWN], f"{more:,} more"] if more > 0 else names)


def _unknown_denominators(results: Results) -> Iterator[str]:
    """One sentence where the files do not tell all that stands behind the rates."""
    shown = list(figures(results))
    known = [figure.found.denominators for figure in shown]
    of_groups = [group.denominators for figure in shown for group in figure.found.groups]
    discards = any(found.discarded is None for found in known)
    parts = {
        "how many questions were asked, answered, refused or failed (`--runs` tells)": any(
            found.asked is None for found in known
        ),
        "how many answers cite nothing": any(found.without_citations is None for found in known),
        "how many cite a page that was not read": any(found.with_unread_sources is None for found in known),
        "how many responses were discarded (`exports csv --discarded` tells)": discards,
        "how many discarded responses belong to each group (`exports csv --discarded` tells)": not discards
        and any(found.discarded is None for found in of_groups),
    }
    unknown = [what for what, lacking in parts.items() if lacking]
    if unknown:
        yield f"Not known: {'; '.join(unknown)}."
