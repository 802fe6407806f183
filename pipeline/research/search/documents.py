"""The user's own documents, read from a folder into the store, each under a URL that stands for its file.

Contracts want http(s) URLs, so a file is named under the host `documents.invalid`, which can never exist (RFC 6761
section 6.4): `manuals/debian/apt.html`, found in the folder `manuals`, is
`https://debian.manuals.documents.invalid/apt.html`. Each folder on the first level is a site of its own when sites are
counted, and the files beside those folders are one together.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pipeline.errors import InputError
from pipeline.gathering.run_sources import MEDIA_TYPES, added_page, read_file
from pipeline.sources.reading.extractor import Extractor
from pipeline.sources.store import Store
from pipeline.terminal import counted
from pipeline.text.urls import canonical_url

_HOST = "documents.invalid"
_HOST_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_FILES_AT_ONCE = 16


class ReadDocuments(NamedTuple):
    """What a folder holds."""

    urls: tuple[str, ...]
    """The documents that were read, by the paths of their files."""
    left_out: tuple[str, ...]
    """Files of which nothing can be read, each with the reason."""
    other_kinds: int
    """Files that are neither PDF nor HTML nor text."""
    page_sources: int = 0
    """Files that Sphinx made HTML pages of and keeps beside them, which say the same once more."""


async def read_documents(folder: Path, store: Store) -> ReadDocuments:
    """The folder's documents, which stand in the store afterwards; those that have not changed are not read again.

    Files and folders whose names begin with a dot are passed over, and links to folders are not followed.

    Raises:
        InputError: there is no such folder, or no document in it can be read.
    """
    files = document_files(folder)
    page_sources = {file for file in files if _is_page_source(file, folder)}
    known = [file for file in files if file.suffix.lower() in MEDIA_TYPES and file not in page_sources]
    room = asyncio.Semaphore(_FILES_AT_ONCE)

    async def read(file: Path, extractor: Extractor) -> str:
        async with room:
            return await _read_document(document_url(folder, file), file, extractor, store)

    by_size = sorted(known, key=_size_of, reverse=True)  # or one core works on a large one when the others are done
    async with Extractor() as extractor:
        told = await asyncio.gather(*(read(file, extractor) for file in by_size))
    problem_of = dict(zip(by_size, told, strict=True))
    problems = [problem_of[file] for file in known]
    urls = tuple(document_url(folder, file) for file, problem in zip(known, problems, strict=True) if not problem)
    if not urls:
        raise _nothing_to_read(folder, files, next(filter(None, problems), ""))
    other_kinds = len(files) - len(known) - len(page_sources)
    return ReadDocuments(urls, tuple(filter(None, problems)), other_kinds, len(page_sources))


def document_files(folder: Path) -> list[Path]:
    """The folder's files, of which one at least is of a kind that is read.

    Raises:
        InputError: there is no such folder, or no such file in it.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}. Name the one that holds the documents to search.")
    files = list(_files_in(folder))
    if not any(file.suffix.lower() in MEDIA_TYPES for file in files):
        raise _nothing_to_read(folder, files)
    return files


def _nothing_to_read(folder: Path, files: Sequence[Path], problem: str = "") -> InputError:
    """That nothing of the folder can be read, and the first problem where there was one."""
    of = f", of {counted(len(files), 'file')}" if files else ""
    return InputError(
        f"The folder {str(folder)!r} holds no document that can be read{of}. PDF, HTML, Markdown and plain text are "
        f"read.{' ' if problem else ''}{problem}"
    )


def _is_page_source(file: Path, folder: Path) -> bool:
    """Whether Sphinx put it into `_sources/` when it made a page of it: `_sources/a/b.rst.txt` of `a/b.html`."""
    above, sources, below = f"/{file.relative_to(folder).as_posix()}".rpartition("/_sources/")
    page = Path(f"{folder}{above}/{below.removesuffix('.txt')}").with_suffix(".html")
    return bool(sources) and page.is_file()


def _files_in(folder: Path) -> Iterator[Path]:
    """The files in the folder and those below it, by their paths."""
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(above, name) for name in sorted(names) if not name.startswith("."))


def _size_of(file: Path) -> int:
    """Its size in bytes; 0 of one that is gone or a broken link, which reading tells."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


async def _read_document(url: str, file: Path, extractor: Extractor, store: Store) -> str:
    """Why nothing of the file can be read; empty where it is in the store."""
    try:
        held = store.page(url, with_raw=False)
        if held and held.text.strip() and held.raw_sha256 == hashlib.sha256(read_file(file)).hexdigest():
            return ""
        page = await added_page(url, file, extractor)
    except (InputError, OSError) as problem:
        return str(problem)
    store.put_page(page if page.title else page._replace(title=file.stem.replace("_", " ").strip()[:300]))
    return ""


def document_url(folder: Path, file: Path) -> str:
    """The canonical URL that stands for a file in the folder."""
    *folders, name = file.relative_to(folder).parts
    sites = [_label_of(part) for part in (*folders[:1], folder.resolve().name) if part]
    path = quote(os.fsencode("/".join([*folders[1:], name])))
    return canonical_url(f"https://{'.'.join([*sites, _HOST])}/{path}")


def _label_of(name: str) -> str:
    """The name as part of a host; where it holds more than a host can, with a few digits that tell it from others."""
    if _HOST_LABEL.fullmatch(name):
        return name
    digits = hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
    letters = _NO_LETTERS.sub("-", name.lower()).strip("-")[:30].strip("-")
    return f"{letters}-{digits}" if letters else digits


def is_document(url: str) -> bool:
    """Whether the URL stands for a file of the user's."""
    return url.partition("://")[2].partition("/")[0].endswith(_HOST)
