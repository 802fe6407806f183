import asyncio
import sqlite3
from bisect import bisect_right
from pathlib import Path

import pytest

from pipeline.sources.chunk import tokenize_chunk
from pipeline.sources.extract import Extracted, Extractor, extract_document
from pipeline.sources.headings import Heading, headings_above, headings_of
from pipeline.sources.schema import Document, SourceMeta
from pipeline.sources.store import VERSION, open_store
from tests.support.debian_pages import DEBIAN_REFERENCE, DEVELOPERS_REFERENCE, debian_pages, handbook
from tests.support.store_bench import stored_page


def made_pdf(*pages: list[str]) -> bytes:
    """A PDF of these pages, each a list of lines; readers mend its missing table of objects."""
    kids = " ".join(f"{10 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj",
        f"2 0 obj <</Type/Pages/Kids[{kids}]/Count {len(pages)}>> endobj",
        "3 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj",
        "4 0 obj <</Title(A small report)>> endobj",
    ]
    for number, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj 0 -14 Td" for line in lines)
        stream = f"BT /F1 10 Tf 40 700 Td {shown} ET"
        at = 10 + 2 * number
        objects.append(
            f"{at} 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {at + 1} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>> endobj"
        )
        objects.append(f"{at + 1} 0 obj <</Length {len(stream)}>> stream\n{stream}\nendstream endobj")
    return "\n".join(["%PDF-1.4", *objects, "trailer <</Root 1 0 R/Info 4 0 R>>", "%%EOF"]).encode()


def read(body: bytes) -> Extracted:
    return extract_document(body, "application/pdf", "", "https://a.example/report.pdf")


def test_lines_become_paragraphs_pages_keep_their_places_and_pictures_are_no_page() -> None:
    first = ["The vaccine was tested on many people in all parts of the coun-", "try and found to be safe. Fine."]
    found = read(made_pdf(first, [], ["Second page."]))
    assert found.text == (
        "The vaccine was tested on many people in all parts of the country and found to be safe. Fine.\nSecond page."
    )
    assert found.page_starts == (0, found.text.index("Second"), found.text.index("Second"))
    assert (found.reason, found.title, found.content_type) == ("page", "A small report", "application/pdf")
    found = read(made_pdf([], []))
    assert (found.reason, found.detail) == ("empty", "no text on its 2 pages, which may be pictures of text")
    assert read(made_pdf([])).detail == "no text on its 1 page, which may be pictures of text"
    assert read(b"%PDF-1.7\nno more of it").reason == "parser_failed"


@pytest.mark.parametrize(
    ("path", "pages", "words", "page"),
    [
        (DEVELOPERS_REFERENCE, 114, "Special case: the stable-updates suite\nSometimes", 41),
        pytest.param(DEBIAN_REFERENCE, 261, "There are two methods of associating", 41, marks=pytest.mark.rare),
    ],
)
def test_the_pages_of_a_manual_are_right(path: str, pages: int, words: str, page: int) -> None:
    found = read(debian_pages(path).read_bytes())
    assert (found.reason, found.language, len(found.page_starts)) == ("page", "en", pages)
    assert bisect_right(found.page_starts, found.text.index(words)) == page
    document = Document(url="https://a.example/", text=found.text, source_meta=SourceMeta(domain="a.example"))
    chunks = tokenize_chunk(document, 250, 0, found.page_starts)
    (holder,) = (chunk for chunk in chunks if words[-20:] in chunk.text)
    assert holder.page in (page - 1, page)  # it may begin at the bottom of the page before
    assert [chunk.page for chunk in chunks] == sorted(chunk.page or 0 for chunk in chunks)
    assert max(chunk.tokens for chunk in chunks) <= 250


PROSE = "Bees live in colonies of many thousands, and one queen lays all the eggs of a colony. " * 3
PAGE = f"""<html><head><title>Bees</title></head><body>
<nav><h2>Site menu</h2><a href="/">Start</a></nav>
<article><h1>Bees ¶</h1><p>{PROSE}</p><h2>Honey</h2><p>{PROSE}</p><h3>Storing   honey</h3><p>{PROSE}</p>
<h2>Wax</h2><p>{PROSE}</p></article></body></html>"""


def test_headings_of_a_page_are_known_and_a_place_stands_under_those_above_it() -> None:
    wanted = [(1, "Bees"), (2, "Honey"), (3, "Storing honey"), (2, "Wax")]
    for page in (PAGE, PAGE.replace("<h2>Honey</h2>", "<h2>Wax</h2><h2>Honey</h2>", 1)):
        found = extract_document(page.encode(), "text/html", "", "https://a.example/bees")
        assert [(each.level, each.text) for each in found.headings] == wanted
        assert all(found.text[each.start :].startswith(each.text.split()[0]) for each in found.headings)
    headings = (Heading(10, 1, "Bees"), Heading(20, 2, "Honey"), Heading(30, 3, "Storing"), Heading(40, 2, "Wax"))
    assert (headings_above(headings, 5), headings_above(headings, 35)) == ((), ("Bees", "Honey", "Storing"))
    assert headings_above(headings, 40) == ("Bees", "Wax")
    assert (headings_of(headings, 25, 41), headings_of((), 0, 9)) == (("Bees", "Honey", "Storing", "Wax"), ())
    found = extract_document(
        b"# Bees\n\nThey fly far.\n\n## Wax ##\n\nIt melts.", "text/plain", "", "https://a.example/"
    )
    assert found.headings == (Heading(0, 1, "Bees"), Heading(found.text.index("## Wax"), 2, "Wax"))


def test_headings_of_a_handbooks_section_keep_their_numbers_and_bookmarks_of_a_pdf_are_its_headings() -> None:
    body = (handbook("en-US") / "sect.apparmor.html").read_bytes()
    found = extract_document(body, "text/html", "", "https://a.example/apparmor")
    names = ["Introduction to AppArmor", "Principles", "Enabling AppArmor and managing", "Creating a new profile"]
    numbers = ("14.4.", "14.4.1.", "14.4.2.", "14.4.3.")
    assert all(
        each.text.startswith(f"{number} {name}")
        for each, number, name in zip(found.headings, numbers, names, strict=True)
    )
    place = found.text.index("AppArmor applies a set of rules")
    assert headings_above(found.headings, place) == ("14.4. Introduction to AppArmor", "14.4.1. Principles")
    pdf = debian_pages(DEBIAN_REFERENCE).read_bytes()
    found = extract_document(pdf, "application/pdf", "", "https://a.example/reference.pdf")
    encryption = next(each for each in found.headings if each.text.endswith("Data encryption tips"))
    assert "encryption" in found.text[encryption.start :][:400]
    assert encryption.text in headings_above(found.headings, found.text.index("dm-crypt", encryption.start))


def test_headings_come_back_from_the_process_that_reads_and_from_the_store(tmp_path: Path) -> None:
    async def read() -> tuple[Heading, ...]:
        async with Extractor(1) as extractor:
            return (await extractor.extract(PAGE.encode(), "text/html", "", "https://a.example/bees")).headings

    headings = asyncio.run(read())
    with open_store(tmp_path / "store.db") as store:
        store.put_page(stored_page()._replace(headings=headings))
        kept = store.page(stored_page().url)
    assert kept
    assert (kept.headings, len(headings)) == (headings, 4)


@pytest.mark.parametrize("lacking", [["headings", "read_share"], ["read_share"]])
def test_a_store_without_headings_or_shares_is_brought_up_to_date(tmp_path: Path, lacking: list[str]) -> None:
    with open_store(tmp_path / "store.db") as store:
        store.put_page(stored_page())
    with sqlite3.connect(tmp_path / "store.db") as old:
        for column in lacking:
            old.execute(f"ALTER TABLE pages DROP COLUMN {column}")
        old.execute("DROP TABLE archived")
        old.execute(f"PRAGMA user_version = {VERSION - 1 - len(lacking)}")
    old.close()
    with open_store(tmp_path / "store.db") as store:
        assert [(page.headings, page.read_share) for page in store.pages()] == [((), None)]
        store.put_page(stored_page()._replace(read_share=0.72))
        outcome = store.outcome(stored_page().url)
    assert outcome
    assert outcome.read_share == 0.72
