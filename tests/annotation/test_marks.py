"""From offsets in Argilla's page to the characters of the original passages, whatever the display did to them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.display import passage_bodies, to_records
from annotation.labels import missing_marks
from annotation.marks import MarkedPassage, add_passages, carried_passages, marked_words, shown_text
from annotation.wording import read_wording
from pipeline.records import Passage, QueryResponse, join_context

TEXTS = st.text(
    st.one_of(
        st.sampled_from("ab \n\r\t\v\f\x00\x07\x85\u2028\u2029━─&<;#/!?\u0301\u0335\u202e\u200b😀𠮷ё質"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
).map(lambda text: f"{text}x")  # one without anything visible is shown as "(no text)"


def units(text: str) -> int:
    """The text's length as the page counts."""
    return len(text.encode("utf-16-le")) // 2


def markable(*texts: str) -> dict[str, Any]:
    """The body of a grounding record of these passages."""
    chunks = tuple(
        Passage(chunk_id=f"d#{rank}", doc_id="d", chunk_rank=rank, text=text, title="━━ <b>T</b> ━━\n")
        for rank, text in enumerate(texts, start=1)
    )
    record = QueryResponse(
        record_uuid="r", query="Q?", answer="A.", chunks=chunks, context_set=join_context(chunks), language="en"
    )
    (body,) = to_records(record, read_wording("en"))["grounding"]
    add_passages(body, [MarkedPassage(each.chunk_id, each.doc_id, each.chunk_rank, each.text) for each in chunks])
    return body


def selected(body: dict[str, Any], words: str) -> tuple[int, int]:
    """The offsets of the words in the page, where they stand for the last time."""
    before, found, _ = shown_text(body).rpartition(words)
    assert found
    return units(before), units(before + words)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_all_that_is_shown_of_a_passage_is_found_again_in_its_original(texts: list[str]) -> None:
    body = markable(*texts)
    shown = shown_text(body)
    bodies = passage_bodies(shown)
    assert len(bodies) == len(texts)
    for number, ((start, end), text) in enumerate(zip(bodies, texts, strict=True)):
        for place in range(start, end - (number == len(texts) - 1) * (len(shown) - len(shown.rstrip(" ")))):
            (mark,) = marked_words(body, [(units(shown[:place]), units(shown[: place + 1]))])
            (words,) = mark.parts
            assert (mark.is_whole, words.passage.chunk_rank, words.passage.text) == (True, number + 1, text)
            assert words.text in (shown[place], "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029", "━")
            assert shown[place] in ("\n", "─") or words.text == shown[place]


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_the_server_takes_every_mark_that_the_page_can_make(texts: list[str]) -> None:
    body = markable(*texts)
    assert units(shown_text(body).rstrip(" ")) <= len(body["fields"]["context"])


@pytest.mark.parametrize(
    ("text", "words", "original"),
    [
        ("A 😀 then <b>two words</b> end.", "<b>two", "<b>two"),
        ("a &amp; b &lt; c", "&amp; b", "&amp; b"),
        ("one\r\ntwo\x00 three", "two three", "two\x00 three"),
        ("a━━b ━ c", "──b ━", "━━b ━"),
        ("o" + "\u0301" * 9 + " after", "after", "after"),
        ("fünf \u202e質問 ok", "質問", "質問"),
        ("ends with 😀", "😀", "😀"),
    ],
)
def test_a_mark_gives_exactly_the_original_words(text: str, words: str, original: str) -> None:
    body = markable("Before 😀😀.", text, "After.")
    (mark,) = marked_words(body, [selected(body, words)])
    (found,) = mark.parts
    assert (found.text, mark.is_whole) == (original, True)
    assert text[found.start : found.end] == original


def test_a_mark_over_a_heading_is_cut_into_its_passages() -> None:
    body = markable("First ends here. ", "Second begins.")
    shown = shown_text(body)
    begin, end = units(shown.partition("here.")[0]), units(shown.partition("Second")[0] + "Second")
    (over, on_heading) = marked_words(body, [(begin, end), (2, 6)])
    assert [(each.passage.chunk_id, each.text) for each in over.parts] == [("d#1", "here."), ("d#2", "Second")]
    assert (over.is_whole, on_heading) == (False, ((), False))


def test_a_record_of_a_version_without_marks_gets_its_passages_when_it_is_carried_over() -> None:
    body = markable("One 😀.", "Two.")
    whole = [MarkedPassage("d#1", "d", 1, "One 😀."), MarkedPassage("d#2", "d", 2, "Two.")]
    assert carried_passages(body, [(2, "d#2", "d"), (1, "d#1", "d")]) == whole
    assert [each[:3] for each in carried_passages(body, [])] == [("", "", 1), ("", "", 2)]


def test_a_yes_that_rests_on_words_misses_their_mark() -> None:
    supports, contradicts = {"label": "supports"}, {"label": "contradicts"}
    values = {"support_present": "yes", "contradicted_claim_present": "yes"}
    assert missing_marks({**values, "evidence": [supports, contradicts]}) == ()
    assert missing_marks({**values, "evidence": [supports]}) == (("contradicted_claim_present", "contradicts"),)
    assert missing_marks({**values, "support_present": "no"}) == (("contradicted_claim_present", "contradicts"),)
    assert missing_marks({"support_present": "no", "source_cited": "yes"}) == ()
