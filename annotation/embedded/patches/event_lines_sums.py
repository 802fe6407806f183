"""Events that come often, told as one line for a while of them; all of it on the web's event loop."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from annotation.embedded.home.event_lines import tell

K = TypeVar("K", bound=Hashable)
MINUTE = 60.0


class Sums(Generic[K]):
    """Counts by key, told together `seconds` after the first of them."""

    def __init__(self, seconds: float, lines: Callable[[Mapping[K, int]], Iterable[str]]) -> None:
        """Nothing is counted yet; `lines` puts the counts into words."""
        self.seconds = seconds
        self.lines = lines
        self.counts: Counter[K] = Counter()
        TOLD_AT_THE_END.append(self.tell)

    def add(self, key: K, count: int = 1) -> bool:
        """Count; whether it is the first of its kind since the last telling."""
        if not self.counts:
            asyncio.get_running_loop().call_later(self.seconds, self.tell)
        self.counts[key] += count
        return self.counts[key] == count

    def tell(self) -> None:
        """Write the lines, and begin anew."""
        counts, self.counts = self.counts, Counter()
        for line in self.lines(counts):
            tell(line)


TOLD_AT_THE_END: list[Callable[[], None]] = []
"""What writes down the counts of each sum of this process."""


def tell_repeatedly(sums: Sums[str], text: str) -> None:
    """Write the line at once where it is the first of its kind in a minute; the others are counted."""
    if sums.add(text):
        tell(text)


def repeats() -> Sums[str]:
    """Counts of lines of which the first was written at once."""
    return Sums(
        MINUTE,
        lambda counts: [f"{text} ({count - 1:,} more within a minute)" for text, count in counts.items() if count > 1],
    )


def tell_all() -> None:
    """Write what is counted and not yet told."""
    for write in TOLD_AT_THE_END:
        write()
