"""A search server on loopback that answers as Tavily and as Brave do, or as a test tells it to.

Shapes: https://docs.tavily.com/documentation/api-reference/endpoint/search and
https://api-dashboard.search.brave.com/app/documentation/web-search/get-started, read 2026-11.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.support.debian_web import DebianPage, debian_texts
from tests.support.web import Loopback, Web, read_request

TAVILY_PATH, BRAVE_PATH = "/search", "/res/v1/web/search"
WORD = re.compile(r"[a-z0-9äöüß]{3,}|[\u3040-\u30ff\u4e00-\u9fff]{2}")
EVERYWHERE = frozenset({"the", "and", "how", "does", "what", "der", "die", "das", "und", "von", "wie", "ist", "was"})


class SearchAsked(NamedTuple):
    provider: str
    """`tavily` or `brave`."""
    query: str
    k: int
    headers: Mapping[str, str]


class Answer(NamedTuple):
    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}
    cut: int | None = None
    """The connection is closed after so many bytes of the body."""
    hangs: bool = False
    """Nothing is ever sent."""


class Hit(NamedTuple):
    title: str
    url: str
    snippet: str


Find = Callable[[str, int], Sequence[Hit]]
Misbehave = Callable[[int, SearchAsked], Answer | None]
"""From the query's number, counted from 1, to how it is answered; None is the good answer."""


class ScriptedSearch(Loopback):
    """The server as a context; `find` searches, `misbehave` may answer first; `asked` are the queries so far."""

    def __init__(self, find: Find, misbehave: Misbehave = lambda number, asked: None) -> None:
        super().__init__(self.talk)
        self.find = find
        self.misbehave = misbehave
        self.asked: list[SearchAsked] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def queries(self) -> list[str]:
        return [asked.query for asked in self.asked]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = read_request(await reader.readuntil(b"\r\n\r\n"))
        body = await reader.readexactly(int(request.headers.get("content-length", "0")))
        asked = read_query(request.path, body, request.headers)
        self.asked.append(asked)
        answer = self.misbehave(len(self.asked), asked) or self.good_answer(asked)
        if answer.hangs:
            await asyncio.Event().wait()
        writer.write(wire(answer))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def good_answer(self, asked: SearchAsked) -> Answer:
        hits = self.find(asked.query, asked.k)
        return Answer(tavily_body(asked.query, hits) if asked.provider == "tavily" else brave_body(asked.query, hits))


def read_query(path: str, body: bytes, headers: Mapping[str, str]) -> SearchAsked:
    """The query in a request of either provider's shape."""
    if path == TAVILY_PATH:
        told = json.loads(body)
        return SearchAsked("tavily", told["query"], told["max_results"], headers)
    parts = urlsplit(path)
    assert parts.path == BRAVE_PATH, path
    told = parse_qs(parts.query)
    return SearchAsked("brave", told["q"][0], int(told["count"][0]), headers)


def tavily_body(query: str, hits: Iterable[Hit]) -> dict[str, Any]:
    results = [
        {"title": hit.title, "url": hit.url, "content": hit.snippet, "score": 0.9, "raw_content": None} for hit in hits
    ]
    head = {"query": query, "answer": None, "images": [], "follow_up_questions": None}
    return {**head, "results": results, "response_time": 0.7, "request_id": "r-1"}


def brave_body(query: str, hits: Iterable[Hit]) -> dict[str, Any]:
    results = [
        {"type": "search_result", "title": hit.title, "url": hit.url, "description": hit.snippet, "language": "en"}
        for hit in hits
    ]
    return {
        "type": "search",
        "query": {"original": query, "more_results_available": True},
        "mixed": {"type": "mixed", "main": []},
        "web": {"type": "search", "results": results, "family_friendly": True},
    }


def wire(answer: Answer) -> bytes:
    body = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\nConnection: close\r\n\r\n").encode() + body[: answer.cut]


def debian_search(web: Web, by_address: bool = False, mirrors: bool = False) -> Find:
    """Search in Debian's documentation on that web, by BM25.

    With `mirrors` each page of the English handbook is found on its mirror too.
    """
    pages = [(url, page, Counter(words_of(f"{page.title} {page.text}"))) for url, page in debian_texts(web, by_address)]
    lengths = [words.total() for _, _, words in pages]
    mean = sum(lengths) / len(lengths)
    held = Counter(word for _, _, words in pages for word in words)

    def score(words: Counter[str], length: int, asked: Iterable[str]) -> float:
        norm = 1.2 * (0.25 + 0.75 * length / mean)
        return sum(
            log(1 + len(pages) / held[word]) * words[word] / (words[word] + norm) for word in asked if held[word]
        )

    def find(query: str, k: int) -> list[Hit]:
        asked = dict.fromkeys(words_of(query))
        scores = [
            (score(words, length, asked), -at)
            for at, ((_, _, words), length) in enumerate(zip(pages, lengths, strict=True))
        ]
        best = sorted((scored for scored in scores if scored[0] > 0), reverse=True)[:k]
        return [hit for _, at in best for hit in hits_of(pages[-at][0], pages[-at][1], asked, mirrors)][:k]

    return find


def hits_of(url: str, page: DebianPage, asked: Iterable[str], mirrors: bool) -> list[Hit]:
    """The page as a result, and its mirror where there is one."""
    text = " ".join(page.text.split())
    at = min((place for word in asked if (place := text.lower().find(word)) >= 0), default=0)
    hit = Hit(page.title, url, text[max(0, at - 60) : at + 240])
    mirrored = mirrors and page.host == "handbook-en.test"
    return [hit, hit._replace(url=url.replace("handbook-en.test", "mirror.test"))] if mirrored else [hit]


def words_of(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in EVERYWHERE]
