"""Debian's documentation as real pages: a book in many languages and two PDFs, where `make pages` could fetch them."""

from pathlib import Path

import pytest

from tests.support.places import ROOT

PLACES = (ROOT / ".pages" / "usr" / "share", Path("/usr/share"))
HANDBOOK = "doc/debian-handbook/html"
DEVELOPERS_REFERENCE = "developers-reference/developers-reference.pdf"
DEBIAN_REFERENCE = "debian-reference/debian-reference.en.pdf"


def debian_pages(path: str) -> Path:
    """A file or folder below Debian's `/usr/share`, unpacked or installed; the test is skipped where there is none."""
    for place in PLACES:
        if (place / path).exists():
            return place / path
    pytest.skip("Debian's documentation is not here: `make pages` fetches it where apt-get works")


def handbook(language: str) -> Path:
    """The folder of the Debian handbook's HTML in one language, such as `de-DE`."""
    return debian_pages(f"{HANDBOOK}/{language}")
