"""Sentences of English, German, Japanese and Chinese, of text made to be slow, and quotes cut at their ends."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.normal_form import normalise
from pipeline.text.sentences import sentence_spans, trim_snippet
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


def test_a_newline_ends_a_sentence_unless_a_small_letter_follows() -> None:
    text = "A title\n\nFirst paragraph, which is\nwrapped. Second.\n- an item\n1. Another item\n"
    assert sentences(text, "en") == [
        "A title",
        "First paragraph, which is\nwrapped.",
        "Second.",
        "- an item",
        "1. Another item",
    ]


def test_a_number_ends_an_english_sentence_and_is_an_ordinal_in_german() -> None:
    assert sentences("He has 5. Apple has 6.", "en") == ["He has 5.", "Apple has 6."]
    assert sentences("Am 5. Mai und 6. Juni.", "de") == ["Am 5. Mai und 6. Juni."]


@pytest.mark.parametrize("language", ["en", "ja", ""])
def test_a_german_date_is_not_cut_in_a_text_that_is_taken_for_another_language(language: str) -> None:
    text = "Die Mauer wurde am 13. August 1961 errichtet und fiel am 9. November 1989 [1]."
    assert sentences(f"{text} Heat pumps are popular.", language) == [text, "Heat pumps are popular."]


def test_a_blank_text_has_no_sentence() -> None:
    assert sentences(" \n\u3000\t") == []


def test_a_stop_without_a_sentence_stands_alone() -> None:
    assert sentences(". Then more.") == [".", "Then more."]


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


def test_a_name_that_begins_small_goes_on_with_the_line_before_it() -> None:
    assert sentences("Most of the\niPhone users agree.\nOthers do not.", "en") == [
        "Most of the\niPhone users agree.",
        "Others do not.",
    ]


def test_a_name_that_begins_small_begins_a_sentence_on_a_new_line_where_the_one_before_has_ended() -> None:
    text = "cron¶\ncron runs jobs at night.\nanacron runs them later, etc.\nat runs one once (e.g.\nnow)."
    assert sentences(text, "en") == [
        "cron¶",
        "cron runs jobs at night.",
        "anacron runs them later, etc.",
        "at runs one once (e.g.\nnow).",
    ]


def test_a_name_that_begins_small_begins_a_sentence_below_a_heading_that_names_it() -> None:
    text = "TOOLS dpkg, APT and ar\ndpkg is the program that handles packages.\nIts parts:\nparts of a\npackage."
    assert sentences(text, "en") == [
        "TOOLS dpkg, APT and ar",
        "dpkg is the program that handles packages.",
        "Its parts:\nparts of a\npackage.",
    ]


def test_a_wrapped_line_goes_on_though_it_begins_with_a_word_of_the_line_before() -> None:
    text = "The daemon of the system reads the tables of cron and then starts the\ncron jobs of each user."
    assert sentences(text, "en") == [text]


def test_a_name_that_begins_small_begins_no_sentence_behind_a_mark() -> None:
    assert sentences("They asked Yahoo! eBay and others. IBM did not.", "en") == [
        "They asked Yahoo! eBay and others.",
        "IBM did not.",
    ]


@pytest.mark.parametrize(("quote", "left"), CASES["quotes"].values(), ids=CASES["quotes"])
def test_a_quote_ends_where_a_reader_would_pause(quote: str, left: str) -> None:
    assert trim_snippet(quote, 40) == left


@given(st.text(max_size=120) | st.text("a. 3！。e\u0301\u200d👍🏽&#x6;日", max_size=120), st.integers(1, 80))
def test_a_trimmed_quote_is_never_too_long_and_always_its_beginning(quote: str, limit: int) -> None:
    left = trim_snippet(quote, limit)
    assert len(left) <= max(limit, 0)
    assert left in quote
    assert normalise(quote).startswith(normalise(left))
