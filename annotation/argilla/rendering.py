"""Texts of models and web pages as the annotator's browser gets them: harmless, legible and copyable.

Argilla's page puts a text field without Markdown into `innerHTML` as it is (argilla-frontend 2.8.0, TextField, read
2026-11). `plain_text` escapes what would begin a tag or be read as an entity, and only that: the page's copy button and
its search take the text as it is stored.

Answers are Markdown, which Argilla's page renders by rules that renumber dates, strike out numbers and take backslashes
away. So it is read here (`annotation.argilla.markdown`), and the page gets finished HTML of a few elements: it takes
all of it for one block, because it begins with a `div` and has no blank line (marked 5, rule `html`), so no rule of its
Markdown and no formula is looked for in it, and its sanitiser keeps these elements and attributes (DOMPurify 3, both
read in argilla-frontend 2.8.0's bundle, 2026-11). Every character of the answer is visible in its order except markup
that took effect, and nothing is added. What could be read in two ways is shown as it was written.

Source: SECURITY.md#text-of-models-and-pages.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from annotation.argilla.markdown import COUNTS, KINDS, OUR_CHARACTERS, PIPE, guarded, reader

if TYPE_CHECKING:
    from markdown_it.token import Token


_MARKS_IN_A_ROW = 4  # Vietnamese, pointed Hebrew and vocalised Arabic need up to three

# All that ends a line or a page somewhere; a form feed taken out would join the words beside it.
_LINE_ENDS = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
# Embeddings, overrides and isolates reorder what follows; the plain marks U+200E, U+200F and U+061C do not.
_BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI_CONTROLS}]")
_POSSIBLE_MARKS = re.compile(rf"[^\x00-\x7f\w\s]{{{_MARKS_IN_A_ROW + 1},}}")

# Nothing else after a `<` begins a tag: https://html.spec.whatwg.org/multipage/parsing.html#tag-open-state
_TAG_OR_ENTITY = re.compile(r"<(?=[a-z/!?])|&#?\w+;?", re.IGNORECASE | re.ASCII)


def plain_text(text: str) -> str:
    """The text for a field without Markdown: it is shown exactly, line by line, and copied exactly from the page."""
    return _TAG_OR_ENTITY.sub(_escaped_tag_or_entity, harmless_characters(text))


def _escaped_tag_or_entity(found: re.Match[str]) -> str:
    """Escaped where a browser would read it as a tag or an entity; `R&D` stays as it is."""
    read = html.unescape(found[0])
    return html.escape(found[0], quote=False) if found[0] == "<" or read != found[0] else found[0]


def one_line(text: str, longest: int = 200) -> str:
    words = " ".join(text.split())
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"


def harmless_characters(text: str) -> str:
    text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    return _POSSIBLE_MARKS.sub(lambda found: _without_towers(found[0]), text)


def _without_towers(text: str) -> str:
    runs = groupby(text, key=lambda character: unicodedata.category(character) in ("Mn", "Me"))
    return "".join("".join(islice(run, _MARKS_IN_A_ROW if are_marks else None)) for are_marks, run in runs)


_OPENING = '<div class="citejury-answer" dir="'
"""How every rendered answer begins; no other text of a field can begin so."""
_DEEPEST = 60
# The page looks for spaces before a line's end in time that is quadratic in the spaces.
_SPACES = re.compile(r"[^\S\n]{99}(?=([^\S\n]))[^\S\n]")
_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
# As the page decides for a whole field, whose tags it would count as Latin.
_RIGHT_TO_LEFT = re.compile("[\u0591-\u07ff\ufb1d-\ufdfd\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile("[A-Za-z\u00c0\u00d8-\u00f6\u00f8-\u02b8\u0300-\u0590\u0800-\u1fff\u2c00-\ufb1c]")


class _UnshownError(Exception):
    """The block would lie deeper within others than a browser should be given, or nothing of it would be seen."""


def _whole(blocks: Sequence[str], text: str) -> str:
    """A block without anything to see would leave a blank line, and end the HTML."""
    is_right_to_left = len(_RIGHT_TO_LEFT.findall(text)) > len(_LEFT_TO_RIGHT.findall(text))
    return f'{_OPENING}{"rtl" if is_right_to_left else "ltr"}">' + "\n".join(filter(None, blocks)) + "</div>"


def _as_written(text: str) -> str:
    paragraphs = (part.strip("\n") for part in _BLANK.split(text))
    shown = (_escaped(part).replace("\n", "<br>") for part in paragraphs if part.strip())
    return "\n".join(f'<p class="citejury-written">{part}</p>' for part in shown)


def _escaped(text: str) -> str:
    text = html.escape(text, quote=False).replace("$", "&#36;")
    return _SPACES.sub(lambda found: f"{found[0][:-1]}&#{ord(found[1])};", text)


def _unguarded(text: str) -> str:
    return _escaped(OUR_CHARACTERS.sub("", text.replace(PIPE, "\\|")))


def _block_html(tokens: "Sequence[Token]", counts: Counter[str]) -> str:
    parts: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "inline":
            parts += _inline(token.children or [], counts)
        elif token.type in ("fence", "code_block"):
            if not token.content.strip():
                raise _UnshownError
            parts.append(_code(token))
        elif token.type == "hr":
            parts.append("<hr>")
        elif not token.hidden:
            if parts[-1:] == ["<blockquote>"] and token.type == "blockquote_close":
                raise _UnshownError
            depth += token.nesting
            parts.append(_tag(token))
        if depth > _DEEPEST:
            raise _UnshownError
    if not any(part[:1] not in ("<", "") or part.startswith(("<hr", "<pre", "<code")) for part in parts):
        raise _UnshownError
    return "".join(parts)


def _tag(token: "Token") -> str:
    if token.nesting < 0:
        return f"</{token.tag}>"
    if token.type == "list_item_open" and token.info:
        return f'<li value="{int(token.info)}">'
    align = {"text-align:left": "left", "text-align:center": "center", "text-align:right": "right"}.get(
        str(token.attrs.get("style", ""))
    )
    return f'<{token.tag} align="{align}">' if align else f"<{token.tag}>"


def _code(token: "Token") -> str:
    """A block of code, what stands behind its first fence as its first line."""
    info = _unguarded(token.info.strip())
    heading = f'<span class="citejury-info">{info}</span>\n' if info else ""
    # A line end after `<pre>` itself would be dropped, and a blank line would end the block of HTML.
    code = (heading + _unguarded(token.content.removesuffix("\n"))).replace("\n", "&#10;")
    return f"<pre><code>{code}</code></pre>"


def _inline(tokens: "Sequence[Token]", counts: Counter[str]) -> list[str]:
    parts: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "text":
            counts.update(KINDS[sign] for sign in token.content if KINDS.get(sign, "formula") != "formula")
            parts.append(_unguarded(token.content).replace("\n", "<br>"))
        elif token.type in ("softbreak", "hardbreak"):
            parts.append("<br>")
        elif token.type == "code_inline":
            parts.append(f"<code>{_unguarded(token.content.strip())}</code>")
        else:
            depth += token.nesting
            parts.append(f"<{'/' if token.nesting < 0 else ''}{token.tag}>")
        if depth > _DEEPEST:
            raise _UnshownError
    return parts


_SPACE = re.compile(r"\s*")
_MARKUP = {
    "strong": re.compile(r"\*\*|__"),
    "em": re.compile(r"[*_]"),
    "blockquote": re.compile(">"),
    "hr": re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}(?=\n|\Z)"),
}
_BULLET = re.compile(r"[-+*](?=\s)")
_CODE = re.compile("`+")
_UNDER_HEAD = re.compile(r"[|:\- \t]*-[|:\- \t]*(?=\n|\Z)")
_CITATION = re.compile(r"\[\d+(?:, ?\d+)*\]")
_EMPTY_QUOTED_LINES = re.compile(r"(?:\s*\n(?:[ \t]*>)+[ \t]*(?=\n|\Z))*")


def _shows_all(block: str, source: str) -> bool:
    """Whether the block shows every character of the source but its own markup, no other, and as many citations.

    `[**1**]` is none, and would look like one.
    """
    reading = _Reading(source)
    reading.feed(block)
    reading.close()
    reading.skip_space()
    is_whole = reading.is_right and reading.place == len(source)
    return is_whole and len(_CITATION.findall("".join(reading.seen))) == len(_CITATION.findall(source))


class _Reading(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.place = 0
        self.is_right = True
        self.seen: list[str] = []
        self.quotations = 0
        self.lists: list[str] = []
        self.runs: list[str] = []  # of backticks or tildes, that something must close
        self.is_code_block = False

    def skip_space(self) -> None:
        """Go on to the next character that is seen; lines within a quotation begin with its marks."""
        marks = re.compile(rf"(?:[ \t]*>){{0,{self.quotations}}}") if self.quotations else None
        while True:
            end = _SPACE.match(self.source, self.place).end()  # type: ignore[union-attr]  # matches the empty text too
            is_new_line = "\n" in self.source[self.place : end]
            self.place = end
            if not (marks and is_new_line):
                return
            # Its marks may stand right behind the line end's own spaces only.
            self.place = marks.match(self.source, end).end()  # type: ignore[union-attr]

    def take(self, pattern: re.Pattern[str]) -> str:
        self.skip_space()
        found = pattern.match(self.source, self.place)
        if found is None:
            self.is_right = False
            return ""
        self.place = found.end()
        return found[0]

    def handle_data(self, data: str) -> None:
        self.seen.append(data)
        for word in data.split():
            self.skip_space()
            self.is_right = self.is_right and self.source.startswith(word, self.place)
            self.place += len(word)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("strong", "em", "code"):
            self.seen.append("\n")
        if tag in _MARKUP:
            self.take(_MARKUP[tag])
            self.quotations += tag == "blockquote"
        elif tag in ("ul", "ol"):
            self.lists.append(tag)
        elif tag == "li":
            self.take(re.compile(f"{dict(attrs).get('value')}\\.(?=\\s)") if self.lists[-1] == "ol" else _BULLET)
        elif tag in ("td", "th"):
            self.take(re.compile(r"\|?"))
        elif tag[0] == "h":
            self.take(re.compile(rf"#{{{tag[1]}}}(?=\s)"))
        elif tag == "pre":
            self.is_code_block = True
            self.runs.append(self.take(re.compile("(?:`{3,}|~{3,})?")))
        elif tag == "code" and not self.is_code_block:
            self.runs.append(self.take(_CODE))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("strong", "em"):
            self.take(_MARKUP[tag])
        elif tag == "blockquote":
            self.take(_EMPTY_QUOTED_LINES)
            self.quotations -= 1
        elif tag in ("ul", "ol"):
            self.lists.pop()
        elif tag == "tr":
            self.take(re.compile(r"[ \t]*\|?"))
        elif tag == "thead":
            self.take(_UNDER_HEAD)
        elif tag == "pre":
            self.is_code_block = False
            run = self.runs.pop()
            if run:
                self.take(re.compile(f"(?:{run[:3]}{run[:1]}*(?=[ \\t]*(?:\\n|\\Z)))?"))
        elif tag == "code" and not self.is_code_block:
            self.take(re.compile(f"{self.runs.pop()}(?!`)"))


class Rendered(NamedTuple):
    html: str  # the text of a field whose Markdown is on; empty where there is nothing to see
    repairs: Mapping[str, int]
    """What Markdown would have shown otherwise than it was written and is shown as written: how often, by its kind."""
    given_up: str  # why the whole answer is shown as written; empty where it is not


@lru_cache(maxsize=16)
def rendered_answer(answer: str) -> Rendered:
    """A part that would lose a character is shown as written; so is the whole where it is too long or made to break."""
    text = harmless_characters(answer)
    if not text.strip():
        return Rendered("", {}, "")

    def as_written(reason: str) -> Rendered:
        return Rendered(_whole([_as_written(text)], text), {}, reason)

    if len(text) > 400_000:  # a second of work here, and as much as a page can scroll through
        return as_written("longer than 400,000 characters")
    if OUR_CHARACTERS.search(text):
        return as_written("it has characters that stand for none (noncharacters)")
    counts: Counter[str] = Counter()
    env: dict[Any, Any] = {COUNTS: counts}
    source = guarded(text)
    tokens = reader().parse(source, env)
    if counts["emphasis"]:
        counts["emphasis"] = _differing(tokens, reader(common=True).parse(source, {COUNTS: Counter()}))
    blocks = [_checked(block, source, counts) for block, source in _blocks_of(tokens, text)]
    if counts["part as written"] == len(blocks):
        return as_written("no part of it could be shown as Markdown without losing a character")
    repairs = {kind: count for kind, count in sorted(counts.items()) if count}
    return Rendered(_whole(blocks, text), repairs, "")


def _differing(tokens: "Sequence[Token]", others: "Sequence[Token]") -> int:
    """In how many paragraphs, headings and cells other emphasis is found than by the other reader."""
    return sum(
        [(each.type, each.content) for each in token.children or ()]
        != [(each.type, each.content) for each in other.children or ()]
        for token, other in zip(tokens, others, strict=True)
    )


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


def _checked(tokens: "Sequence[Token]", source: str, counts: Counter[str]) -> str:
    if not source.strip():  # a line of spaces that are none to Markdown
        return ""
    found: Counter[str] = Counter()
    try:
        block = _block_html(tokens, found)
        is_right = _shows_all(block, source)
    except _UnshownError:
        is_right = False
    if not is_right:
        counts["part as written"] += 1
        return _as_written(source)
    counts.update(found)
    return block
