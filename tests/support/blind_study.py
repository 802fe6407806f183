"""Answers of every provider that differ in nothing but how the provider sends them, and how well a payload tells it.

Texts are drawn by lot of what they are, the same each time. So what a classifier finds is the form, not the style.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from pipeline.core.schema import PROVIDERS, ProviderName
from pipeline.providers import read_payload
from pipeline.records.run import ToldRun, record_from_answer
from pipeline.records.schema import QueryResponse
from pipeline.sources.choose import PassageLimits, Shelf
from pipeline.sources.store import Store, StoredPage, open_store
from tests.support.cited_run import stored_answer

RUN = ToldRun(run_id="0b0f6a8e-7a54-4c1b-9a53-1f0d2c3b4a59")
ORIGINS: Mapping[ProviderName, tuple[str, ...]] = {
    name: {"claude": ("page", "cited_text"), "perplexity": ("page", "snippet")}.get(name, ("page",))
    for name in PROVIDERS
}
"""Where passages come from, by provider; all but `page` are in the provider's own payload."""
_SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
_REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"


def _draw(*words: object) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(map(str, words)).encode()).digest()[:6], "big")


def _words(count: int, *of: object) -> str:
    """So many words; each is one of twenty that belong to the narrative, the first thing in `of`."""
    numbers = [_draw(of[0], _draw(*of, place) % 20) for place in range(count)]
    return " ".join("".join(_SYLLABLES[number // 70**at % 70] for at in range(2 + number % 2)) for number in numbers)


def _sentences(count: int, *of: object) -> list[str]:
    return [f"{_words(8 + _draw(*of, at) % 5, *of, at).capitalize()}." for at in range(count)]


class Page(NamedTuple):
    url: str
    title: str
    text: str
    redirect: str  # the address that Gemini gives instead

    @property
    def host(self) -> str:
        return str(urlsplit(self.url).hostname)


class Told(NamedTuple):
    """What an answer says, whoever sends it: its sentences, and which pages each of them is from."""

    sentences: list[str]
    cites: list[list[Page]]


def _pages(narrative: int) -> list[Page]:
    found = []
    for at in range(6):
        host = f"{_words(1, 'host', narrative, at)}.example"
        title, text = _words(4, narrative, "title", at).capitalize(), " ".join(_sentences(3, narrative, "page", at))
        found.append(Page(f"https://{host}/{at}", title, text, f"{_REDIRECT}{_draw(narrative, 'redirect', at)}"))
    return found


def _told(narrative: int, provider: str, pages: Sequence[Page]) -> Told:
    sentences = _sentences(5, narrative, provider)
    cited = sorted(pages, key=lambda page: _draw(narrative, provider, page.url))[:3]
    return Told(sentences, [[cited[at]] if at < 3 else [] for at in range(5)])


def _openai(told: Told, texts: bool) -> dict[str, Any]:
    text, notes = "", []
    for sentence, pages in zip(told.sentences, told.cites, strict=True):
        text += f" {sentence}" if text else sentence
        for page in pages:
            url = f"{page.url}?utm_source=openai"
            link = f"([{page.host}]({url}))"
            place = {"start_index": len(text) + 1, "end_index": len(text) + 1 + len(link)}
            notes.append({"type": "url_citation", "url": url, "title": page.title, **place})
            text += f" {link}"
    return _responses("gpt-5.6-sol", text, notes)


def _grok(told: Told, texts: bool) -> dict[str, Any]:
    text, notes, numbers = "", [], {}
    for sentence, pages in zip(told.sentences, told.cites, strict=True):
        text += f" {sentence}" if text else sentence
        for page in pages:
            mark = f"[[{numbers.setdefault(page.url, len(numbers) + 1)}]]({page.url})"
            place = {"start_index": len(text), "end_index": len(text) + len(mark)}
            notes.append({"type": "url_citation", "url": page.url, "title": str(numbers[page.url]), **place})
            text += mark
    return {**_responses("grok-4.3", text, notes), "citations": list(numbers)}


def _responses(model: str, text: str, notes: list[dict[str, Any]]) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": notes}]
    said = {"type": "message", "role": "assistant", "status": "completed", "content": content}
    return {"id": "r", "object": "response", "status": "completed", "error": None, "model": model, "output": [said]}


def _claude(told: Told, texts: bool) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for sentence, pages in zip(told.sentences, told.cites, strict=True):
        cited = [
            {"type": "web_search_result_location", "url": page.url, "title": page.title, "encrypted_index": "eA=="}
            | {"cited_text": page.text if texts else ""}
            for page in pages
        ]
        blocks += [{"type": "text", "text": " "}] if blocks else []
        blocks.append({"type": "text", "text": sentence, "citations": cited or None})
    return {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": blocks} | {
        "stop_reason": "end_turn"
    }


def _gemini(told: Told, texts: bool) -> dict[str, Any]:
    text, pages, supports = "", list(dict.fromkeys(page for cited in told.cites for page in cited)), []
    for sentence, cited in zip(told.sentences, told.cites, strict=True):
        text += " " if text else ""
        segment = {"startIndex": len(text.encode()), "endIndex": len(f"{text}{sentence}".encode()), "text": sentence}
        text += sentence
        if cited:
            supports.append({"segment": segment, "groundingChunkIndices": [pages.index(page) for page in cited]})
    chunks = [{"web": {"uri": page.redirect, "title": page.host}} for page in pages]
    found = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
    found["groundingMetadata"] = {"groundingChunks": chunks, "groundingSupports": supports}
    return {"candidates": [found], "modelVersion": "gemini-3.5-flash"}


def _perplexity(told: Told, texts: bool) -> dict[str, Any]:
    pages = list(dict.fromkeys(page for cited in told.cites for page in cited))
    text = " ".join(
        sentence + "".join(f"[{pages.index(page) + 1}]" for page in cited)
        for sentence, cited in zip(told.sentences, told.cites, strict=True)
    )
    results = [{"title": page.title, "url": page.url, "snippet": page.text if texts else ""} for page in pages]
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"id": "p", "object": "chat.completion", "model": "sonar", "choices": [choice], "search_results": results}


_SENT = {"openai": _openai, "claude": _claude, "gemini": _gemini, "grok": _grok, "perplexity": _perplexity}


def study_records(folder: Path, narratives: int) -> Iterator[tuple[str, str, int, QueryResponse]]:
    """Provider, origin of the passages, number of the narrative, and record; of every third page we hold no text."""
    with open_store(folder / "store.db") as store:
        for narrative in range(narratives):
            pages = _pages(narrative)
            for at, page in enumerate(pages):
                for url in (page.url, page.redirect, f"{page.url}?utm_source=openai"):
                    _keep(store, url, page, at % 3 != 2)
            redirects = {page.redirect: page.url for page in pages if narrative % 2}  # else nobody has looked them up
            shelf = Shelf(store, redirects, PassageLimits())
            for provider, origins in ORIGINS.items():
                for origin in origins:
                    told = _told(narrative, provider if origin == "page" else origin, pages)
                    record = _record(narrative, provider, told, origin)
                    yield provider, origin, narrative, shelf.with_pages(record).record if origin == "page" else record


def _keep(store: Store, url: str, page: Page, is_read: bool) -> None:
    text = page.text if is_read else ""
    reason = "page" if is_read else "robots"
    rest = (page.host, "", "text/html", "", "2026-11-22T05:00:00+00:00", b"", "", 200, reason, "")
    store.put_page(StoredPage(url, page.url, text, page.title if is_read else "", *rest))


def _record(narrative: int, provider: ProviderName, told: Told, origin: str) -> QueryResponse:
    body = json.dumps(_SENT[provider](told, origin != "page"))
    answer, query = read_payload(provider, body), _words(9, narrative, "query")
    return record_from_answer(
        stored_answer(
            narrative_id=f"N{narrative}",
            narrative_prompt=query,
            answer_prompt=query,
            model_name=provider,
            answer_id=str(uuid5(NAMESPACE_URL, f"{RUN.run_id} {narrative} {provider} {origin}")),
            answer_text=answer.text,
            answer_raw_json=body,
            citations=answer.citations,
            search_results=answer.search_results,
        ),
        RUN,
    )


def accuracy(features: Sequence[Mapping[str, float]], classes: Sequence[str], narratives: Sequence[int]) -> float:
    """How many answers are put down to the right class, by a model that has seen none of their narratives."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.model_selection import GroupKFold, cross_val_score
    from sklearn.preprocessing import MaxAbsScaler
    from sklearn.svm import LinearSVC

    columns = MaxAbsScaler().fit_transform(DictVectorizer().fit_transform(features))
    model = LinearSVC(C=0.1, random_state=0)
    return float(cross_val_score(model, columns, list(classes), groups=list(narratives), cv=GroupKFold(5)).mean())
