import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.normal_form import INVISIBLE, SPECIAL, fold, normal_form, straighten

LETTERS = "aßſİΐ &;#x12lt<…– \n\u00a0\u200b\u00ad'“”"
ENTITIES = ("&amp;", "&lt", "&notin;", "&nbsp;", "&#8217;", "&fjlig;", "&shy;", "&#0;", "&#1;", "&#x2026;", "&not")
OTHERS = ("it;", "[PAGE] ", "\n### ", "ss", "e\u0301", "日本。", "&#" + "9" * 5000 + ";")
TEXTS = st.lists(st.sampled_from([*LETTERS, *ENTITIES, *OTHERS]), max_size=25).map("".join) | st.text(max_size=40)


@given(TEXTS)
def test_the_normal_form_is_what_the_seeds_steps_make_of_the_text(text: str) -> None:
    plain = html.unescape(re.sub(r"&#9{5000};", "\ufffd", text))
    plain = straighten(re.sub(f"[{INVISIBLE}]", "", plain))
    assert normal_form(text).text == fold(re.sub(r"\s+", " ", plain))


def test_letters_that_become_several_are_kept_whole_and_a_find_begins_and_ends_with_whole_ones() -> None:
    letters = map(chr, (code for code in range(0x110000) if not 0xD800 <= code < 0xE000))
    several = [letter for letter in letters if len(fold(letter)) != 1]
    assert [letter for letter in several if not (found := SPECIAL.match(letter)) or not found["several"]] == []
    blank = [letter for letter in map(chr, range(0x110000)) if letter.isspace()]
    assert {straighten(letter) for letter in blank} == {" "}
    found = normal_form("ß as s")
    assert found.text == "ss as s"
    assert (found.find("s"), found.find("ss"), found.find("s", 5), found.find("s a")) == (4, 0, 6, -1)
    assert (found.find("ss", 1), found.find("ss a"), found.find("x"), found.find("")) == (-1, 0, -1, -1)


@pytest.mark.parametrize(
    ("form", "span"),
    [
        ((0, 3), (0, 3)),  # str: letter for letter
        ((3, 6), (3, 5)),  # aß: to the end of a letter that became two
        ((4, 7), (4, 6)),  # ße: from its beginning
        ((4, 6), (4, 5)),  # ß itself
        ((3, 5), None),  # a and half of ß
        ((5, 7), None),  # half of ß and e
        ((4, 5), None),
        ((5, 6), None),
        ((6, 8), (5, 9)),  # e and three spaces that became one
        ((7, 9), (6, 10)),
        ((8, 9), (9, 10)),  # what follows them
        ((8, 11), (9, 16)),  # a, & and b, between them the entity
        ((9, 10), (10, 15)),
        ((0, 11), (0, 16)),
    ],
)
def test_a_stretch_of_the_form_leads_back_to_whole_letters(form: tuple[int, int], span: tuple[int, int] | None) -> None:
    found = normal_form("Straße   a&amp;b")
    assert (found.text, found.span(*form)) == ("strasse a&b", span)
