"""200 claims checked against 25 chapters of Debian's handbook, all pages against all claims, and reading them alone.

The floor is what any check has to do once: the sentences of each page, their words, and the form quotes are looked up
in.
"""

from pathlib import Path
from time import process_time

from pipeline.research.claims import verify
from pipeline.text.normal_form import normal_form
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import words_and_numbers
from pipeline.verifying.page_text import read_page
from pipeline.verifying.values import Claim, Page
from tests.benchmarks.measure import log, medians, report, seconds
from tests.support.debian_pages import HANDBOOK, PLACES
from tests.support.debian_web import title_and_text

CLAIMS_OF_EACH = 8


def chapters(folder: Path) -> list[Page]:
    """The longest chapters in English, each as if of a site of its own."""
    files = sorted(folder.glob("en-US/*.html"), key=lambda file: -file.stat().st_size)[:25]
    texts = [title_and_text(file) for file in files]
    return [
        Page(f"https://site{number}.test/", title, f"site{number}.test", "en", text, "2026-01-01T00:00:00Z")
        for number, (title, text) in enumerate(texts)
    ]


def claims_of(pages: list[Page]) -> list[Claim]:
    """Sentences from all over each page, with themselves as the quote."""
    claims: list[Claim] = []
    for page in pages:
        read = read_page(page)
        prose = [place for place, text in enumerate(read.sentences) if text.endswith(".") and 40 < len(text) < 300]
        for place in prose[:: max(1, len(prose) // CLAIMS_OF_EACH)][:CLAIMS_OF_EACH]:
            claims.append(Claim(f"c{len(claims) + 1}", read.sentences[place], 0, (read.quote(place),)))
    return claims


def read(pages: list[Page]) -> None:
    for page in pages:
        normal_form(page.text)
        for begin, end in sentence_spans(page.text, page.lang):
            words_and_numbers(page.text[begin:end], "")


def check(pages: list[Page], claims: list[Claim]) -> None:
    read_page.cache_clear()
    supported = sum(each.verdict == "supported" for each in verify(claims, pages).claims)
    if supported < len(claims) - 2:
        raise SystemExit(f"{supported} of {len(claims)} sentences were found on their own pages.")


def main() -> None:
    folder = next((place / HANDBOOK for place in PLACES if (place / HANDBOOK).exists()), None)
    if folder is None:
        raise SystemExit("Debian's handbook is not here: `make pages` fetches it.")
    pages = chapters(folder)
    claims = claims_of(pages)
    ours, floor = medians(
        (seconds(lambda: check(pages, claims), process_time), seconds(lambda: read(pages), process_time))
        for _ in range(3)
    )
    size = sum(len(page.text) for page in pages)
    log(f"{len(claims)} claims, {size:,} letters: {ours:.2f} s; reading alone {floor:.2f} s")
    report("verify", ours / floor, 10.0)
