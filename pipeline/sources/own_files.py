"""Files of the user's own, read as the pages that they stand for."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.citations.addresses import source_domain
from pipeline.core.errors import InputError
from pipeline.core.prompts import text_digest
from pipeline.sources.store import StoredPage

if TYPE_CHECKING:
    from pipeline.sources.extract import Extracted, Extractor

_MAX_BYTES = 100_000_000

MEDIA_TYPES = {
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
}


async def added_page(key: str, file: Path, extractor: "Extractor") -> StoredPage:
    """The user's file as the page under this key; it wins over the web for good. InputError where it holds no text.

    What makes a fetched page useless, such as a notice of cookies on it, is the user's to judge.
    """
    body = read_file(file)
    extracted = await extractor.extract(body, MEDIA_TYPES.get(file.suffix.lower(), ""), "", key)
    if extracted.reason == "not_text":
        raise InputError(f"{str(file)!r} is none of PDF, HTML, Markdown and plain text; nothing else is read.")
    if not extracted.text.strip():
        why = extracted.detail or extracted.reason
        raise InputError(f"{str(file)!r} holds no text that can be read ({why}); save the page anew, or as plain text.")
    return _page_of_file(key, body, extracted)


def read_file(file: Path) -> bytes:
    """The file's bytes; InputError where there is no such file, or it is too large."""
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InputError(f"{str(file)!r} is larger than {_MAX_BYTES:,} bytes; that is no page.")
        return file.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(f"There is no file {str(file)!r} to add; `--add` wants the URL and then the file.") from error


def _page_of_file(key: str, body: bytes, extracted: "Extracted") -> StoredPage:
    now, digest = datetime.now(UTC).isoformat(timespec="seconds"), hashlib.sha256(body).hexdigest()
    empty = StoredPage(key, key, "", "", source_domain(key), "", "", "", now, body, digest, None, "added", "")
    return with_text(empty._replace(added=True), extracted)


def with_text(page: StoredPage, extracted: "Extracted") -> StoredPage:
    """The page with what was read in its body."""
    read = {name: getattr(extracted, name) for name in ("text", "title", "page_starts", "headings", "read_share")}
    kind = extracted.content_type or page.content_type
    return page._replace(lang=extracted.language, content_type=kind, hash=text_digest(extracted.text), **read)
