"""Evidence on a context of 2 MB against one of 0.5 MB: four times the work for a check that takes linear time.

A context is read once and checked against 1,000 items: half of them quotes of it in another case, half quotes with one
other word, all with the forms that were compared. Median of interleaved rounds; the times themselves go to stderr.
"""

import random
import statistics

from pipeline.models.evidence import aggregate_context, read_context, validate_and_normalize_evidence
from tests.benchmarks.measure import log, report, seconds

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


def main() -> None:
    contexts = {size: make_context(size) for size in SIZES}
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):
        for size, (context, items) in contexts.items():

            def check(context: str = context, items: list[dict[str, str]] = items) -> None:
                found = validate_and_normalize_evidence(read_context(context), items, max_items=ITEMS, explain=True)
                if len(found.errors) != ITEMS // 2:
                    raise SystemExit(f"{len(found.errors)} quotes were not found, not {ITEMS // 2}.")

            times[size].append(seconds(check))
    small, large = (statistics.median(times[size]) for size in SIZES)
    log(f"{ITEMS} items: {small:.2f} s on 0.5 MB, {large:.2f} s on 2 MB")
    report("evidence, 2 MB against 0.5 MB", large / small, GOAL)
