"""Pages that lead elsewhere by themselves: `<meta http-equiv="refresh">`, and the header of that name.

Source: https://html.spec.whatwg.org/#attr-meta-http-equiv-refresh, read 2026-11.
"""

import re
from html import unescape
from urllib.parse import urldefrag, urljoin

from pipeline.errors import InputError
from pipeline.sources.fetching._exchange import SUCCESS, Exchange, media_type, named_charset
from pipeline.sources.fetching.guard import web_target
from pipeline.sources.reading.decode import decoded
from pipeline.text.urls import canonical_url

# Whoever waits longer is shown the page: front pages load themselves anew every few minutes.
_LONGEST_WAIT = 10.0
_LOOKED_AT = 65_536
_HTML = ("text/html", "application/xhtml+xml", "")
# What counts for nothing in a browser with scripts: comments, those for old browsers too, and `noscript`.
_SKIPPED_OR_TAG = re.compile(
    r"""<!--.*?(?:-->|\Z)
    | <(?P<skipped>script|style|noscript|template|textarea|title|xmp|iframe)\b.*?(?:</(?P=skipped)\b|\Z)
    | <(?P<tag>meta|base)\b(?P<attributes>(?:[^<>"'] | "[^"]{0,4000}" | '[^']{0,4000}'){0,4000})>""",
    re.I | re.S | re.X,
)
_ATTRIBUTE = re.compile(r"""([\w-]{1,40})\s{0,20}=\s{0,20}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_REFRESH = re.compile(
    r"""\s*(?P<seconds>[0-9]{1,6})?(?:\.[0-9.]{0,20})?(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?(?P<url>\S.*)""", re.I | re.S
)


def forwarding_target(came: Exchange, url: str) -> str:
    """The URL that the page at `url` leads its reader to within ten seconds; empty where she stays.

    A target that is no http or https URL leads nowhere, as in a browser; whether it may be asked for is judged when it
    is. One that differs in its fragment only is the page itself.
    """
    target = _target(came, url)
    return "" if not target or urldefrag(target).url == urldefrag(url).url else target


def leads_to_itself(came: Exchange, url: str) -> bool:
    """Whether the page at `url` leads its reader to that very page within ten seconds, again and again."""
    return _target(came, url) == canonical_url(url)


def _target(came: Exchange, url: str) -> str:
    """The canonical URL that the page names to be shown within ten seconds; empty where it names none."""
    if came.status not in SUCCESS or came.reason or came.location:
        return ""
    told, base = came.headers.get("refresh", ""), url
    if not told and media_type(came.headers) in _HTML:
        told, base = _told_by_page(decoded(came.body[:_LOOKED_AT], named_charset(came.headers)), url)
    parts = _REFRESH.fullmatch(told)
    if parts is None or float(parts["seconds"] or 0) > _LONGEST_WAIT:
        return ""
    return _page_url(base, _unquoted(parts["url"]))


def _told_by_page(page: str, url: str) -> tuple[str, str]:
    """What the first refresh of the page says, empty without one, and the URL from which it counts."""
    base = url
    for found in _SKIPPED_OR_TAG.finditer(page):
        if not found["tag"]:
            continue
        values = {
            name.lower(): unescape(double or single or plain)
            for name, double, single, plain in _ATTRIBUTE.findall(found["attributes"])
        }
        if found["tag"].lower() == "base":
            base = _page_url(url, values.get("href", "")) or base
        elif values.get("http-equiv", "").strip().lower() == "refresh":
            return values.get("content", ""), base
    return "", base


def _unquoted(target: str) -> str:
    """The target, which may stand in quotes."""
    target = target.strip()
    quote = target[:1]
    return target[1:].partition(quote)[0] if quote in ("'", '"') else target


def _page_url(base: str, target: str) -> str:
    """The target's URL, canonical; empty where it leads to no page at all."""
    try:
        found = canonical_url(urljoin(base, target))
        web_target(found)
    except (InputError, ValueError):
        return ""
    return found
