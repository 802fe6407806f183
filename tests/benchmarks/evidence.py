"""Evidence on a context of 2 MB against one of 0.5 MB: four times the work for a check that takes linear time.

A context is read once and checked against 1,000 items: half of them quotes of it in another case, half quotes with one
other word, all with the forms that were compared. Median of interleaved rounds; the times themselves go to stderr.
"""

import random
import statistics
import sys
import time

from pipeline.models.evidence import Validated, aggregate_context, read_context, validate_and_normalize_evidence

GOAL = 4.5
SIZES = (500_000, 2_000_000)
ITEMS = 1000
ROUNDS = 3
PAGE_WORDS = 1500
SENTENCE = "The “report” says — once more — that it’s 5 °C in the Straße &amp; rain fell over München, 東京 and Zürich."


def make_context(size: int) -> tuple[str, list[dict[str, str]]]:
    """A context of about `size` characters, and items for it."""
    draw = random.Random(size)
    known = SENTENCE.split()
    pages: list[tuple[str, str]] = []
    while sum(len(text) for _, text in pages) < size:
        words = [f"{draw.choice(known)}{draw.choice(['', '', draw.randrange(1000)])}" for _ in range(PAGE_WORDS)]
        lines = [" ".join(words[start : start + 50]) for start in range(0, PAGE_WORDS, 50)]
        pages.append((f"https://site{len(pages)}.example/page", "\n".join(lines)))
    items = []
    for number in range(ITEMS):
        url, text = draw.choice(pages)
        words = text.split()
        first = draw.randrange(len(words) - 30)
        quote = words[first : first + 30]
        if number % 2:
            quote[15] = "otherwise"
        items.append({"url": url, "snippet": " ".join(quote).upper()})
    return aggregate_context(pages), items


def seconds_of(context: str, items: list[dict[str, str]]) -> tuple[float, Validated]:
    started = time.perf_counter()
    checked = validate_and_normalize_evidence(read_context(context), items, max_items=ITEMS, explain=True)
    return time.perf_counter() - started, checked


def main() -> None:
    contexts = {size: make_context(size) for size in SIZES}
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):
        for size, (context, items) in contexts.items():
            taken, checked = seconds_of(context, items)
            if len(checked.errors) != ITEMS // 2:
                raise SystemExit(f"{len(checked.errors)} quotes were not found, not {ITEMS // 2}.")
            times[size].append(taken)
    small, large = (statistics.median(times[size]) for size in SIZES)
    sys.stderr.write(f"{ITEMS} items: {small:.2f} s on 0.5 MB, {large:.2f} s on 2 MB\n")
    verdict = "ok" if large / small <= GOAL else "short"
    sys.stdout.write(f"evidence, 2 MB against 0.5 MB\t{large / small:.2f}\t<={GOAL:.2f}\t{verdict}\n")


if __name__ == "__main__":
    main()
