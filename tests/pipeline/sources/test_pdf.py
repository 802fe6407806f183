from bisect import bisect_right

import pytest

from pipeline.sources.chunk import tokenize_chunk
from pipeline.sources.extract import Extracted, extract_document
from pipeline.sources.schema import Document, SourceMeta
from tests.support.debian_pages import DEBIAN_REFERENCE, DEVELOPERS_REFERENCE, debian_pages


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
        (DEBIAN_REFERENCE, 261, "There are two methods of associating a file", 41),
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
