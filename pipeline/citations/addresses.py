"""URLs: found in a text, stored, counted as the same source, and whose site they belong to.

Source: pipeline/contracts/urls.md.
"""

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

from pipeline.core.errors import InputError
from pipeline.text.markdown import block_parser
from pipeline.text.normal_form import INVISIBLE

if TYPE_CHECKING:
    from pydantic import AnyHttpUrl, TypeAdapter
    from tldextract import TLDExtract

GROUNDING_REDIRECT_HOST = "vertexaisearch.cloud.google.com"

# RFC 9110 section 4.1 asks everyone to carry at least 8,000 octets; longer ones are traps more often than pages.
MAX_URL_LENGTH = 8000

_HOST = re.compile(r"[a-z0-9_-](?:[a-z0-9._-]*[a-z0-9_.-])?")
_IP_V6 = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]*")
# What can be the URL of a source in CSV v2: a scheme, `://` and something behind it.
_ABSOLUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://.", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# What these name is on the reader's own machine, or is run by it.
_NO_PLACE = frozenset(["about", "blob", "chrome", "data", "file", "javascript", "vbscript", "view-source"])
_OTHER_SCHEME = re.compile(r"\s*(?!https?:)[a-z][a-z0-9+.-]+:\S", re.IGNORECASE)
_PASSWORD = re.compile(r"(//[^/?#:@]*):[^/?#]*@")


@cache
def _http_url() -> "TypeAdapter[AnyHttpUrl]":
    from pydantic import AnyHttpUrl, TypeAdapter  # slow to import, and most users of a domain need none

    return TypeAdapter(AnyHttpUrl)


@cache
def _public_suffixes() -> "TLDExtract":
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def canonical_url(url: str) -> str:
    """The URL as it is stored and exported: host in lower case and punycode, no default port, `../` resolved.

    Raises:
        InputError: it is no http(s) URL, holds a user name or password, or is longer than 8,000 characters.
    """
    if len(url) > MAX_URL_LENGTH:
        most = f"more than the {MAX_URL_LENGTH:,} that are read."
        raise InputError(f"The URL {url[:80]!r}… has {len(url):,} characters, {most}")
    try:
        parsed = _http_url().validate_python(url)
    except ValueError as error:  # pydantic's ValidationError is one
        raise InputError(f"{url!r} is not an http or https URL; give one that begins with `https://`.") from error
    if parsed.username is not None or parsed.password is not None:
        host = parsed.host or ""
        raise InputError(f"The URL of {host!r} holds a user name or password before the `@`; remove it.")
    return str(parsed)


def document_id(url: str, fallback: str = "") -> str:
    """16 hex digits of sha256 of the canonical URL; of the URL as it is, else of `fallback`, where it has none."""
    try:
        key = canonical_url(url)
    except InputError:
        key = url or fallback
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def membership_key(url: str) -> str:
    """The key under which two URLs are the same source: https, no leading `www.`, no single trailing slash."""
    try:
        canonical = canonical_url(url)
    except InputError:
        return url
    parts = urlsplit(canonical)
    rest = canonical[len(parts.scheme) + len("://") + len(parts.netloc) + len(parts.path) :]
    path = parts.path[:-1] if parts.path.endswith("/") and parts.path != "/" else parts.path
    return f"https://{_without_first_label(parts.netloc, 'www.')}{path}{rest}"


def site_key(url: str, named_site: str = "") -> str:
    """The site to which a URL belongs when sites are counted: the part of its host that somebody has registered.

    Empty where the URL has no http(s) host. `named_site` is the site that Google names beside a grounding redirect.
    """
    host = _without_first_label(_shown_host(url, named_site).rstrip("."), "www.", "m.")
    return _public_suffixes().extract_str(host).top_domain_under_public_suffix or host


def source_domain(url: str, named_site: str = "") -> str:
    """The site of a URL: its host in lower case and punycode, without one leading `www.`, without port.

    Empty where the URL has no http(s) host; `named_site` where it is a redirect of Google's that hides it.
    """
    return _shown_host(url, named_site).removeprefix("www.")


def _shown_host(url: str, named_site: str) -> str:
    host = url_host(url)
    named = host_name(named_site) if host == GROUNDING_REDIRECT_HOST and "." in named_site else ""
    return named or host


def _without_first_label(host: str, *labels: str) -> str:
    """The host without these labels at its front, each only where what remains has a dot and so can be a host."""
    for label in labels:
        rest = host.removeprefix(label)
        host = rest if "." in rest else host
    return host


def is_grounding_redirect(url: str) -> bool:
    return url_host(url) == GROUNDING_REDIRECT_HOST


def _has_user_name(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and "@" in parts.netloc
    except ValueError:
        return False


def reason_without_page(url: str) -> Literal["refused", "too_long", "not_web", "not_a_url"]:
    """Why there is nothing to fetch behind what was cited, as `pipeline.records.causes` names it."""
    if _has_user_name(url):
        return "refused"
    if len(url) > MAX_URL_LENGTH:
        return "too_long"
    return "not_web" if _OTHER_SCHEME.match(url) else "not_a_url"


def without_password(url: str) -> str:
    """The URL to be shown, with `…` for a password before its host; also of what is hardly a URL."""
    return _PASSWORD.sub(r"\1:…@", url, count=1)


def with_line_feeds(text: str) -> str:
    """The text whose lines, as Markdown counts them, all end in `\\n`; each code point keeps its place."""
    return text.replace("\r\n", " \n").replace("\r", "\n")


def is_address(url: str) -> bool:
    """Whether a citation can be of it: `scheme://` of a place elsewhere (pipeline/contracts/csv_v2.md#citations)."""
    found = _ABSOLUTE.match(url)
    scheme = found[1].lower() if found else ""
    if not scheme or scheme in _NO_PLACE or _CONTROL.search(url):
        return False
    try:
        parts = urlsplit(url)
        return scheme not in ("http", "https") or (bool(parts.hostname) and not re.search(r"\s", parts.netloc))
    except ValueError:
        return False


def url_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host:
        return ""
    return host if _IP_V6.fullmatch(host) else host_name(host)


def host_name(text: str) -> str:
    host = text.lower()
    if not host.isascii():
        try:
            host = urlsplit(canonical_url(f"https://{host}/")).hostname or ""
        except InputError:
            return ""
    return host if len(host) <= 253 and _HOST.fullmatch(host) else ""


# Alphabets that stand beside each other in names of sites; any other mixture may pass for another name:
# https://www.unicode.org/reports/tr39/#Restriction_Level_Detection, "highly restrictive".
_MIXED_IN_NAMES = frozenset(["LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO", "HANGUL"])
_HIDDEN = re.compile(f"[{INVISIBLE}]")


def shown_host(host: str) -> str:
    """The host for people: in punycode where a label mixes alphabets or hides a sign."""
    for label in re.split("[.。．｡]", host):
        alphabets = {unicodedata.name(letter, "").split(" ")[0] for letter in label if letter.isalpha()}
        if _HIDDEN.search(label) or (len(alphabets) > 1 and not alphabets <= _MIXED_IN_NAMES):
            return host_name(host) or _HIDDEN.sub("\ufffd", host)
    return host


def shown_url(url: str) -> str:
    """The URL for people: as it is written, but for what its host could hide."""
    host = _NAME_IN_URL.match(url)
    return url if host is None else url[: host.start(1)] + shown_host(host[1]) + url[host.end() :]


LinkKind = Literal["markdown", "reference", "definition", "image", "angle", "bare"]
_SCHEME = "(?i:https?)://"
# Letters of any script belong to an address (RFC 3987); what follows are the scripts whose prose runs on without a
# blank: kana, kanji, hangul and their full-width and half-width forms.
_UNSPACED = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u30ff\u3100-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U00020000-\U0003ffff"
)
# No address has them in any script: blanks, controls, quotes, commas, stops, symbols, pictures, private use.
_NEVER = (
    "\u0080-\u00a8\u00ab-\u00b4\u00b6\u00b8-\u00bb\u00bf\u00d7\u00f7\u037e\u0589\u060c\u061b-\u061f\u066a-\u066c\u06d4"
    "\u0964\u0965\u0e5a\u0e5b\u10fb\u1362-\u1368\u1680\u17d4-\u17da\u2000-\u200b\u200e-\u201f\u2020-\u2bff\u2e00-\u2e7f"
    "\u3000-\u3004\u3008-\u3020\u302a-\u3030\u3036-\u303f\ue000-\uf8ff\ufe10-\ufe6f\ufeff\uff00-\uff0f\uff1a-\uff20"
    "\uff3b-\uff40\uff5b-\uff65\uffe0-\uffff\U0001d000-\U0001ffff\U000e0000-\U0010ffff\ud800-\udfff"
)
# Square brackets are around a host of numbers, or around a key and before `=`: `?f[0]=a`.
_SQUARE = r"(?<=://)\[[0-9A-Fa-f.]*+:[0-9A-Fa-f:.]*+\]|(?>(?:\[[^\s\[\]<>()]{0,60}+\])+)(?==)"
# What is not seen belongs to a host that goes on behind it: the part before it would be another site.
# Hyphens, the dash of `Mann–Whitney` and the apostrophe of `L’Équipe` only within words.
_BARE_URL = re.compile(
    rf"{_SCHEME}(?>(?:[\w.-]{{0,63}}+[{INVISIBLE}]++(?=[\w.-]{{0,63}}(?:\.\w|/)))*)"
    rf"""(?>(?:(?!(?:[,;|]|(?<=\u30fb|[^\W_])){_SCHEME})[^\s<>"'()\[\]{{}}|\\^`{_NEVER}]"""
    rf"""|[\u2010-\u2013\u2019'](?=\w)|\([^\s()]*+\)|{_SQUARE})+)"""
)
_RUN_ON = re.compile(f"[{_UNSPACED}]")
_BEFORE_A_WORD = "/=_#&+~)-"
# Where prose may begin behind an address: with what begins no name, with nothing but such letters, or behind a letter.
_PROSE = re.compile(
    rf"(?<=[/)])(?:[ぁ-ゖ的를는]|에서)|(?<=[{_BEFORE_A_WORD}])[{_UNSPACED}]++\Z"
    rf"|(?<![{_UNSPACED}{_BEFORE_A_WORD}])(?P<letter>[{_UNSPACED}])(?P<others>[{_UNSPACED}]*+\Z)?"
)
_GROUP = re.compile(r"(_?)\([^\s()]*+\)")
_WITHIN = re.compile(r"[/?#]|&\w*+=")
_HOST_OF_TEXT = re.compile(f"{_SCHEME}([^/?#]*+)")
_NAME_IN_URL = re.compile(f"{_SCHEME}(?:[^/?#@]*+@)?([^/?#:@]*+)")
# Where brackets say where the URL ends, it keeps what is not ASCII, but for the full-width marks that end a phrase.
_DELIMITED_URL = re.compile(
    rf"""{_SCHEME}(?>(?:[^\s<>"'()\[\]{{}}|\\^`「」『』（）【】、。]|{_SQUARE}"""
    r"""|\([^\s()]*+\)|（[^\s（）]*+）|「[^\s「」]*+」|『[^\s『』]*+』|【[^\s【】]*+】)+)"""
)
# `[ref]: https://… "title"`; `[^1]: …` is a footnote. Source: CommonMark 0.31 section 4.7.
_DEFINITION = re.compile(
    r"^[ \t>]*+(?:[-*+][ \t]++)?\[(?P<ref>[^\[\]\n^][^\[\]\n]{0,200})\]:[ \t]*+(?:\n[ \t>]*+)?"
    rf"(?:<(?P<angle>{_DELIMITED_URL.pattern})>|(?P<bare>{_DELIMITED_URL.pattern}))"
    r"""(?:\s[ \t>]*+(?P<title>"[^"\n]{0,500}+"|'[^'\n]{0,500}+'|\([^()\n]{0,500}+\)))?[ \t]*+$""",
    re.MULTILINE,
)
_END_OF_REFERENCE = re.compile(r"\](?:\[(?P<ref>[^\[\]\n]{0,200})\]|(?![\[(:]))")
_MARK_LIKE = re.compile(r"[\s\d\[\],;–-]+(?:†.*)?|\^.*|c\d{3}|cite:.*")
_OPENING = re.compile(rf"(?:\]\([ \t]*+<?|<)(?={_SCHEME})")
_CLOSING_OF_LINK = re.compile(r"""[ \t]*+(?:"[^"\n]{0,500}+"|'[^'\n]{0,500}+')?[ \t]*+\)""")
_LABEL_MARK = re.compile(r"\\.|[\[\]]|\n[ \t]*+\n", re.DOTALL)


class Link(NamedTuple):
    """One URL and where it stands: `start` and `end` are code points and span the whole link, label included."""

    start: int
    end: int
    url: str
    label: str
    kind: LinkKind
    longer: str = ""
    """A bare URL with the kana, kanji or hangul right behind it, which may be prose; empty where there are none."""


def find_links(text: str) -> list[Link]:
    """Every link in the text in the order of its URL; repeats are kept, a URL inside another is not one of its own.

    The label is empty for `<url>` and bare URLs, that of a definition is its title. Runs in linear time. Source:
    CommonMark 0.31 section 6.3.
    """
    found = [*_delimited_links(text), *_reference_links(text)]
    for match in _BARE_URL.finditer(text):  # those inside other links included
        url, longer = _readings(match[0])
        if url:
            end = match.start() + len(url)
            found.append(
                (match.start(), match.end() if not longer else end, Link(match.start(), end, url, "", "bare", longer))
            )
    links: list[Link] = []
    position = 0
    for url_start, url_end, link in sorted(found, key=lambda each: each[0]):
        if url_start >= position:
            links.append(link)
            position = url_end
    return links


def links_of(text: str, attached: Iterable[str]) -> list[Link]:
    """The links of an answer; one that leads where an `attached` URL does has that URL's form."""
    forms = {link_key(url): url for url in reversed(list(attached))}
    links: list[Link] = []
    for link in find_links(text):
        if form := forms.get(link_key(link.url)):
            link = link._replace(url=form)
        elif link.longer and (form := forms.get(link_key(link.longer))):
            link = link._replace(url=form, end=link.start + len(link.longer), longer="")
        links.append(link)
    return links


def link_key(url: str) -> str:
    """The key under which two spellings are one address; a text that is no URL is its own."""
    if url.isascii() and "%" not in url:
        return url
    try:
        return canonical_url(url)
    except InputError:
        return url


def _reference_links(text: str) -> Iterator[tuple[int, int, Link]]:
    """`[label][ref]`, `[label][]` and `[label]`, and the definitions of what is no number or is named by such a link.

    `[1]` and `[1][2]` are marks, and a definition that only they name is an entry of a source list.
    """
    written = list(_DEFINITION.finditer(text)) if "]:" in text else []
    code = verbatim_spans(text) if written else ()
    definitions: dict[str, Link] = {}
    for match in written:
        url, title = _clean_url(match["angle"] or match["bare"]), (match["title"] or "")[1:-1]
        if url and not is_within(match.start(), code):
            definitions.setdefault(_reference_key(match["ref"]), Link(*match.span(), url, title, "definition"))
    ends = list(_END_OF_REFERENCE.finditer(text)) if definitions else []
    starts = _label_starts(text, (end.start() for end in ends))
    used = set()
    for end in ends:
        start = starts.get(end.start(), -1001)
        label = text[start + 1 : end.start()] if end.start() - start <= 1000 else ""  # no label is longer
        key = _reference_key(end["ref"] or label)
        is_mark = _MARK_LIKE.fullmatch(key) and _MARK_LIKE.fullmatch(_reference_key(label))
        if label and key in definitions and not is_mark and not is_within(start, code):
            used.add(key)
            is_image = text[start - 1 : start] == "!"
            kind: LinkKind = "image" if is_image else "reference"
            yield end.start(), end.end(), Link(start - is_image, end.end(), definitions[key].url, label, kind)
    for key, link in definitions.items():
        if key in used or not _MARK_LIKE.fullmatch(key):
            yield link.start, link.end, link


def _reference_key(label: str) -> str:
    return " ".join(label.split()).casefold()


def inline_references(text: str) -> str:
    """The text with `[label](<url>)` for its reference links, so that its parts can be read by themselves."""
    parts: list[str] = []
    position = 0
    for link in find_links(text):
        if link.kind == "reference" and link.start >= position:
            parts += [text[position : link.start], f"[{link.label}](<{link.url}>)"]
            position = link.end
    return "".join([*parts, text[position:]])


def _delimited_links(text: str) -> Iterator[tuple[int, int, Link]]:
    """What begins as a link and does not end as one is a bare URL. With each the code points that its URL takes."""
    openings = list(_OPENING.finditer(text))
    labels = _label_starts(text, (match.start() for match in openings if match[0][0] == "]"))
    for opening in openings:
        target = _DELIMITED_URL.match(text, opening.end())
        url = _clean_url(target[0]) if target else ""
        if target is None or not url:
            continue
        url_start, url_end = target.span()
        whole = _whole_link(text, opening, url_end, labels.get(opening.start()))
        start, end, label, kind = whole or (url_start, url_start + len(url), "", "bare")
        yield url_start, url_end, Link(start, end, url, label, kind)


def _whole_link(
    text: str, opening: re.Match[str], url_end: int, label_start: int | None
) -> tuple[int, int, str, LinkKind] | None:
    """Start, end, label and kind of the link around a URL; None where brackets do not close or a label is too long."""
    if opening[0].endswith("<"):
        if text[url_end : url_end + 1] != ">":
            return None
        url_end += 1
        if opening[0] == "<":
            return opening.start(), url_end, "", "angle"
    closing = _CLOSING_OF_LINK.match(text, url_end)
    # No label that a person reads is longer; without a bound, nested brackets would be copied over and over.
    if closing is None or label_start is None or opening.start() - label_start > 1000:
        return None
    label = text[label_start + 1 : opening.start()]
    if label_start and text[label_start - 1] == "!":
        return label_start - 1, closing.end(), label, "image"
    return label_start, closing.end(), label, "markdown"


def _label_starts(text: str, closings: Iterable[int]) -> dict[int, int]:
    """The position of the `[` that each of these `]` closes; a blank line ends what is open, as in CommonMark."""
    wanted = set(closings)
    starts: dict[int, int] = {}
    opened: list[int] = []
    for mark in _LABEL_MARK.finditer(text) if wanted else ():
        if mark[0] == "[":
            opened.append(mark.start())
        elif mark[0][0] == "\n":
            opened.clear()
        elif mark[0] == "]" and opened:
            start = opened.pop()
            if mark.start() in wanted:
                starts[mark.start()] = start
    return starts


def _readings(written: str) -> tuple[str, str]:
    """A bare URL without the letters behind it that may be prose, and with them; empty where none is in doubt.

    Source: pipeline/contracts/urls.md#in-running-text.
    """
    url = _clean_url(written)
    host = _HOST_OF_TEXT.match(url)
    if host is None:
        return "", ""
    top = host[1].rpartition(".")[2]
    prose = _RUN_ON.search(top)
    if prose and prose.start():
        return _clean_url(url[: host.end() - len(top) + prose.start()]), ""
    # Brackets hide what is in them; behind `_` no prose has them, so what stands before belongs to the address.
    outline = _GROUP.sub(lambda group: ("/" if group[1] else ")") * len(group[0]), url)
    start = max((sign.end() for sign in _WITHIN.finditer(outline, host.end())), default=host.end())
    prose = _PROSE.search(outline, start)
    has_own_letters = _RUN_ON.search(host[1]) is not None
    if prose is None or (has_own_letters and prose["letter"] is None):
        return url, ""
    # Behind a letter they are prose for sure where nothing but them stands there.
    is_sure = prose["others"] is not None and not has_own_letters and not _RUN_ON.search(outline, start, prose.start())
    return _clean_url(url[: prose.start()]), "" if is_sure else url


def _clean_url(url: str) -> str:
    url = url.rstrip(".,;:!?*_·・’‐‑‒–")
    return url if len(url) > len(url.split("://")[0]) + len("://") else ""


_MAY_BE_VERBATIM = re.compile(r"`|~~~|\$|\\[(\[]|<!--|<code|<pre|^[ >]*(?:    |\t)", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?|\n")
_CODE_SPAN = re.compile(r"(?<![`\\])(`++).{1,5000}?(?<!`)\1(?!`)", re.DOTALL)
_CELL = re.compile(r"(?>(?:[^|\\]|\\.)+)")
# `$5 [1] and 6$` is money, `\[1\]` an escaped mark, and no formula has an address.
_IN_FORMULA = r"(?:(?!://|\n[ \t>]*\n|\\[(\[]).){1,2000}?"
_FORMULA_OR_COMMENT = re.compile(
    rf"(?<!\\)\$\${_IN_FORMULA}\$\$|(?<!\\)\\\({_IN_FORMULA}\\\)"
    rf"|(?<!\\)\\\[(?!\^?\d[\d,;\s^–-]*\\?\]){_IN_FORMULA}\\\]"
    r"|(?<![\\$\w])\$(?![\s$/]|\d[^$\n\\^_=+{}<>]*\$)(?:(?!://)[^$\n]){1,300}?(?<!\s)\$(?![\w$])"
    r"|<!--(?>(?:(?!-->|\n[ \t>]*\n).){0,1000})-->|<(?P<tag>code|pre)\b[^<>]{0,300}+>.{0,2000}?</(?P=tag)>",
    re.DOTALL,
)


@lru_cache(maxsize=8)
def verbatim_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where code, formulas and comments stand, in order: nothing in them is a mark, and none is put into them.

    Code is what Markdown makes code: blocks that are fenced, if only up to the text's end, or indented, and what stands
    between backticks within one paragraph or cell.
    """
    if not _MAY_BE_VERBATIM.search(text):
        return ()
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text) + 1]
    found: list[tuple[int, int]] = []
    row_end = 0
    for token in block_parser().parse(text):
        start, end = (starts[line] for line in token.map or (0, 0))
        if token.type in ("fence", "code_block"):
            found.append((start, end - 1))
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            found.append((start, (text.find("-->", start, end) + 3) if "-->" in token.content else end - 1))
        elif token.type == "tr_open":
            row_end = end
            cells = _CELL.finditer(text, start, end)
            found += (code.span() for cell in cells for code in _CODE_SPAN.finditer(text, *cell.span()))
        elif token.type == "inline" and start >= row_end:
            found += (code.span() for code in _CODE_SPAN.finditer(text, start, end))
    between = pairwise([(0, 0), *found, (len(text), len(text))])
    other = (_FORMULA_OR_COMMENT.finditer(text, start, end) for (_, start), (end, _) in between)
    return tuple(sorted([*found, *(match.span() for matches in other for match in matches)]))


def is_within(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    index = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return index >= 0 and spans[index][0] <= position < spans[index][1]
