from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.normal_form import normalise
from pipeline.text.sentences import sentence_spans, trim_snippet
from pipeline.text.words import WordIndex, content_words, numbers_in, without_marks
from tests.support.places import cases

LENGTH = 400_000
CASES = cases("sentences")


def sentences(text: str, language: str = "") -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language)]


@pytest.mark.parametrize("language", CASES["sentences"])
@pytest.mark.parametrize("told", [True, False], ids=["language told", "language unknown"])
def test_sentences_of_a_language_are_told_apart(language: str, told: bool) -> None:
    between = "" if language in ("ja", "zh") else " "
    wanted = CASES["sentences"][language]
    assert sentences(between.join(wanted), language if told else "") == wanted


@pytest.mark.parametrize(("text", "language", "wanted"), CASES["texts"].values(), ids=CASES["texts"])
def test_sentences_of_a_text_begin_and_end_here(text: str, language: str, wanted: list[str]) -> None:
    assert sentences(text, language) == wanted


@given(st.text(st.sampled_from('aB5.!?。」"[1] \n\u3000é字'), max_size=60), st.sampled_from(["", "de", "en", "ja"]))
def test_the_spans_stand_in_order_and_hold_all_but_blanks(text: str, language: str) -> None:
    spans = sentence_spans(text, language)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.parametrize(
    ("piece", "number"),
    [("a ", 1), ("a", 1), (".", 1), ("A.", 1), ("「", 1), ("\n", 0), ("Dr. ", 1), ("これも文です。 ", LENGTH // 8)],
)
def test_a_long_text_of_one_kind_is_parted_in_linear_time(piece: str, number: int) -> None:
    assert len(sentence_spans(piece * (LENGTH // len(piece)))) == number


@pytest.mark.parametrize(("quote", "left"), CASES["quotes"].values(), ids=CASES["quotes"])
def test_a_quote_ends_where_a_reader_would_pause(quote: str, left: str) -> None:
    assert trim_snippet(quote, 40) == left


@given(st.text(max_size=120) | st.text("a. 3！。e\u0301\u200d👍🏽&#x6;日", max_size=120), st.integers(1, 80))
def test_a_trimmed_quote_is_never_too_long_and_always_its_beginning(quote: str, limit: int) -> None:
    left = trim_snippet(quote, limit)
    assert len(left) <= max(limit, 0)
    assert left in quote
    assert normalise(quote).startswith(normalise(left))


@pytest.mark.parametrize(("text", "language", "words"), cases("words")["content"])
def test_content_words_are_folded_and_leave_out_what_every_text_has(text: str, language: str, words: list[str]) -> None:
    assert content_words(text, language) == words


def test_numbers_are_written_in_one_form_and_citation_marks_are_none() -> None:
    text = "1,234.5 and 1.234,5; 3,5 %, ７人 of 1.234.567,8 on 1.2.2020, B12, 20th, 約2,000人, 1.234"
    assert numbers_in(text) == ["1234.5", "1234.5", "3.5", "7", "1234567.8", "1.2.2020", "20", "2000", "1.234"]
    assert numbers_in(without_marks("Two of 30[1][12] died [in 2020].")) == ["30", "2020"]


@given(st.text())
def test_any_text_has_words_without_blanks(text: str) -> None:
    assert all(word.split() == [word] for word in content_words(text) + numbers_in(text))


@given(st.text(st.characters(max_codepoint=127)))
def test_a_text_of_ascii_has_the_words_that_it_has_among_others(text: str) -> None:
    assert content_words(text) == content_words(f"{text} naïve")[:-1]


@pytest.mark.parametrize(("place", "count"), [(0, 3), (2, 3), (3, 2), (4, 1), (6, 1)])
def test_words_are_counted_in_the_row_of_sentences_around_one_that_has_most_of_them(place: int, count: int) -> None:
    index = WordIndex([{"bees", "honey"}, {"bees"}, {"wax"}, {"queen"}, {"wax"}, set(), {"hive"}])
    assert index.count_around(place, {"bees", "honey", "wax", "nectar"}, 3) == count
