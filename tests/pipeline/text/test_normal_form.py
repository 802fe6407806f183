import html
import re

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


def test_every_letter_that_becomes_several_is_kept_whole() -> None:
    letters = map(chr, (code for code in range(0x110000) if not 0xD800 <= code < 0xE000))
    several = [letter for letter in letters if len(fold(letter)) != 1]
    assert [letter for letter in several if not (found := SPECIAL.match(letter)) or not found["several"]] == []


def test_every_white_space_is_a_space() -> None:
    blank = [letter for letter in map(chr, range(0x110000)) if letter.isspace()]
    assert {straighten(letter) for letter in blank} == {" "}
