"""What differs between groups, in plain sentences, and whether it could have been beyond chance at all.

Sentences hold names as they are: whoever puts one into HTML, Markdown, LaTeX or a terminal escapes it whole.
"""

from collections.abc import Iterator, Sequence

from exports.report.results_words import NOT_KNOWN, SHARES, Figure, Scale, figures, group_name
from exports.report.words import p_phrase
from exports.results.reach import narratives_needed, within_reach
from exports.results.schema import Difference, RateInterval, Results
from pipeline.terminal import counted

DIFFERENCE_MEANING = (
    "Two groups are compared on the narratives that both have, each narrative against itself. Beyond chance: p below "
    ".05 after Holm's correction for all comparisons of all labels and findings."
)


def difference_sentence(title: str, found: Difference, scale: Scale = SHARES) -> str:
    """A difference that has a figure, the group with the higher rate first."""
    first, second, rates = found.a, found.b, (found.rate_a, found.rate_b)
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    difference = found.difference or 0.0
    if difference < 0:
        first, second, rates, difference = second, first, rates[::-1], -difference
        low, high = (None, None) if low is None or high is None else (-high, -low)
    interval = "" if low is None or high is None else " " + scale.interval(RateInterval(low=low, high=high, method=""))
    level = f" ({group_name(found.within)})" if found.within else ""
    p = "" if found.p_holm is None else f", {p_phrase(found.p_holm)} after Holm"
    return (
        f"{title}{level}: {first or NOT_KNOWN} {scale.value(rates[0])}, {second or NOT_KNOWN} {scale.value(rates[1])}: "
        f"{scale.apart(difference)} apart{interval}{p}, on {counted(found.n_narratives, 'narrative')} that both have."
    )


def standing_out(results: Results) -> Iterator[tuple[Figure, Difference]]:
    """The differences beyond chance: composite findings first, within one the greatest difference first."""
    for figure in figures(results):
        told = [found for found in figure.found.differences if found.stands_out]
        for found in sorted(told, key=lambda found: -abs(found.difference or 0.0)):
            yield figure, found


def difference_sentences(results: Results) -> Iterator[str]:
    """What differs beyond chance, a sentence each; where nothing does, one that says whether anything could have."""
    told = [difference_sentence(figure.title, found) for figure, found in standing_out(results)]
    compared = [found for figure in figures(results) for found in figure.found.differences if found.p is not None]
    if told:
        reached = sum(within_reach(compared))
        few = (
            "" if reached == len(compared) else f", of which {reached:,} have enough narratives in common to stand out"
        )
        yield from told
        yield f"{counted(len(told), 'difference')} of {len(compared):,} that were compared{few}."
    elif compared:
        yield no_difference_sentence(compared)
    else:
        yield "Cannot be told: no two groups could be compared."


def no_difference_sentence(compared: Sequence[Difference]) -> str:
    """That none of the differences is beyond chance, or that none could have been: they are one or more, with a p."""
    reached = sum(within_reach(compared))
    if not reached:
        most, needed = max(found.n_narratives for found in compared), narratives_needed(compared)
        return (
            f"Cannot be told: with at most {counted(most, 'narrative')} in common none of "
            f"{counted(len(compared), 'difference')} could be beyond chance; {needed:,} are needed."
        )
    few = "" if reached == len(compared) else f"; only {reached:,} of them have enough narratives in common to be"
    return f"None of {counted(len(compared), 'difference')} is beyond chance{few}."
