import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import InputError
from pipeline.sources.chunk import count_tokens, tokenize_chunk
from pipeline.sources.extract import extract_document
from pipeline.sources.schema import Chunk, Document, SourceMeta
from pipeline.text.sentences import sentence_spans
from tests.support.debian_pages import handbook

ENGLISH = "Dr. Smith measured it in the U.S. on 3 March, and wrote it down in Fig. 2 of his report. "
GERMAN = "Das gilt z. B. für Dr. Müller am 3. Oktober. Der 2. Teil folgt danach. "
JAPANESE = "「ワクチンは安全です。」と厚生労働省は述べた。しかし、違う意見もある！"
FAMILY = "👨‍👩‍👧‍👦"
PARTS = st.sampled_from(["a", "字", "é", FAMILY, ".", "。", " ", "\n", ",", "、", "word ", "B. "])
TEXTS = st.lists(PARTS, max_size=300).map("".join)


def document(text: str, language: str | None = None) -> Document:
    return Document(url="https://a.example/", text=text, source_meta=SourceMeta(domain="a.example", lang=language))


def chunks(text: str, target: int = 50, overlap: int = 0, language: str | None = None) -> list[Chunk]:
    return tokenize_chunk(document(text, language), target, overlap)


def test_tokens_are_those_of_o200k_base_and_lengths_that_cannot_be_are_refused() -> None:
    assert [count_tokens(text) for text in ("", "Hello world", "ワクチン", "\ud800")] == [0, 2, 4, 1]
    for target, overlap in ((15, 0), (50, 50), (50, -1)):
        with pytest.raises(InputError, match=f"{target} tokens with an overlap of {overlap}"):
            chunks("A sentence.", target, overlap)


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (GERMAN, "de"), (JAPANESE, "ja")])
@pytest.mark.parametrize("overlap", [0, 40])
def test_no_chunk_begins_or_ends_inside_a_sentence(text: str, language: str, overlap: int) -> None:
    text *= 20
    spans = sentence_spans(text, language)
    made = chunks(text, 80, overlap, language)
    assert len(made) > 4
    assert {chunk.start for chunk in made} <= {start for start, _ in spans}
    assert {chunk.end for chunk in made} <= {end for _, end in spans}


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.integers(16, 40), st.integers(0, 15))
def test_chunks_hold_the_whole_text_in_order_at_their_places(text: str, target: int, overlap: int) -> None:
    made = chunks(text, target, overlap)
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in made)
    assert all(chunk.tokens == count_tokens(chunk.text) <= target for chunk in made)
    held = {place for chunk in made for place in range(chunk.start or 0, chunk.end or 0)}
    assert all(place in held for place, sign in enumerate(text) if not sign.isspace())
    assert all(
        a.start < b.start and a.end < b.end for a, b in pairwise(made) if a.start is not None and a.end and b.end
    )
    if not overlap:
        assert all((a.end or 0) <= (b.start or 0) for a, b in pairwise(made))


def test_chunks_overlap_by_whole_sentences_and_long_ones_are_cut_at_commas_then_blanks() -> None:
    text = " ".join(f"This is sentence number {number} of the text." for number in range(40))
    shared = [text[b.start : a.end] for a, b in pairwise(chunks(text, 60, 20, "en"))]
    assert all(0 < count_tokens(piece) <= 20 and piece.startswith("This is") for piece in shared)
    clause = "this is one of the clauses of a sentence without an end"
    assert {chunk.text[-1] for chunk in chunks(", ".join([clause] * 30), 60)[:-1]} == {","}
    assert all(chunk.text.startswith("word") and chunk.text.endswith("word") for chunk in chunks("word " * 500))
    assert {len(chunk.text) % len(FAMILY) for chunk in chunks(FAMILY * 200)} == {0}


def test_a_chunk_ends_with_its_paragraph_where_that_leaves_it_full_enough_and_knows_its_page() -> None:
    paragraph = "One sentence stands here. Another one stands beside it, and a third follows. It ends.\n"
    assert {chunk.text[-8:] for chunk in chunks(paragraph * 12, 50, 0, "en")} == {"It ends."}
    pages = [f"{ENGLISH.strip()}\n" * 3 for _ in range(3)]
    starts = (0, len(pages[0]), len(pages[0]) + len(pages[1]))
    made = tokenize_chunk(document("".join(pages), "en"), 30, 0, starts)
    assert [chunk.page for chunk in made] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert {chunk.page for chunk in chunks(ENGLISH)} == {None}
    assert chunks("A  Sentence.")[0].hash == chunks("a sentence.")[0].hash != chunks("a sentence!")[0].hash
    assert chunks(" \n ") == []


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        FAMILY * 20_000,
        "字" * 200_000,
        "., " * 40_000,
        "a\n" * 40_000,
        " " * 200_000 + "a",
        "a\u0301" * 60_000,
    ],
    ids=["no blank", "emoji", "ideographs", "commas", "lines", "blanks", "accents"],
)
def test_a_hostile_text_is_cut_in_linear_time_and_never_above_the_target(text: str) -> None:
    made = chunks(text, 250, 20)
    assert max(chunk.tokens for chunk in made) <= 250
    assert sum(len(chunk.text) for chunk in made) >= len("".join(text.split()))


def test_every_process_makes_the_same_chunks() -> None:
    code = (
        "from tests.pipeline.sources.test_chunk import *\n"
        "print([chunk.model_dump() for chunk in chunks((ENGLISH + JAPANESE) * 5, 40, 10)])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    there = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    here = [chunk.model_dump() for chunk in chunks((ENGLISH + JAPANESE) * 5, 40, 10)]
    assert there.stdout == f"{here}\n"


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
    chunks = tokenize_chunk(Document(url="https://a.example/", text=found.text, source_meta=meta), 250, 30)
    assert len(chunks) > 3
    spans = sentence_spans(found.text, language)
    assert {chunk.start for chunk in chunks} <= {start for start, _ in spans}
    assert {chunk.end for chunk in chunks} <= {end for _, end in spans}
    assert max(chunk.tokens for chunk in chunks) <= 250
