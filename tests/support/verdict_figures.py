"""Print how good verdicts without a model are: `python -m tests.support.verdict_figures`, `--rows` for figures.md.

Who is supported in part counts as not supported. Sets beside the project are left out where they are missing.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import NamedTuple

from exports.statistics.distributions import wilson_interval
from pipeline.verifying.values import Verdict
from tests.support.verdict_data import Judged, judged, sets

COMMAND = "python -m tests.support.verdict_figures --rows"
TRUTHS = (True, None, False)


class Share(NamedTuple):
    of: int
    total: int

    def __str__(self) -> str:
        return short(self.of / self.total) if self.total else "–"

    @property
    def interval(self) -> str:
        low, high = wilson_interval(self.of, self.total)
        return f"[{short(low)}, {short(high)}]"


def short(share: float) -> str:
    """The share with three digits, as documentation writes it: `.950`, `1.00`."""
    return "1.00" if share > 0.9995 else f"{share:.3f}".removeprefix("0")


class Figures(NamedTuple):
    name: str
    cases: dict[bool | None, int]
    """By what people say: supported, in part, not."""
    verdicts: dict[tuple[bool | None, Verdict], int]
    score: tuple[float, float]
    """Area under the curve of the score, supported against all others, and half of its 95 % interval."""
    plain: tuple[float, float]
    """The same of the share of a sentence's words that its pages have."""

    @property
    def kind(self) -> str:
        """Whether anything was chosen on the set: edits were looked at while the rules were written."""
        return "fitted on" if self.name.startswith("edits") else "measured here"

    def said(self, verdict: Verdict, *truths: bool | None) -> Share:
        return Share(sum(self.verdicts[truth, verdict] for truth in truths), sum(self.cases[truth] for truth in truths))

    @property
    def right(self) -> Share:
        """How many of those that are called supported are supported wholly."""
        return Share(self.verdicts[True, "supported"], self.said("supported", *TRUTHS).of)

    def by_truth(self, verdict: Verdict) -> str:
        return ", ".join(str(self.verdicts[truth, verdict]) for truth in TRUTHS)


def figures_of(name: str, found: Sequence[Judged]) -> Figures:
    return Figures(
        name,
        Counter(each.case.truth for each in found),
        Counter((each.case.truth, each.finding.verdict) for each in found),
        area_under_curve(found, [each.finding.score for each in found]),
        area_under_curve(found, [each.plain for each in found]),
    )


def area_under_curve(found: Sequence[Judged], scores: Sequence[float]) -> tuple[float, float]:
    """The area, ties counted half, with half of its interval (Hanley and McNeil 1982); 0.5 for a set of one kind."""
    true, other = (
        [score for each, score in zip(found, scores, strict=True) if (each.case.truth is True) is is_true]
        for is_true in (True, False)
    )
    if not (true and other):
        return 0.5, 0.5
    area = sum((one > two) + 0.5 * (one == two) for one in true for two in other) / (len(true) * len(other))
    above, below = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    variance = area * (1 - area) + (len(true) - 1) * above + (len(other) - 1) * below
    return area, 1.96 * sqrt(variance / (len(true) * len(other)))


def table_row(each: Figures) -> str:
    """The set as a row of the table in pipeline/README.md."""
    counts = ", ".join(str(each.cases[truth]) for truth in TRUTHS)
    right = f"{each.right.of} of {each.right.total} = {each.right} {each.right.interval}" if each.right.total else "–"
    cells = [each.name, each.kind, counts, each.by_truth("supported"), right, str(each.said("cannot_tell", *TRUTHS))]
    cells += [
        each.by_truth("contradicted"),
        each.by_truth("not_found"),
        f"{short(each.score[0])}; {short(each.plain[0])}",
    ]
    return f"| {' | '.join(cells)} |"


def rows_of(each: Figures) -> Iterator[str]:
    """The set as rows of exports/contracts/figures.md, a figure a row."""
    shares = [
        ("of those called `supported`, the share that is wholly supported", each.right),
        ("of the wholly supported, the share called `supported`", each.said("supported", True)),
        ("of all others, the share called `supported`", each.said("supported", None, False)),
        ("of all, the share of `cannot_tell`", each.said("cannot_tell", *TRUTHS)),
        ("of the wholly supported, the share called `contradicted`", each.said("contradicted", True)),
        ("of all others, the share called `contradicted`", each.said("contradicted", None, False)),
        ("of the wholly supported, the share called `not_found`", each.said("not_found", True)),
        ("of all others, the share called `not_found`", each.said("not_found", None, False)),
    ]
    for what, share in shares:
        if share.total:
            yield _row(str(share), f"{what}: {share.of} of {share.total} {share.interval}", each)
    if each.cases[True] < sum(each.cases.values()):
        for what, (area, half) in (("the score", each.score), ("the share of words", each.plain)):
            interval = f"[{short(max(0, area - half))}, {short(min(1, area + half))}]"
            yield _row(short(area), f"AUC of {what}, wholly supported against all others {interval}", each)


def _row(figure: str, what: str, each: Figures) -> str:
    """One row; behind the name of the set how many are supported, in part, and not."""
    counts = ", ".join(str(each.cases[truth]) for truth in TRUTHS)
    return f"| {figure} | {what} | {each.name}: {counts} | {each.kind} | `{COMMAND}` |"


def main() -> None:
    show = rows_of if "--rows" in sys.argv else lambda each: [table_row(each)]
    for name, cases in sets().items():
        for line in show(figures_of(name, [judged(case) for case in cases])):
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
