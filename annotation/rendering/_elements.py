"""What was read of an answer goes in; HTML of a few elements comes out, all text in it escaped.

Argilla's page takes all of it for one block of HTML, because it begins with a `div` and has no blank line (marked
5, rule `html`), so no rule of its Markdown and no formula is looked for in it; its sanitiser keeps these elements
and attributes (DOMPurify 3, both read in argilla-frontend 2.8.0's bundle, 2026-11).
"""

import html
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from annotation.rendering._lines import KINDS, OUR_CHARACTERS, PIPE

if TYPE_CHECKING:
    from markdown_it.token import Token

OPENING = '<div class="citejury-answer" dir="'
"""How every rendered answer begins; no other text of a field can begin so."""
_COUNTED = re.compile(f"[{''.join(guard for guard, kind in KINDS.items() if kind != 'formula')}]")
_DEEPEST = 60
# The page looks for spaces before a line's end in time that is quadratic in the spaces.
_SPACES = re.compile(r"[^\S\n]{99}(?=([^\S\n]))[^\S\n]")
_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
_ALIGNED = {"text-align:left": "left", "text-align:center": "center", "text-align:right": "right"}
# As the page decides for a whole field, whose tags it would count as Latin.
_RIGHT_TO_LEFT = re.compile("[\u0591-\u07ff\ufb1d-\ufdfd\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile("[A-Za-z\u00c0\u00d8-\u00f6\u00f8-\u02b8\u0300-\u0590\u0800-\u1fff\u2c00-\ufb1c]")


class UnshownError(Exception):
    """The block would lie deeper within others than a browser should be given, or nothing of it would be seen."""


def whole(blocks: Sequence[str], text: str) -> str:
    """The blocks as the text of a field; one without anything to see would leave a blank line, and end the HTML."""
    is_right_to_left = len(_RIGHT_TO_LEFT.findall(text)) > len(_LEFT_TO_RIGHT.findall(text))
    return f'{OPENING}{"rtl" if is_right_to_left else "ltr"}">' + "\n".join(filter(None, blocks)) + "</div>"


def as_written(text: str) -> str:
    """The text line by line, without any formatting."""
    paragraphs = (part.strip("\n") for part in _BLANK.split(text))
    return "\n".join(
        f'<p class="citejury-written">{_with_breaks(_escaped(part))}</p>' for part in paragraphs if part.strip()
    )


def _with_breaks(escaped: str) -> str:
    """The escaped text, its line ends as `br`."""
    return escaped.replace("\n", "<br>")


def _escaped(text: str) -> str:
    """The text without what means something to HTML or to the page's formulas."""
    text = html.escape(text, quote=False).replace("$", "&#36;")
    return _SPACES.sub(lambda found: f"{found[0][:-1]}&#{ord(found[1])};", text)


def _unguarded(text: str) -> str:
    """The text of a token escaped, without our own characters in it."""
    return _escaped(OUR_CHARACTERS.sub("", text.replace(PIPE, "\\|")))


def block_html(tokens: "Sequence[Token]", counts: Counter[str]) -> str:
    """One block of the answer; counts the guards in it by their kind.

    Raises:
        UnshownError: it must be shown as written.
    """
    parts: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "inline":
            parts += _inline(token.children or [], counts)
        elif token.type in ("fence", "code_block"):
            if not token.content.strip():
                raise UnshownError
            parts.append(_code(token))
        elif token.type == "hr":
            parts.append("<hr>")
        elif not token.hidden:
            if parts[-1:] == ["<blockquote>"] and token.type == "blockquote_close":
                raise UnshownError
            depth += token.nesting
            parts.append(_tag(token))
        if depth > _DEEPEST:
            raise UnshownError
    if not any(part[:1] not in ("<", "") or part.startswith(("<hr", "<pre", "<code")) for part in parts):
        raise UnshownError
    return "".join(parts)


def _tag(token: "Token") -> str:
    """The opening or closing tag of an element."""
    if token.nesting < 0:
        return f"</{token.tag}>"
    if token.type == "list_item_open" and token.info:
        return f'<li value="{int(token.info)}">'
    align = _ALIGNED.get(str(token.attrs.get("style", "")))
    return f'<{token.tag} align="{align}">' if align else f"<{token.tag}>"


def _code(token: "Token") -> str:
    """A block of code, what stands behind its first fence as its first line."""
    info = _unguarded(token.info.strip())
    heading = f'<span class="citejury-info">{info}</span>\n' if info else ""
    # A line end after `<pre>` itself would be dropped, and a blank line would end the block of HTML.
    code = (heading + _unguarded(token.content.removesuffix("\n"))).replace("\n", "&#10;")
    return f"<pre><code>{code}</code></pre>"


def _inline(tokens: "Sequence[Token]", counts: Counter[str]) -> list[str]:
    """Text with emphasis, code and line ends."""
    parts: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "text":
            counts.update(KINDS[guard] for guard in _COUNTED.findall(token.content))
            parts.append(_with_breaks(_unguarded(token.content)))
        elif token.type in ("softbreak", "hardbreak"):
            parts.append("<br>")
        elif token.type == "code_inline":
            parts.append(f"<code>{_unguarded(token.content.strip())}</code>")
        else:
            depth += token.nesting
            parts.append(f"<{'/' if token.nesting < 0 else ''}{token.tag}>")
        if depth > _DEEPEST:
            raise UnshownError
    return parts
