"""Queries to the search in one's own pages, 3,302 of Debian's handbook in 25 languages, against SQLite's FTS5 alone.

FTS5 has the same passages and tokeniser and is asked the same; then ten pages are read from the store. Ours ends in
ten results with their best passages. Seconds and the indexing of both go to stderr. Prints one line: name, ratio,
goal, `ok` or `short`.
"""

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2]))

from pipeline.research.search._local import CREATE, MOST_QUERY_WORDS, LocalSearch, passage_spans, phrase
from pipeline.sources.store import Store, StoredPage, open_store
from pipeline.text.words import content_words
from tests.support.debian_pages import HANDBOOK, PLACES
from tests.support.debian_web import title_and_text

NAME = "local_search"
GOAL = 2.5
RESULTS = 10
QUERIES = (
    "How does apt verify the signature of a package?",
    "Which steps does the installation of Debian take?",
    "firewall rules with netfilter",
    "Wie richtet man einen Mailserver mit Postfix ein?",
    "Logical Volume Manager und RAID",
    "パッケージの署名を検証する方法",
    "如何配置网络接口",
    "Comment sauvegarder un serveur Debian ?",
)
FLOOR = "SELECT rowid, bm25(passages) AS score FROM passages WHERE passages MATCH ? ORDER BY score LIMIT ?"
ROUNDS = 5


def handbook_pages(folder: Path) -> Iterator[StoredPage]:
    """Every page of the handbook, with all text in its HTML."""
    for number, file in enumerate(sorted(folder.glob("*/*.html"))):
        title, text = title_and_text(file)
        url = f"https://{file.parent.name.lower()}.handbook.test/{file.name}"
        yield StoredPage(
            url, url, text, title, "", "", "text/html", str(number), "2026-01-01T00:00:00Z", b"", "", 200, "page", ""
        )


def floor_index(pages: Sequence[StoredPage]) -> sqlite3.Connection:
    """FTS5 with the passages of these pages as they are."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute(CREATE)
    database.execute("BEGIN")
    for page in pages:
        rows = [(page.title, page.text[start:end]) for start, end in passage_spans(page.text)]
        database.executemany("INSERT INTO passages (title, text) VALUES (?, ?)", rows)
    database.execute("COMMIT")
    return database


def floor_seconds(database: sqlite3.Connection, owners: Sequence[str], store: Store, query: str) -> float:
    """How long FTS5 takes over the words of the query, and the store over the pages that it names."""
    words = " OR ".join(map(phrase, list(dict.fromkeys(content_words(query)))[:MOST_QUERY_WORDS]))
    start = perf_counter()
    for rowid, _ in database.execute(FLOOR, (words, RESULTS)).fetchall():
        store.page(owners[rowid - 1], with_raw=False)
    return perf_counter() - start


def search_seconds(provider: LocalSearch, query: str) -> float:
    """How long we take over it."""
    start = perf_counter()
    results = asyncio.run(provider.search(query, RESULTS))
    taken = perf_counter() - start
    if len(results) < RESULTS:
        raise SystemExit(f"{query!r} found {len(results)} pages.")
    return taken


def measure(store: Store, pages: Sequence[StoredPage]) -> float:
    """Our time over the floor's; the median of all queries and rounds of each."""
    for page in pages:
        store.put_page(page)
    provider = LocalSearch(None, store)
    start = perf_counter()
    search_seconds(provider, QUERIES[0])
    indexing, start = perf_counter() - start, perf_counter()
    database = floor_index(pages)
    floor_indexing = perf_counter() - start
    owners = [page.url for page in pages for _ in passage_spans(page.text)]
    pairs = [
        (search_seconds(provider, query), floor_seconds(database, owners, store, query))
        for _ in range(ROUNDS)
        for query in QUERIES
    ]
    ours, floor = (median(taken) for taken in zip(*pairs, strict=True))
    sys.stderr.write(
        f"{len(pages):,} pages indexed in {indexing:.1f} s, by FTS5 alone in {floor_indexing:.1f} s; a query takes "
        f"{ours * 1000:.1f} ms, FTS5 and the store {floor * 1000:.1f} ms\n"
    )
    return ours / floor


def main() -> None:
    """Print the row."""
    folder = next((place / HANDBOOK for place in PLACES if (place / HANDBOOK).exists()), None)
    if folder is None:
        raise SystemExit("Debian's handbook is not here: `make pages` fetches it.")
    pages = list(handbook_pages(folder))
    with tempfile.TemporaryDirectory() as place, open_store(Path(place) / "store.db") as store:
        ratio = measure(store, pages)
    sys.stdout.write(f"{NAME}\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()
