"""Stored pages and a record go in; the record comes out with its sources' states and its best passages.

Texts that the payload carries are all kept. Of the pages that were read each gets its best passage, then the best of
the rest follow, up to a number of passages and of tokens (pipeline/contracts/records.md#passages).
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import NamedTuple, get_args
from urllib.parse import urldefrag

from pipeline.citations import addresses
from pipeline.core.errors import InputError
from pipeline.core.terminal import printable
from pipeline.records.causes import NOT_ASKED, Archived, SourceState, state_of
from pipeline.records.schema import Passage, QueryResponse, Source, defuse_separator, join_context
from pipeline.sources.chunk import page_chunks
from pipeline.sources.schema import READ, Chunk
from pipeline.sources.store import Outcome, Store
from pipeline.text.words import content_words, without_marks

_SEARCH = "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?"


def rank_passages(query: str, answer: str, texts: Sequence[str], language: str = "") -> list[int]:
    """The places of the texts, the best match first; those that match alike, or not at all, keep their order."""
    asked = {*content_words(query, language), *content_words(without_marks(answer), language)}
    codes = {word: f"w{number}" for number, word in enumerate(sorted(asked))}
    scores = [0.0] * len(texts)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE passages USING fts5(words, content='', tokenize='ascii')")
        for place, text in enumerate(texts):
            # So the search sees the words as they were found here, and none of its own syntax in them; how long the
            # text is counts as well, so those that are not asked for are one more word.
            words = " ".join([codes.get(word, "x") for word in content_words(text, language)])
            database.execute("INSERT INTO passages (rowid, words) VALUES (?, ?)", [place, words])
        # The score of many words is the sum of theirs, and one search for all of them takes time with their square.
        for code in codes.values():
            for place, score in database.execute(_SEARCH, [code]):
                scores[place] += score
    # Scores that differ in later digits only are ties: the sum of the same numbers depends on their order.
    return sorted(range(len(texts)), key=lambda place: (round(scores[place], 9), place))


class PassageLimits(NamedTuple):
    """How much of the pages one record gets; what its payload carries is not counted."""

    passages: int = 5  # Passages of pages, unless more pages were read: then one of each
    context_tokens: int = 2000  # Tokens of them together, of `o200k_base`
    chunk_tokens: int = 250


class PageChunks(NamedTuple):
    url: str
    doc_id: str
    title: str
    chunks: Sequence[Chunk]  # None of them empty


class ChunkPlace(NamedTuple):
    """Both counted from 0."""

    page: int
    position: int


class Candidate(NamedTuple):
    place: ChunkPlace
    chunk: Chunk


class Selected(NamedTuple):
    """A record with its passages, and the pages of which the tokens left none."""

    record: QueryResponse
    left_out: tuple[str, ...]


def select_passages(record: QueryResponse, pages: Sequence[PageChunks], limits: PassageLimits) -> Selected:
    """The record with the best passages of these pages beside those it has, all in the order of their rank.

    A text on two pages is taken from the first, and not again where the payload carries it. A page whose best passage
    does not fit into the tokens is left out.
    """
    held = record.chunks
    candidates = list(distinct_chunks(pages, (passage.text for passage in held)))
    texts = [*(passage.text for passage in held), *(candidate.chunk.text for candidate in candidates)]
    language = "" if record.language == "und" else record.language
    order = rank_passages(record.query, record.answer, texts, language)
    chosen = _choose([candidates[place - len(held)] for place in order if place >= len(held)], limits)
    ranked = [
        held[place] if place < len(held) else passage_of(pages, candidates[place - len(held)])
        for place in order
        if place < len(held) or candidates[place - len(held)].place in chosen
    ]
    passages = tuple(passage.model_copy(update={"chunk_rank": rank}) for rank, passage in enumerate(ranked, start=1))
    left_out = sorted({candidate.place.page for candidate in candidates} - {page for page, _ in chosen})
    return Selected(
        record.model_copy(update={"chunks": passages, "context_set": join_context(passages)}),
        tuple(pages[page].url for page in left_out),
    )


def distinct_chunks(pages: Sequence[PageChunks], held: Iterable[str]) -> Iterator[Candidate]:
    """The chunks page by page; of those that differ in white space and case alone the first, none of the texts held."""
    seen = {_plain(text) for text in held}
    for number, page in enumerate(pages):
        for position, chunk in enumerate(page.chunks):
            if _plain(chunk.text) not in seen:
                seen.add(_plain(chunk.text))
                yield Candidate(ChunkPlace(number, position), chunk)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _choose(ranked: Sequence[Candidate], limits: PassageLimits) -> set[ChunkPlace]:
    """The best one of each page, then the best of the rest, as far as the limits go; `ranked` has the best first."""
    best: dict[int, Candidate] = {}
    for candidate in ranked:
        best.setdefault(candidate.place.page, candidate)
    firsts = {candidate.place for candidate in best.values()}
    chosen: set[ChunkPlace] = set()
    tokens = 0
    for place, chunk in [*best.values(), *(candidate for candidate in ranked if candidate.place not in firsts)]:
        wanted = place in firsts or len(chosen) < limits.passages
        if wanted and tokens + chunk.tokens <= limits.context_tokens:
            chosen.add(place)
            tokens += chunk.tokens
    return chosen


def passage_of(pages: Sequence[PageChunks], candidate: Candidate) -> Passage:
    page = pages[candidate.place.page]
    return Passage(
        chunk_id=f"{page.doc_id}#{candidate.place.position}",
        doc_id=page.doc_id,
        chunk_rank=1,
        text=defuse_separator(candidate.chunk.text),
        title=page.title,
        url=page.url,
        origin="page",
    )


class CitedPage(NamedTuple):
    url: str  # The page's URL, canonical, as its passages name it; empty where the cited URL is none
    key: str  # What it is fetched and stored by: the same without its fragment; empty where the cited URL is none
    reason: str = ""  # Why there is no key; empty where there is one


def cited_page(url: str, targets: Mapping[str, str]) -> CitedPage:
    page = targets.get(url, url)
    try:
        canonical = addresses.canonical_url(page)
    except InputError:
        return CitedPage("", "", addresses.reason_without_page(page))
    return CitedPage(canonical, urldefrag(canonical).url)


def outcome_of(cited: CitedPage, store: Store | None) -> Outcome:
    """What became of the page by the store; `not_tried` where nothing is known of it."""
    if cited.reason:
        return Outcome(cited.reason)
    return (store.outcome(cited.key) if store else None) or Outcome("not_tried")


def archived_as(cited: CitedPage, reason: str, store: Store | None) -> Archived:
    """What an archive says of a page that is gone; empty of any other, and where none was asked."""
    return store.archived(cited.key) if store and state_of(reason) == "gone" else ""


class Shelf:
    """The store seen from the answers: their sources' states and the chunks of what was read."""

    def __init__(self, store: Store | None, targets: Mapping[str, str], limits: PassageLimits) -> None:
        self.store = store
        self.targets = targets
        self.limits = limits
        # Answers to one narrative cite the same pages, and stand far apart in the run: one provider's follow another's.
        self.chunks_of = lru_cache(64)(self.read_chunks)

    def read_chunks(self, key: str) -> tuple[str, str, tuple[Chunk, ...]]:
        page = self.store.page(key, with_raw=False) if self.store else None
        if page is None or not page.text.strip():
            return "", "", ()
        chunks = page_chunks(page.url, page.text, page.lang, self.limits.chunk_tokens, page.page_starts)
        return page.final_url, page.title, tuple(chunks)

    def with_pages(self, record: QueryResponse) -> Selected:
        pages: dict[str, PageChunks] = {}
        sources = []
        for source in record.sources:
            cited = cited_page(source.url, self.targets)
            outcome = outcome_of(cited, self.store)
            reason = outcome.reason
            if reason in READ:
                final_url, title, chunks = self.chunks_of(cited.key)
                # A redirect of the provider's whose target nobody has looked up: where it led when it was fetched.
                led = cited_page(final_url, {}).url if final_url and addresses.is_grounding_redirect(cited.url) else ""
                url = led or cited.url
                pages.setdefault(url, PageChunks(url, addresses.document_id(url), title or source.title, chunks))
                source = _with_state(source, reason, url, title, outcome.read_share)
                source = source.model_copy(update={"fetched_on": outcome.ts[:10]})
            else:
                held = source.state == "read"
                source = _with_state(source, source.reason if held else reason, cited.url or source.url, "")
                source = source.model_copy(update={"archived": archived_as(cited, source.reason, self.store)})
            sources.append(source)
        record = record.model_copy(update={"sources": tuple(sources)})
        return select_passages(record, list(pages.values()), self.limits)


def _with_state(source: Source, reason: str, url: str, title: str, share: float | None = None) -> Source:
    redirected = addresses.is_grounding_redirect(source.url) and not addresses.is_grounding_redirect(url)
    own = cited_page(source.url, {}).url
    is_longer = bool(own) and url != own and not addresses.is_grounding_redirect(source.url)
    hidden = addresses.is_grounding_redirect(source.host and f"https://{source.host}/")
    return source.model_copy(
        update={
            "state": state_of(reason),
            "reason": reason,
            "read_share": share,
            "title": source.title or title,
            "page_url": url if redirected or is_longer else "",
            "host": addresses.source_domain(url) if redirected and hidden else source.host,
        }
    )


_STATES: tuple[SourceState, ...] = get_args(SourceState)
_SITES_SHOWN, _FAILURES_SHOWN, _URL_SHOWN = 10, 100, 160


class Tally:
    """Counts of distinct pages by site, and of the records that cite them."""

    def __init__(self) -> None:
        self.sites: dict[str, Counter[str]] = {}
        self.reasons: Counter[str] = Counter()
        self.failures: list[tuple[str, str, str]] = []
        """URL, reason and detail of pages that were not read, the first ones."""
        self.measured = self.partly_read = 0
        self.archived: Counter[Archived] = Counter()  # Pages that are gone by what an archive says of them
        self.not_asked = 0
        self.records = self.with_passages = self.sources = self.read_sources = self.short = self.left_out = 0

    def add_page(self, site: str, url: str, reason: str, detail: str, archived: Archived = "") -> None:
        """Count a distinct cited page; the first of those that were not read are kept to be named."""
        self.sites.setdefault(site or "(no site)", Counter())[reason] += 1
        self.reasons[reason] += 1
        self.archived[archived] += state_of(reason) == "gone"
        self.not_asked += NOT_ASKED in detail
        if state_of(reason) not in ("read", "unfetched") and len(self.failures) < _FAILURES_SHOWN:
            self.failures.append((url, reason, detail))

    def add_record(self, record: QueryResponse, left_out: int) -> None:
        self.records += 1
        self.with_passages += bool(record.chunks)
        self.sources += len(record.sources)
        self.read_sources += sum(source.state == "read" for source in record.sources)
        self.measured += sum(source.read_share is not None for source in record.sources)
        self.partly_read += sum(source.percent_read is not None for source in record.sources)
        self.short += left_out > 0
        self.left_out += left_out

    def by_state(self) -> Counter[str]:
        states: Counter[str] = Counter()
        for reason, count in self.reasons.items():
            states[state_of(reason)] += count
        return states


def pages_line(tally: Tally) -> str:
    states = tally.by_state()
    counted = ", ".join(f"{states[state]:,} {state}" for state in _STATES if states[state])
    return f"Cited pages: {states.total():,}" + (f" ({counted})." if counted else ".")


def tally_lines(tally: Tally) -> Iterator[str]:
    """The summary, line by line: states, sites, what was not read, records."""
    yield pages_line(tally)
    ordered = sorted(tally.sites.items(), key=lambda item: (-item[1].total(), item[0]))
    for site, reasons in ordered[:_SITES_SHOWN]:
        yield f"  {printable(site)}: {_reasons_text(reasons)}"
    if len(ordered) > _SITES_SHOWN:
        rest = sum((reasons for _, reasons in ordered[_SITES_SHOWN:]), Counter[str]())
        yield f"  {len(ordered) - _SITES_SHOWN:,} other sites: {_reasons_text(rest)}"
    yield from failure_lines(tally)
    if tally.short:
        yield f"In {tally.short:,} records the tokens were not enough for {tally.left_out:,} of the pages read,"
        yield "which stand in the list of sources alone; `--context-tokens` gives more room."
    ending = f"of {tally.sources:,} citations {tally.read_sources:,} can be read."
    yield f"{tally.records:,} records, {tally.with_passages:,} of them with passages; {ending}"
    if tally.measured:
        of = f"{tally.partly_read:,} of the {tally.measured:,} citations whose pages' words were counted"
        yield f"Partly read, less than 90 % of the words: {of}."
    yield "Records without passages go to the generation task only."


def _reasons_text(reasons: Counter[str]) -> str:
    ordered = sorted(reasons.items(), key=lambda item: (_STATES.index(state_of(item[0])), item[0]))
    return ", ".join(f"{count:,} {state_of(reason)} ({reason})" for reason, count in ordered)


def failure_lines(tally: Tally) -> Iterator[str]:
    failed = sum(count for reason, count in tally.reasons.items() if state_of(reason) not in ("read", "unfetched"))
    if failed:
        yield "Not read:"
    for url, reason, detail in tally.failures:
        why = f": {printable(detail)}" if detail else ""
        shown = printable(addresses.shown_url(addresses.without_password(url)))
        shown = shown if len(shown) <= _URL_SHOWN else f"{shown[:_URL_SHOWN]}…"
        yield f"  {state_of(reason)} ({reason}) {shown}{why}"
    if failed > len(tally.failures):
        yield f"  and {failed - len(tally.failures):,} more; each record's `sources` name state and reason of all."
    states, said = tally.by_state(), tally.archived
    if states["gone"] and said[""] < states["gone"]:
        known = f"has seen {said['seen']:,} and never {said['never']:,}"
        yield f"Of {states['gone']:,} pages that are gone an archive {known};"
        yield f"it gave no clear answer for {said['unknown']:,}, and was not asked for {said['']:,}."
    if states["unreached"]:
        private = " `--allow-address` opens a private server." if tally.reasons["refused"] else ""
        yield f"Not reached: {states['unreached']:,} of {states.total():,}. That says nothing about these pages."
        yield f"The next run that may ask the web tries them again.{private}"
    if tally.not_asked:
        yield f"{tally.not_asked:,} of these were not asked, as their host had stopped answering; they come first then."
