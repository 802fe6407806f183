"""Debian's documentation as a web of several sites on loopback, and its texts as another reader than ours sees them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from lxml import html

from tests.support.debian_pages import DEBIAN_REFERENCE, DEVELOPERS_REFERENCE, debian_pages, handbook
from tests.support.web import Asked, Page, Web, page_of

ADDRESS = "127.0.0.1"
LANGUAGES = {"en": "en-US", "de": "de-DE", "ja": "ja-JP"}


class DebianPage(NamedTuple):
    host: str
    """The site that it is on."""
    path: str
    """Its path there."""
    title: str
    text: str
    """All text in its HTML, menus included; empty for a PDF."""


@cache
def debian_sites() -> dict[str, Path]:
    """The folder that each site serves; the test is skipped without Debian's documentation.

    `mirror.test` is the English handbook once more.
    """
    try:
        books = {f"handbook-{language}.test": handbook(folder) for language, folder in LANGUAGES.items()}
        return {
            **books,
            "reference.test": debian_pages(DEBIAN_REFERENCE).parent,
            "developers.test": debian_pages(DEVELOPERS_REFERENCE).parent,
            "mirror.test": books["handbook-en.test"],
        }
    except pytest.skip.Exception as missing:
        pytest.skip(str(missing))


@cache
def debian_page_list() -> tuple[DebianPage, ...]:
    """Every HTML page and PDF of the sites but the mirror, in a fixed order."""
    found = []
    for host, folder in debian_sites().items():
        if host == "mirror.test":
            continue
        for file in sorted([*folder.glob("*.html"), *folder.glob("*.pdf")]):
            found.append(DebianPage(host, f"/{file.name}", *title_and_text(file)))
    return tuple(page for page in found if not page.path.endswith(".html") or page.text)


def title_and_text(file: Path) -> tuple[str, str]:
    if file.suffix == ".pdf":
        return file.stem, ""
    root = html.document_fromstring(file.read_bytes())
    for element in root.xpath("//script | //style"):
        element.drop_tree()
    return root.findtext(".//title") or file.stem, str(root.text_content())


def debian_web() -> Web:
    """The sites as a web, a context; under the host `127.0.0.1`, for whoever resolves names himself, each is a folder.

    So `http://127.0.0.1:PORT/reference.test/ch02.en.html` is `http://reference.test:PORT/ch02.en.html`.
    """
    sites = debian_sites()

    def by_address(asked: Asked) -> Page:
        host, _, rest = asked.path.removeprefix("/").partition("/")
        return page_of(sites.get(host, {}), asked._replace(path=f"/{rest}"))

    return Web({**sites, ADDRESS: by_address})


def url_of(web: Web, page: DebianPage, by_address: bool = False) -> str:
    return web.url(ADDRESS, f"/{page.host}{page.path}") if by_address else web.url(page.host, page.path)


def debian_texts(web: Web, by_address: bool = False) -> Iterator[tuple[str, DebianPage]]:
    return ((url_of(web, page, by_address), page) for page in debian_page_list())
