import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeline.citations.placing import place_marks
from tests.support.places import cases

MARKDOWN = MarkdownIt("commonmark").enable("table")
CASES = cases("placing")
PLACES = CASES["places"]
BLOCKS = st.sampled_from(CASES["blocks"])


def put(text: str, offsets: list[int]) -> str:
    """The text with the marks [901], [902], … in place, those without one left out."""
    wanted = {offset: f"[{901 + number}]" for number, offset in enumerate(dict.fromkeys(offsets))}
    placed = [each for each in place_marks(text, wanted) if each.at is not None]
    position, parts = 0, []
    for each in sorted(placed, key=lambda each: each.at or 0):
        parts += [text[position : each.at], each.text]
        position = each.at or 0
    return "".join([*parts, text[position:]])


@pytest.mark.parametrize(("text", "behind", "form"), PLACES.values(), ids=PLACES)
def test_a_mark_stands_where_markdown_lets_it(text: str, behind: str, form: str) -> None:
    assert put(text, [text.index(behind) + len(behind.removesuffix("\nE"))]) == form


@settings(max_examples=300, deadline=None)
@given(st.lists(BLOCKS, min_size=1, max_size=5).map("\n\n".join), st.lists(st.integers(0, 400), max_size=6))
def test_without_the_marks_the_text_is_shown_as_before(text: str, offsets: list[int]) -> None:
    offsets = [min(offset, len(text)) for offset in offsets if text[: min(offset, len(text))].strip()]
    html = MARKDOWN.render(put(text, offsets))
    html = re.sub(r"(?:\[9\d\d\])+", "", re.sub(r"<p>(?:\[9\d\d\])+</p>\n?", "", html))
    assert html.strip() == MARKDOWN.render(text).strip()


@pytest.mark.parametrize(
    ("unit", "least"),
    [
        ("word and more words. ", 301),
        *(pytest.param(*each, marks=pytest.mark.rare) for each in (("**a** ", 301), ("- one\n  ```\n  x\n  ```\n", 0))),
    ],
)
def test_in_a_block_that_is_long_to_render_marks_are_placed_or_left_out(unit: str, least: int) -> None:
    text = unit * (100_000 // len(unit))
    wanted = {offset: "[901]" for offset in range(20, len(text), len(text) // 300)}
    placed = place_marks(text, wanted)
    assert len(placed) == len(wanted)
    assert sum(each.at is not None for each in placed) >= least
