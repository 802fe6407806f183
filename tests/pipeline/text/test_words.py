import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.words import WordIndex, content_words, numbers_in, without_marks
from tests.support.places import cases


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
