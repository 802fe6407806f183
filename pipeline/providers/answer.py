"""From what a body holds to an answer: its message and annotations, distinct citations, and a place for each.

Read `read_shared` first: it reads the two shapes that providers share, OpenAI's Responses and Chat Completions.
"""

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from pipeline.citations.addresses import Link, find_links, is_address, link_key, links_of, source_domain, url_host
from pipeline.citations.marks import Entry, OwnList, find_marks, own_list
from pipeline.core.schema import Answer, Occurrence, Placement, SearchResult
from pipeline.providers.http.request import as_number, as_object, as_objects, as_text, first_object

# Providers' own tokens, left where search meets structured output or where no page renders them:
# https://github.com/openai/openai-agents-python/issues/2051; `citeturn0search1` has lost its private-use letters.
_TOKEN = (
    "\ue200[^\ue200\ue201]*+\ue201|[\ue200-\ue2ff]"
    r"|<grok:render\b[^<>]{0,300}(?:/>|>.{0,1000}?</grok:render>)"
    r"|\{render_inline_citation\b[^{}\n]{0,300}\}"
    r"|(?:\bcite|【)(?:turn\d+[a-z]+\d+)+】?|:contentReference\[oaicite:\d+\](?:\{index=\d+\})?"
    r"|\[cite_start\]"
)
# With the blanks before it where a blank or the end of a phrase follows.
ARTEFACT = re.compile(
    rf"""(?:(?<![ \t])[ \t]++(?=(?>(?:{_TOKEN})+)(?:[\s.,;:!?)\]}}"|»”。、，；：！？）」』】]|\Z)))?(?:{_TOKEN})""",
    re.DOTALL,
)
_CITE = re.compile(r"(?<![ \t])[ \t]*+(\[cite:[^\[\]\n]{0,100}(?:\]|\Z))")
# Reasoning models put their thoughts in front; without an end mark they were cut off while thinking.
_THOUGHTS = re.compile(r"\s*+<think>(?:.*?</think>\s*+|.*+\Z)", re.DOTALL)
_BRACKETS = {"(": ")", "（": "）"}
NUMBER = re.compile(r"[\[(^]*\d{1,3}[\])]*")
# A letter, a digit or a picture: a segment of nothing but `**` or `|` says nothing that a source could be for.
_WORD = re.compile(r"[^\W_]|[\U0001f000-\U0001faff]")
_SITE = re.compile(r"(?:https?://)?[^\s./]+(?:\.[^\s./]+)+(?:/\S*)?")


def distinct(urls: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for url in urls if url))


def build_answer(
    text: str,
    citations: Iterable[str],
    occurrences: Iterable[Occurrence],
    *,
    sites: Mapping[str, str] | None = None,
    retrieved: Iterable[str] = (),
    search_results: Iterable[SearchResult] = (),
    model: str = "",
    stop_reason: str = "",
    cut: int = 0,
    is_attached: bool = True,
) -> Answer:
    """The answer: citations distinct, occurrences in order of place, every citation with at least one.

    `sites` names the site behind a redirect, by URL; `retrieved` are URLs that were found and perhaps not used. An
    occurrence of no citation is left out; of those without a place only the first of a URL is kept, unless it quotes
    its source, and they come last, in the URLs' order. What a number means is up to the list that the text itself has.
    `cut` tokens of the provider were cut from it before. What is no URL is no citation, and counted. `is_attached` says
    whether the provider attached any of them, or all are the text's own.
    """
    named = distinct(citations)
    attached = tuple(url for url in named if is_address(url))
    occurrences = list(occurrences)
    cited = [each for each in occurrences if each.url in attached]
    cleaned = clean_text(text, {each.start for each in cited if each.placement == "marker"})
    text = cleaned.text
    known = [cleaned.moved_occurrence(each) for each in cited]
    given = {each.number: each for each in reversed(occurrences) if each.number}
    listed = own_list(text, cites_numbers=not (is_attached and attached))
    urls, known, unread = _by_own_list(text, listed, attached, known, given)
    cut += cleaned.n_tokens
    unread |= {"tokens of the provider": cut, "citations that are no URL": len(named) - len(attached)}
    found = frozenset(retrieved)
    rank = {url: index for index, url in enumerate(urls)}
    placed = sorted((each for each in known if each.start is not None), key=lambda each: (each.start, each.end))
    seen = {each.url for each in placed}
    homeless = []
    for each in (*known, *(Occurrence(url=url) for url in urls)):
        if each.start is None and (each.url not in seen or each.cited_text):
            homeless.append(each)
            seen.add(each.url)
    return Answer(
        text=text,
        citations=urls,
        domains=tuple(source_domain(url, (sites or {}).get(url, "")) for url in urls),
        occurrences=(*placed, *sorted(homeless, key=lambda each: rank[each.url])),
        retrieved=tuple(url for url in urls if url in found),
        search_results=tuple(search_results),
        model=model,
        stop_reason=stop_reason,
        unread={name: count for name, count in unread.items() if count},
    )


def _by_own_list(
    text: str,
    listed: OwnList,
    attached: tuple[str, ...],
    occurrences: Iterable[Occurrence],
    given: Mapping[str, Occurrence],
) -> tuple[tuple[str, ...], list[Occurrence], dict[str, int]]:
    """Citations and occurrences with numbers that mean what the text's own list says, and what is left over, counted.

    What the provider has `given` for a number holds where the list has no such number, and nowhere differs from what is
    given, or names that source without its URL. Sources that were attached to other marks stay citations, without a
    place.
    """
    forms = {link_key(url): url for url in reversed([*attached, *(each.url for each in given.values())])}
    urls = [(number, forms.get(link_key(url), url)) for number, url in listed.urls]
    differs = any(number in given and given[number].url != url for number, url in urls)
    agrees = all(number.isdecimal() and attached[int(number) - 1 : int(number)] == (url,) for number, url in urls)
    citations = attached if agrees else distinct([*(url for _, url in urls), *attached])
    own = {
        mark.start: {**dict.fromkeys(entries if differs else (), ""), **_said_of(entries, forms, given)}
        for mark, entries, _ in listed.marks
    }
    found: list[Occurrence] = []
    contradicted = 0
    for each in occurrences:
        said = own.get(each.start, {}) if each.placement == "marker" and each.start is not None else {}
        wanted = (
            [said[each.number]] if each.number in said else [url for url in said.values() if url and not each.number]
        )
        if not wanted:
            found.append(each)
        elif each.url not in wanted:
            contradicted += 1
            found.append(each.model_copy(update={"start": None, "end": None, "placement": "none", "number": ""}))
    for mark, _, _ in listed.marks:
        for number, url in own[mark.start].items():
            shown = number if number.isdecimal() else ""
            if url:
                found.append(Occurrence(url=url, start=mark.start, end=mark.end, placement="marker", number=shown))
    placed = {each.url for each in found if each.start is not None}
    found += [
        Occurrence(url=url, start=link.start, end=link.end, placement="claim")
        for link in listed.links
        if (url := forms.get(link_key(link.url), link.url)) not in placed
    ]
    numbered = [link for link in find_links(text) if link.kind == "markdown" and NUMBER.fullmatch(link.label)]
    elsewhere = sum(forms.get(link_key(link.url), link.url) not in citations for link in numbered)
    left = {
        "marks without a source": _marks_without_source(listed, found) + elsewhere,
        "sources that the answer's own list contradicts": contradicted,
    }
    return citations, found, left


def _said_of(
    entries: Mapping[str, Entry | None], forms: Mapping[str, str], given: Mapping[str, Occurrence]
) -> dict[str, str]:
    """The URL of each number that a list has; empty where the entry has none and names no source by site or title."""
    said = {number: forms.get(link_key(entry.url), entry.url) for number, entry in entries.items() if entry}
    return said | {each: given[each].url for each in said if not said[each] and _names(entries[each], given.get(each))}


def _marks_without_source(listed: OwnList, found: Iterable[Occurrence]) -> int:
    taken = {(each.start, each.number) for each in found if each.placement == "marker"}
    return sum(
        not each.opens_entry
        and (each.mark.start, "") not in taken
        and any((each.mark.start, number) not in taken for number in each.entries)
        for each in listed.marks
    )


def _names(entry: Entry | None, source: Occurrence | None) -> bool:
    """Whether an entry without a URL names a source by its site or its title."""
    words = entry.title.casefold() if entry else ""
    title = source.title.casefold() if source else ""
    return source is not None and (source_domain(source.url) in words or (len(title) > 7 and title in words))


def place(
    text: str,
    span: tuple[int, int] | None,
    *,
    url: str,
    placement: Placement,
    title: str = "",
    cited_text: str = "",
    number: str = "",
    longer: str = "",
) -> Occurrence:
    """The occurrence at these code points; without a place where they do not fit the text or hold no word."""
    found = Occurrence(url=url, title=title, cited_text=cited_text, longer=longer)
    if span is None or not 0 <= span[0] < span[1] <= len(text) or not _WORD.search(text, *span):
        return found
    placed = {"start": span[0], "end": span[1], "placement": placement, "number": number}
    return found.model_copy(update=placed)


class ByteOffsets:
    """Converts offsets in UTF-8 bytes, as Google counts, to code points of a text."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode("utf-8", "surrogatepass")

    def to_code_point(self, offset: int) -> int | None:
        """The code point at a byte; None inside a character or outside the text."""
        try:
            return len(self.raw[:offset].decode("utf-8", "surrogatepass")) if 0 <= offset <= len(self.raw) else None
        except UnicodeDecodeError:
            return None


class Annotation(NamedTuple):
    """One `url_citation`; its span is in code points of the message's text, None where none fits."""

    url: str
    title: str
    span: tuple[int, int] | None
    content: str


class Message(NamedTuple):
    text: str
    annotations: tuple[Annotation, ...]
    model: str
    stop_reason: str
    cut: int = 0
    """How many tokens of the provider were cut from the text."""


def read_message(body: dict[str, Any]) -> Message:
    """The message of a body of either shape; a refusal's words are its text."""
    if isinstance(body.get("choices"), list):
        choice = first_object(body.get("choices"))
        message = as_object(choice.get("message"))
        content, refusal = _chat_text(message.get("content")), as_text(message.get("refusal"))
        stop = "refusal" if refusal and not content else as_text(choice.get("finish_reason"))
        parts = [(content or refusal, as_objects(message.get("annotations")))]
    else:
        messages = [item for item in as_objects(body.get("output")) if item.get("type") == "message"]
        pieces = [part for each in messages for part in as_objects(each.get("content"))]
        texts = {"output_text": "text", "refusal": "refusal"}
        said = [(kind, part) for part in pieces if (kind := as_text(part.get("type"))) in texts]
        parts = [(as_text(part.get(texts[kind])), as_objects(part.get("annotations"))) for kind, part in said]
        # The convenience field stands for the parts only where there are none.
        parts = parts or [(as_text(body.get("output_text")), [])]
        spoken = {kind for kind, part in said if as_text(part.get(texts[kind]))}
        reason = as_text(as_object(body.get("incomplete_details")).get("reason"))
        # A message that only refuses is `completed` even so.
        stop = reason or ("refusal" if spoken == {"refusal"} else as_text(body.get("status")))
    return _clean_message(parts, as_text(body.get("model")), stop)


def _chat_text(content: Any) -> str:
    if isinstance(content, list):
        parts = [each for each in as_objects(content) if as_text(each.get("type")) not in ("thinking", "reasoning")]
        return "".join(as_text(part.get("text")) for part in parts)
    return as_text(content)


def _clean_message(parts: Iterable[tuple[str, list[dict[str, Any]]]], model: str, stop_reason: str) -> Message:
    """The parts' texts joined without thoughts and artefacts, and the annotations moved to where their words are."""
    parts = list(parts)
    cleaned = clean_text("".join(text for text, _ in parts), None)
    found, base = [], 0
    for text, annotations in parts:
        for annotation in annotations:
            fields = as_object(annotation.get("url_citation")) or annotation
            start, end = as_number(fields.get("start_index")), as_number(fields.get("end_index"))
            span = None
            if start is not None and end is not None and 0 <= start < end <= len(text):
                span = cleaned.moved(start + base), cleaned.moved(end + base)
            title, content = as_text(fields.get("title")), as_text(fields.get("content"))
            if as_text(annotation.get("type")) in ("url_citation", "") and (url := as_text(fields.get("url"))):
                found.append(Annotation(url, title, span, content))
        base += len(text)
    return Message(cleaned.text, tuple(found), model, stop_reason, cleaned.n_tokens)


class Cleaned(NamedTuple):
    """A text from which spans were cut, and where each stood; `cut[i]` is the length of all cuts before the i-th."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    cut: tuple[int, ...]
    n_tokens: int
    """How many of the cuts are tokens of the provider."""

    def moved(self, offset: int) -> int:
        """Where a code point of the uncut text stands now; one inside a cut stands at the cut."""
        index = bisect_right(self.starts, offset)
        if not index:
            return offset
        return offset - self.cut[index] + max(0, self.ends[index - 1] - offset)

    def moved_occurrence(self, found: Occurrence) -> Occurrence:
        """The occurrence where its words stand now; without a place where they were cut."""
        if not self.starts or found.start is None or found.end is None:
            return found
        start, end = self.moved(found.start), self.moved(found.end)
        place = {"start": start, "end": end} if start < end else {"start": None, "end": None, "placement": "none"}
        return found.model_copy(update=place)


def clean_text(raw: str, known: Container[int | None] | None = ()) -> Cleaned:
    """`[cite: 1]` is a token too, but where the text's own list has numbers or it begins at a `known` code point."""
    thoughts = _THOUGHTS.match(raw)
    start = thoughts.end() if thoughts else 0
    tokens = [match.span() for match in ARTEFACT.finditer(raw, start)]
    if known is not None and "[cite:" in raw and not own_list(raw[start:]).urls:
        tokens += [match.span() for match in _CITE.finditer(raw, start) if match.start(1) not in known]
    spans = [(0, start)] * bool(start) + sorted(tokens)
    starts, ends = tuple(begin for begin, _ in spans), tuple(end for _, end in spans)
    kept = [raw[end:begin] for end, begin in zip((0, *ends), (*starts, len(raw)), strict=True)]
    cut = tuple(accumulate((end - begin for begin, end in spans), initial=0))
    return Cleaned("".join(kept), starts, ends, cut, len(tokens))


def read_shared(body: dict[str, Any]) -> Answer:
    """The answer: its citations are the URLs of the text, then those annotated; its occurrences the links.

    Where nothing is annotated, the list that a proxy passes on counts as annotated, and `[n]` is its n-th URL.
    """
    message = read_message(body)
    listed = listed_urls(body.get("citations"))
    annotated = [annotation.url for annotation in message.annotations]
    links = links_of(message.text, annotated or listed)
    titles = {annotation.url: annotation.title for annotation in reversed(message.annotations)}
    return build_answer(
        message.text,
        [*(link.url for link in links), *(annotated or listed)],
        [
            *link_occurrences(message.text, links, message.annotations),
            *annotation_occurrences(message, links),
            *reference_occurrences(message.text, dict(enumerate(listed, start=1)), titles),
        ],
        model=message.model,
        stop_reason=message.stop_reason,
        cut=message.cut,
        is_attached=bool(annotated or listed),
    )


def listed_urls(value: Any) -> list[str]:
    """The URLs of a list of texts or of objects with `url`, in its order; an item without one is an empty text."""
    if not isinstance(value, list):
        return []
    return [each if isinstance(each, str) else as_text(as_object(each).get("url")) for each in value]


def reference_occurrences(text: str, numbers: Mapping[int, str], titles: Mapping[str, str]) -> Iterator[Occurrence]:
    """Every number in a mark of the text that stands for a URL, and each once without a place, for its title."""
    for mark in find_marks(text, {str(number) for number, url in numbers.items() if url}):
        for number in mark.ids:
            if number.isdecimal() and (url := numbers.get(int(number))):
                span, title = (mark.start, mark.end), titles.get(url, "")
                yield place(text, span, url=url, placement="marker", title=title, number=number)
    for known, url in numbers.items():
        yield Occurrence(url=url, title=titles.get(url, ""), number=str(known))


def link_occurrences(text: str, links: Sequence[Link], annotations: Iterable[Annotation]) -> Iterator[Occurrence]:
    """One occurrence for each link: a marker, or a claim where the link's words belong to the sentence.

    A link within a marker shares its place; one within a claim has none.
    """
    about = {annotation.url: annotation for annotation in reversed(list(annotations))}
    titles = {link.url: link.label for link in links if link.kind == "definition"}
    position = 0
    span: tuple[int, int] | None = None
    placement: Placement = "none"
    shown = [link for link in links if link.kind != "definition"]
    for link in sorted(shown, key=lambda each: (each.start, -each.end)):
        if link.start >= position:
            # Brackets that hold nothing else belong to it.
            if _BRACKETS.get(text[link.start - 1 : link.start]) == text[link.end : link.end + 1]:
                span, placement = (link.start - 1, link.end + 1), "marker"
            else:
                span, placement = (link.start, link.end), "claim" if _is_words(link) else "marker"
        elif placement == "claim":
            span = None
        position = max(position, link.end)
        known = about.get(link.url)
        title, cited_text = (known.title, known.content) if known else (titles.get(link.url, ""), "")
        yield place(
            text, span, url=link.url, placement=placement, title=title, cited_text=cited_text, longer=link.longer
        )


def _is_words(link: Link) -> bool:
    """Whether a link's label is part of the sentence; a number, an address or the site's name only marks a source."""
    label = link.label.strip(" *_`\n")
    if link.kind not in ("markdown", "reference") or not label or NUMBER.fullmatch(label) or _SITE.fullmatch(label):
        return False
    return "".join(label.split()).casefold() not in url_host(link.url).split(".")


def annotation_occurrences(message: Message, links: Iterable[Link]) -> Iterator[Occurrence]:
    """One occurrence for each annotation that is not one of the links, brackets around it included."""
    taken: dict[str, list[Link]] = {}
    for link in links:
        taken.setdefault(link.url, []).append(link)
    for annotation in message.annotations:
        span, own = annotation.span, taken.get(annotation.url, ())
        if any(span is None or (span[0] <= link.end and link.start <= span[1]) for link in own):
            continue
        # A mark such as `[1]` or `【1†source】`, and no sentence.
        words = message.text[span[0] : span[1]] if span else ""
        is_mark = span is not None and len(words) <= 80 and words[:1] in "([（【" and words[-1:] in ")]）】"
        yield place(
            message.text,
            span,
            url=annotation.url,
            placement="marker" if is_mark else "claim",
            title=annotation.title,
            cited_text=annotation.content,
        )
