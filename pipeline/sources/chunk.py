"""A document cut into chunks of whole sentences, none longer than asked, each with its exact place.

`semantic-text-splitter`, which was tried first, ends chunks behind "Dr." and inside 「…」, and takes 30 µs a character
where there are no blanks.
"""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.citations.addresses import source_domain
from pipeline.core.errors import InputError, NotInstalledError
from pipeline.sources.schema import Chunk, Document, SourceMeta
from pipeline.text.sentences import sentence_spans

if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec

ENCODING = "o200k_base"


def check_counts_tokens() -> None:
    """Raise NotInstalledError now for a tokenizer whose lack would show in the middle of the work."""
    _find_tokenizer()


def count_tokens(text: str) -> int:
    """Number of tokens of the text, as OpenAI's models since GPT-4o count them; NotInstalledError as above."""
    return int(_tokenizer().count(text if text.isascii() else text.encode(errors="replace").decode()))


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    """The compiled tokenizer with its vocabulary, loaded once (0.3 s)."""
    from importlib.util import module_from_spec

    found, loader = _find_tokenizer()
    bindings: Any = module_from_spec(found)
    loader.exec_module(bindings)
    return bindings.tokenizer_for_encoding(ENCODING)


def _find_tokenizer() -> "tuple[ModuleSpec, Loader]":
    """The compiled module of `bpe_openai`, and what loads it without running that package's own modules.

    Those read three vocabularies in Python, and warn on Python 3.11 and 3.12. Some systems have no wheel.
    """
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    package = find_spec("bpe_openai")
    places = package.submodule_search_locations if package else None
    found = PathFinder.find_spec("_bindings", places)
    if found is None or found.loader is None:
        raise NotInstalledError(
            "Counting tokens needs the library bpe-openai, which is not installed here: run this command on Linux, on "
            "Windows with an x86-64 processor or on a Mac with Apple silicon, for which it comes with citejury, or "
            "install Rust and build it with `pip install bpe-openai`."
        )
    return found, found.loader


_LEAST_TARGET = 16
_JOINED = (
    r"[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]|\u200d\S"  # to one sign
)
_SIGN = rf"(?:\S(?:{_JOINED}){{0,10}})"
_CLAUSE = re.compile(r"[^,;:、，；：—]*+[,;:、，；：—]*+")
_WORD = re.compile(rf"{_SIGN}{{1,48}}")


class _Pieces(NamedTuple):
    spans: list[tuple[int, int]]  # First code point and the one after the last of each, in order
    before: list[int]
    """Tokens in front of each piece, the blanks between them included; one more at the end for the whole."""
    last_of_paragraph: list[bool]


def tokenize_chunk(
    document: Document, target_tokens: int, overlap: int, page_starts: Sequence[int] = ()
) -> list[Chunk]:
    """The document's chunks in order, each at most `target_tokens` long; the same for the same text, always.

    Chunks are made of whole sentences, and end with a paragraph where that leaves them three quarters full; only a
    sentence longer than the target is cut, at a comma, a blank or between two signs. Each begins with as many of the
    last sentences of the one before as fit into `overlap` tokens. `page_starts` are the first code points of a PDF's
    pages. A blank document has no chunk.

    Raises:
        InputError: a target below 16, or an overlap that is negative or not below the target.
    """
    if target_tokens < _LEAST_TARGET or not 0 <= overlap < target_tokens:
        ending = f"the length must be at least {_LEAST_TARGET}, and the overlap below it."
        raise InputError(f"Chunks of {target_tokens} tokens with an overlap of {overlap} cannot be made: {ending}")
    pieces = _pieces_of(document, target_tokens)
    chunks = []
    for first, last in _packed(document.text, pieces, target_tokens, overlap):
        start, end = pieces.spans[first][0], pieces.spans[last][1]
        text = document.text[start:end]
        normal_form = " ".join(text.split()).lower().encode(errors="replace")
        chunk = Chunk(
            doc_url=document.url,
            text=text,
            hash=f"sha256:{hashlib.sha256(normal_form).hexdigest()}",
            tokens=count_tokens(text),
            start=start,
            end=end,
            page=bisect_right(page_starts, start) or None,
        )
        chunks.append(chunk)
    return chunks


def page_chunks(url: str, text: str, lang: str, tokens: int, page_starts: Sequence[int] = ()) -> list[Chunk]:
    """A page's chunks; they do not overlap, so that nobody reads a sentence twice. `lang` may be empty."""
    meta = SourceMeta(domain=source_domain(url), lang=lang or None)
    return tokenize_chunk(Document(url=url, text=text, source_meta=meta), tokens, 0, page_starts)


def _pieces_of(document: Document, target: int) -> _Pieces:
    text = document.text
    sentences = sentence_spans(text, document.source_meta.lang or "")
    # What an over-long sentence is cut into, coarse to fine; a code point has at most four tokens.
    finer = (_CLAUSE, _WORD, re.compile(_SIGN), re.compile(r"\S"))
    spans = [span for sentence in sentences for span in _cut_to_fit(text, sentence, target, finer)]
    lengths = [count_tokens(text[begin:end]) for (_, begin), (_, end) in pairwise([(0, 0), *spans])]
    gaps = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    return _Pieces(spans, list(accumulate(lengths, initial=0)), [*("\n" in gap for gap in gaps), True])


def _cut_to_fit(
    text: str, span: tuple[int, int], target: int, finer: Sequence[re.Pattern[str]]
) -> Iterator[tuple[int, int]]:
    """The span itself where it is at most `target` tokens long, else its parts, as coarse as they fit."""
    start, end = span
    if not finer or count_tokens(text[start:end]) <= target:
        yield span
        return
    for part in finer[0].finditer(text, start, end):
        if part[0].strip():
            begin = part.end() - len(part[0].lstrip())
            yield from _cut_to_fit(text, (begin, begin + len(part[0].strip())), target, finer[1:])


def _packed(text: str, pieces: _Pieces, target: int, overlap: int) -> Iterator[tuple[int, int]]:
    first, done = 0, -1
    while done < len(pieces.spans) - 1:
        last = _furthest(text, pieces, first, target)
        while last <= done:  # the overlap leaves no room for the next piece
            first += 1
            last = _furthest(text, pieces, first, target)
        last = _end_of_paragraph(pieces, first, max(first, done + 1), last, target)
        yield first, last
        done = last
        first = max(first + 1, bisect_left(pieces.before, pieces.before[done + 1] - overlap))


def _furthest(text: str, pieces: _Pieces, first: int, target: int) -> int:
    """The last piece up to which a chunk from `first` on is at most `target` tokens long; `first` always fits."""
    last = max(first, bisect_right(pieces.before, pieces.before[first] + target) - 2)
    while last > first and count_tokens(text[pieces.spans[first][0] : pieces.spans[last][1]]) > target:
        last -= 1
    return last


def _end_of_paragraph(pieces: _Pieces, first: int, least: int, last: int, target: int) -> int:
    """The last piece that ends a paragraph while the chunk is full enough; `last` where there is none, or all fits."""
    if last == len(pieces.spans) - 1:
        return last
    for piece in range(last, least - 1, -1):
        if pieces.before[piece + 1] - pieces.before[first] < 0.75 * target:
            break
        if pieces.last_of_paragraph[piece]:
            return piece
    return last
