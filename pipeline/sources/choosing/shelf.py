"""The pages that answers cite, as the store holds them: what became of each, and its chunks."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urldefrag

from pipeline.errors import InputError
from pipeline.records import QueryResponse, Source
from pipeline.sources.choosing.chunk import page_chunks
from pipeline.sources.choosing.select import PageChunks, PassageLimits, Selected, select_passages
from pipeline.sources.schema import READ, Chunk, state_of
from pipeline.sources.store import Outcome, Store
from pipeline.text.urls import canonical_url, document_id, has_user_name, is_grounding_redirect, source_domain

# Answers to one narrative cite the same pages, and stand far apart in the run: one provider's follow another's.
_CHUNKED_PAGES = 64


class CitedPage(NamedTuple):
    """What a cited URL leads to."""

    url: str
    """The page's URL, canonical, as its passages name it; empty where the cited URL is none."""
    key: str
    """What it is fetched and stored by: the same without its fragment; empty where the cited URL is none."""
    reason: str = ""
    """Why there is no key: `refused` or `not_a_url`; empty where there is one."""


def cited_page(url: str, targets: Mapping[str, str]) -> CitedPage:
    """What the cited URL leads to; `targets` has those of the provider's redirects that are known."""
    page = targets.get(url, url)
    try:
        canonical = canonical_url(page)
    except InputError:
        return CitedPage("", "", "refused" if has_user_name(page) else "not_a_url")
    return CitedPage(canonical, urldefrag(canonical).url)


def outcome_of(cited: CitedPage, store: Store | None) -> Outcome:
    """What became of the page by the store; `not_tried` where nothing is known of it."""
    if cited.reason:
        return Outcome(cited.reason)
    return (store.outcome(cited.key) if store else None) or Outcome("not_tried")


class Shelf:
    """The store seen from the answers: their sources' states and the chunks of what was read."""

    def __init__(self, store: Store | None, targets: Mapping[str, str], limits: PassageLimits) -> None:
        """Without a store no page is held."""
        self.store = store
        self.targets = targets
        self.limits = limits
        self.chunks_of = lru_cache(_CHUNKED_PAGES)(self.read_chunks)

    def read_chunks(self, key: str) -> tuple[str, str, tuple[Chunk, ...]]:
        """Final URL, title and chunks of a page that was read."""
        page = self.store.page(key, with_raw=False) if self.store else None
        if page is None or not page.text.strip():
            return "", "", ()
        chunks = page_chunks(page.url, page.text, page.lang, self.limits.chunk_tokens, page.page_starts)
        return page.final_url, page.title, tuple(chunks)

    def with_pages(self, record: QueryResponse) -> Selected:
        """The record with every source's state and reason, and with passages of the pages that were read."""
        pages: dict[str, PageChunks] = {}
        sources = []
        for source in record.sources:
            cited = cited_page(source.url, self.targets)
            reason = outcome_of(cited, self.store).reason
            if reason in READ:
                final_url, title, chunks = self.chunks_of(cited.key)
                url = _page_url(cited, final_url)
                pages.setdefault(url, PageChunks(url, document_id(url), title or source.title, chunks))
                source = _with_state(source, reason, url, title)
            else:
                held = source.state == "read"
                source = _with_state(source, source.reason if held else reason, cited.url or source.url, "")
            sources.append(source)
        record = record.model_copy(update={"sources": tuple(sources)})
        return select_passages(record, list(pages.values()), self.limits)


def _page_url(cited: CitedPage, final_url: str) -> str:
    """The page's URL; for a redirect of the provider whose target nobody has looked up, where it led when fetched."""
    if not is_grounding_redirect(cited.url) or not final_url:
        return cited.url
    return cited_page(final_url, {}).url or cited.url


def _with_state(source: Source, reason: str, url: str, title: str) -> Source:
    """The source with its state, its reason, and the page behind it where the provider's redirect hides one."""
    redirected = is_grounding_redirect(source.url) and not is_grounding_redirect(url)
    hidden = is_grounding_redirect(source.host and f"https://{source.host}/")
    return source.model_copy(
        update={
            "state": state_of(reason),
            "reason": reason,
            "title": source.title or title,
            "page_url": url if redirected else "",
            "host": source_domain(url) if redirected and hidden else source.host,
        }
    )
