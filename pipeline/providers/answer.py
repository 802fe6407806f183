"""Putting an answer together: distinct citations, their sites, and a place for each."""

from collections.abc import Iterable, Mapping
from itertools import accumulate

from pipeline.schema import Answer, Occurrence, Placement, SearchResult
from pipeline.text.urls import source_domain


def distinct(urls: Iterable[str]) -> tuple[str, ...]:
    """The URLs in order of first appearance, empty ones left out."""
    return tuple(dict.fromkeys(url for url in urls if url))


def build_answer(
    text: str,
    citations: Iterable[str],
    occurrences: Iterable[Occurrence],
    *,
    sites: Mapping[str, str] | None = None,
    search_results: Iterable[SearchResult] = (),
    model: str = "",
    stop_reason: str = "",
) -> Answer:
    """The answer: citations distinct, occurrences in order of place, every citation with at least one.

    `sites` names the site behind a redirect, by URL. An occurrence of no citation is left out; of those without a
    place only the first of a URL is kept, unless it quotes its source.
    """
    urls = distinct(citations)
    named = sites or {}
    return Answer(
        text=text,
        citations=urls,
        domains=tuple(source_domain(url, named.get(url, "")) for url in urls),
        occurrences=complete_occurrences(urls, occurrences),
        search_results=tuple(search_results),
        model=model,
        stop_reason=stop_reason,
    )


def complete_occurrences(urls: tuple[str, ...], occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """The occurrences of these URLs, placed ones first and by place, then the others in the URLs' order."""
    rank = {url: index for index, url in enumerate(urls)}
    known = [each for each in occurrences if each.url in rank]
    placed = sorted((each for each in known if each.start is not None), key=lambda each: (each.start, each.end))
    seen = {each.url for each in placed}
    homeless = []
    for each in known:
        if each.start is None and (each.url not in seen or each.cited_text):
            homeless.append(each)
            seen.add(each.url)
    homeless += [Occurrence(url=url) for url in urls if url not in seen]
    return (*placed, *sorted(homeless, key=lambda each: rank[each.url]))


def place(
    text: str,
    span: tuple[int, int] | None,
    *,
    url: str,
    placement: Placement,
    title: str = "",
    cited_text: str = "",
) -> Occurrence:
    """The occurrence at these code points; without a place where they do not fit the text or hold only white space."""
    if span is None or not 0 <= span[0] < span[1] <= len(text) or text[span[0] : span[1]].isspace():
        return Occurrence(url=url, title=title, cited_text=cited_text)
    start, end = span
    return Occurrence(url=url, title=title, start=start, end=end, placement=placement, cited_text=cited_text)


class ByteOffsets:
    """Converts offsets in UTF-8 bytes, as Google counts, to code points of a text."""

    def __init__(self, text: str) -> None:
        """Remember where each character begins; a text of ASCII needs no table."""
        self.size = len(text)
        self.table: dict[int, int] | None = None
        if not text.isascii():
            widths = (
                1 if char < "\x80" else 2 if char < "\u0800" else 3 if char < "\U00010000" else 4 for char in text
            )
            self.table = {offset: index for index, offset in enumerate(accumulate(widths, initial=0))}

    def to_code_point(self, offset: int) -> int | None:
        """The code point at this byte; None inside a character or outside the text."""
        if self.table is not None:
            return self.table.get(offset)
        return offset if 0 <= offset <= self.size else None
