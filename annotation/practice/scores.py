"""What somebody's first answers to the cases of a practice came to, and whether that opens the rest.

Source: annotation/contracts/practice.md#pass-mark.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

_EXACT = 1e-9  # .7 of 10 answers are 7, whatever the multiplication gives


class Standing(NamedTuple):
    """How far one person is in the practice of one task and language."""

    cases: int
    """Cases of the practice."""
    answered: int
    """Those that she submitted or discarded."""
    known: int
    """Known answers to all cases."""
    right: int
    """Known answers that her first ones agree with; what she has not submitted agrees with none."""
    wanted: int
    """How many have to agree."""
    attempts: int
    """How many times she began the round anew."""
    opened: bool
    """Whether the lead has opened the rest to her without it."""
    is_ready: bool = True
    """Whether set-up has put in all cases, after which it writes the pass mark."""

    @property
    def is_whole(self) -> bool:
        """Whether she has answered all cases."""
        return self.answered >= self.cases

    @property
    def opens(self) -> bool:
        """Whether the rest is open to her; it is where set-up is done and there is nothing to practise."""
        return self.opened or (self.is_ready and self.is_whole and self.right >= self.wanted)

    @property
    def may_repeat(self) -> bool:
        """Whether she may answer all cases anew."""
        return self.is_ready and self.is_whole and not self.opens


def standing(
    known: Mapping[str, Mapping[str, bool]],
    first: Mapping[str, Mapping[str, bool]],
    answered: int,
    pass_mark: float | None,
    attempts: int = 0,
    opened: bool = False,
) -> Standing:
    """What her first answers came to; `known` and `first` are answers by label, by case.

    Without a pass mark, set-up is not done, and all answers are wanted.
    """
    total = sum(map(len, known.values()))
    right = sum(
        first.get(case, {}).get(label) is answer for case, answers in known.items() for label, answer in answers.items()
    )
    wanted = total if pass_mark is None else math.ceil(total * pass_mark - _EXACT)
    return Standing(len(known), answered, total, right, wanted, attempts, opened, pass_mark is not None)
