"""What became of one URL, told from the last response: a body to read, or a reason why there is none."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from pipeline.sources.fetching.exchange import SUCCESS, Exchange, media_type
from pipeline.sources.reading.charset import charset_of

REASONS = {401: "login", 402: "paywall", 407: "login"}
NOT_MODIFIED = 304
# What names no type: the bytes tell whether it is a PDF.
UNTOLD = ("", "application/octet-stream", "binary/octet-stream")
DOWNLOADS = ("application/download", "application/x-download", "application/force-download")
PDF = "application/pdf"
PDF_TYPES = ("application/x-pdf", *UNTOLD, *DOWNLOADS)


class Fetched(NamedTuple):
    """What became of one URL."""

    url: str
    """The canonical URL that was asked for; as it was given where it is none."""
    final_url: str
    """Where its redirects ended."""
    status: int | None = None
    """Status of the last response; None where none came."""
    content_type: str = ""
    """Media type in lower case without parameters; told by the bytes where the server names none."""
    charset: str = ""
    """Python's name of the encoding; empty for a PDF and where there is no body."""
    body: bytes = b""
    """The unpacked body; empty where there is none to read."""
    sha256: str = ""
    """Hex digest of the body; empty without one."""
    etag: str = ""
    """For the next time; empty where the server named none."""
    last_modified: str = ""
    """For the next time; empty where the server named none."""
    fetched_at: str = ""
    """When the last response was there, ISO 8601 UTC."""
    seconds: float = 0.0
    """How long the requests took together, waits between them left out."""
    reason: str = "page"
    """`page` where there is a body to read, or where it has not changed; otherwise a reason of `states.py`."""
    detail: str = ""
    """The reason in plain words; may hold words of the server's."""
    not_modified: bool = False
    """The page is still what `etag` or `last_modified` stand for; then there is no body."""


def to_fetched(came: Exchange, start: Fetched, conditional: bool) -> Fetched:
    """What became of the URL that `start` names, from its last exchange; `conditional` where a 304 was asked for."""
    kept = {name: header_value(came.headers.get(name, "")) for name in ("etag", "last-modified")}
    end = start._replace(status=came.status, content_type=media_type(came.headers))
    if came.reason:
        return end._replace(reason=came.reason, detail=came.detail)
    if came.status == NOT_MODIFIED and conditional:
        return end._replace(not_modified=True, etag=kept["etag"], last_modified=kept["last-modified"])
    if came.status not in SUCCESS:
        return refused_by_status(end, came)
    return with_body(end._replace(etag=kept["etag"], last_modified=kept["last-modified"]), came)


def with_body(end: Fetched, came: Exchange) -> Fetched:
    """What became of a URL whose server answered with a body."""
    if not came.body:
        return end._replace(reason="empty", detail="the server sent an empty page")
    media = told_type(end.content_type, came.body)
    if media in PDF_TYPES:  # and yet it is none
        return end._replace(reason="not_text", detail=f"it is {media!r}" if media else "it is no text")
    charset = "" if media == PDF else charset_of(came.body, named_charset(came.headers))
    digest = hashlib.sha256(came.body).hexdigest()
    return end._replace(content_type=media, charset=charset, body=came.body, sha256=digest)


def refused_by_status(end: Fetched, came: Exchange) -> Fetched:
    """What became of a URL whose server answered with a status that is no success."""
    # https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
    if came.headers.get("cf-mitigated", "") == "challenge":
        return end._replace(reason="captcha", detail=f"the site wants to see a person (status {came.status})")
    status = came.status or 0
    return end._replace(
        reason=REASONS.get(status, f"status_{status}"), detail=f"the server answered with status {status}"
    )


def told_type(media: str, body: bytes) -> str:
    """The media type, by the first bytes where the server names none that says anything.

    Source: https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type, read 2026-11.
    """
    beginning = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n\f")
    if beginning.startswith(b"%PDF-"):
        return PDF
    if media == "" or "/" not in media:
        if b"\0" in body[:512] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
            return ""
        return "text/html" if beginning.startswith(b"<") else "text/plain"
    return media


def named_charset(headers: Mapping[str, str]) -> str:
    """The `charset` of the `Content-Type`; empty where it names none."""
    for parameter in headers.get("content-type", "").split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip()
    return ""


def header_value(text: str) -> str:
    """The text where a header can carry it, otherwise nothing: it comes from a server, and goes to one."""
    return text if len(text) <= 1000 and text.isascii() and text.isprintable() else ""
