"""An answer of a model as the text of a field that Argilla's page shows as HTML, and what was repaired in it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from annotation.defuse import harmless_characters
from annotation.rendering._check import shows_all
from annotation.rendering._elements import UnshownError, as_written, block_html, whole
from annotation.rendering._inline import COUNTS, reader
from annotation.rendering._lines import OUR_CHARACTERS, guarded

if TYPE_CHECKING:
    from markdown_it.token import Token

_LONGEST = 400_000  # characters; a second of work here, and as much as a page can scroll through


class Rendered(NamedTuple):
    """An answer as annotators see it."""

    html: str
    """The text of a field whose Markdown is on; empty where there is nothing to see."""
    repairs: Mapping[str, int]
    """What Markdown would have shown otherwise than it was written and is shown as written: how often, by its kind."""
    given_up: str
    """Why the whole answer is shown as written; empty where it is not."""


@lru_cache(maxsize=16)
def rendered_answer(answer: str) -> Rendered:
    """The answer with its headings, lists, tables, emphasis and code, and everything else as it was written.

    A part in which a character would be lost is shown as written, and so is the whole answer where it is too long or
    was made to break this.
    """
    text = harmless_characters(answer)
    if not text.strip():
        return Rendered("", {}, "")
    if len(text) > _LONGEST:
        return Rendered(whole([as_written(text)], text), {}, f"longer than {_LONGEST:,} characters")
    if OUR_CHARACTERS.search(text):
        return Rendered(whole([as_written(text)], text), {}, "it has characters that stand for none (noncharacters)")
    counts: Counter[str] = Counter()
    env: dict[Any, Any] = {COUNTS: counts}
    source = guarded(text)
    tokens = reader().parse(source, env)
    if counts["emphasis"]:
        counts["emphasis"] = _differing(tokens, reader(common=True).parse(source, {COUNTS: Counter()}))
    blocks = [_checked(block, source, counts) for block, source in _blocks_of(tokens, text)]
    if not any(block.is_formatted for block in blocks):
        reason = "no part of it could be shown as Markdown without losing a character"
        return Rendered(whole([as_written(text)], text), {}, reason)
    repairs = {kind: count for kind, count in sorted(counts.items()) if count}
    return Rendered(whole([block.html for block in blocks], text), repairs, "")


def _differing(tokens: "Sequence[Token]", others: "Sequence[Token]") -> int:
    """In how many paragraphs, headings and cells other emphasis is found than by the other reader."""
    return sum(
        [(each.type, each.content) for each in token.children or ()]
        != [(each.type, each.content) for each in other.children or ()]
        for token, other in zip(tokens, others, strict=True)
    )


class _Block(NamedTuple):
    """One of the answer's top-level parts as HTML."""

    html: str
    """Its elements."""
    is_formatted: bool
    """Whether it is shown as Markdown; otherwise it is shown as written."""


def _blocks_of(tokens: "Sequence[Token]", text: str) -> "Iterator[tuple[Sequence[Token], str]]":
    """The top-level blocks in order, each with its lines of the text; what no block has belongs to the next one."""
    lines = text.split("\n")
    begins = [place for place, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
    done = 0
    for begin, end in zip(begins, [*begins[1:], len(tokens)], strict=True):
        until = (tokens[begin].map or [0, len(lines)])[1] if end < len(tokens) else len(lines)
        yield tokens[begin:end], "\n".join(lines[done:until])
        done = until
    if not begins:
        yield [], text


def _checked(tokens: "Sequence[Token]", source: str, counts: Counter[str]) -> _Block:
    """The block as Markdown, or as written where anything of it would be lost or added; empty where it is blank."""
    if not source.strip():  # a line of spaces that are none to Markdown
        return _Block("", True)
    found: Counter[str] = Counter()
    try:
        block = block_html(tokens, found)
        is_right = shows_all(block, source)
    except UnshownError:
        is_right = False
    if not is_right:
        counts["part as written"] += 1
        return _Block(as_written(source), False)
    counts.update(found)
    return _Block(block, True)
