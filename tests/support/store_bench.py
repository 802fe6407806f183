"""A page as the store keeps it, for the tests of the store."""

from hashlib import sha256

from pipeline.sources.store import StoredPage


def stored_page(url: str = "https://a.de/x", text: str = "Text.", raw: bytes = b"<p>Text.</p>") -> StoredPage:
    digests = (sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), sha256(raw).hexdigest())
    return StoredPage(
        url=url,
        final_url=f"{url}?final",
        text=text,
        title="Titel 富士山",
        domain="a.de",
        lang="de",
        content_type="text/html",
        hash=digests[0],
        ts="2026-11-22T05:00:00+00:00",
        raw=raw,
        raw_sha256=digests[1],
        status=200,
        reason="page",
        detail="",
        etag='"x1"',
        last_modified="Sun, 22 Nov 2026 05:00:00 GMT",
        page_starts=(0, 120, 4000),
        added=True,
    )
