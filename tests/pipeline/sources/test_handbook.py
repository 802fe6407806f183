"""The Debian handbook in three languages, from its files to chunks."""

import pytest

from pipeline.sources.chunk import tokenize_chunk
from pipeline.sources.extract import extract_document
from pipeline.sources.schema import Document, SourceMeta
from pipeline.text.sentences import sentence_spans
from tests.support.debian_pages import handbook

# A page of each that its translators have finished; some others are in English in every language.
PAGES = {
    "de-DE": ("sect.how-to-migrate.html", "de", "3.2. Migrationsvorgang", "ein genaueres Verständnis"),
    "en-US": ("sect.how-to-migrate.html", "en", "3.2. How To Migrate", "compatibility"),
    "ja-JP": ("sect.how-to-migrate.html", "ja", "3.2. 移行の方法", "互換性"),
}


@pytest.mark.parametrize("folder", PAGES)
def test_a_chapter_of_the_handbook_becomes_chunks_of_whole_sentences(folder: str) -> None:
    name, language, title, word = PAGES[folder]
    found = extract_document((handbook(folder) / name).read_bytes(), "text/html", "", "https://a.example/")
    assert (found.reason, found.language, found.title) == ("page", language, title)
    assert word.casefold() in found.text.casefold()
    meta = SourceMeta(domain="a.example", lang=language)
    document = Document(url="https://a.example/", text=found.text, source_meta=meta)
    chunks = tokenize_chunk(document, 250, 30)
    assert len(chunks) > 3
    spans = sentence_spans(found.text, language)
    assert {chunk.start for chunk in chunks} <= {start for start, _ in spans}
    assert {chunk.end for chunk in chunks} <= {end for _, end in spans}
    assert max(chunk.tokens for chunk in chunks) <= 250
