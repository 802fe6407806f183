import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeline.citations.placing import place_marks

MARKDOWN = MarkdownIt("commonmark").enable("table")
FENCE = "Intro:\n\n```python\nprint(1)\n```\nEnd of it."
TABLE = "| City | H |\n|---|---|\n| Paris | 12 |\n| Lyon | 13 |\n"
BLOCKS = st.sampled_from(
    [
        *(
            "A **bold** claim.",
            "## A head",
            "- one\n- *two*\n  - `three`",
            "1. first\n2. second",
            "> a quote\n> goes on",
        ),
        *(
            FENCE,
            TABLE,
            "---",
            "A rule below\n===",
            "    indented code",
            "**主張**は正しい。",
            "Water at $a_1 + b$ degrees.",
        ),
        *(
            "See [a page](https://a.example/x_(y)) and `x = [1]`.",
            "<div>html</div>",
            "[ref]: https://a.example",
            "a \\* b",
        ),
        *("claim(details) and more", "~~gone~~ &amp; kept", "* a\n\n  ```\n  code\n  ```\n* b", "line one  \nline two"),
    ]
)


def put(text: str, offsets: list[int]) -> str:
    """The text with the marks [901], [902], … in place, those without one left out."""
    wanted = {offset: f"[{901 + number}]" for number, offset in enumerate(dict.fromkeys(offsets))}
    placed = [each for each in place_marks(text, wanted) if each.at is not None]
    position, parts = 0, []
    for each in sorted(placed, key=lambda each: each.at or 0):
        parts += [text[position : each.at], each.text]
        position = each.at or 0
    return "".join([*parts, text[position:]])


@pytest.mark.parametrize(
    ("text", "behind", "form"),
    [
        pytest.param(FENCE, "```\nE", "Intro:\n\n```python\nprint(1)\n```\n\n[901]\n\nEnd of it.", id="behind a fence"),
        pytest.param(TABLE, "| 12 |", TABLE.replace("12 |", "12[901] |"), id="in the last cell of a row"),
        pytest.param("A.\n\n---\n\nB.", "---", "A.[901]\n\n---\n\nB.", id="before a rule"),
        pytest.param("**主張**は正しい。", "主張", "**主張**[901]は正しい。", id="behind emphasis"),
        pytest.param("A `code x` b", "code", "A `code x`[901] b", id="behind code"),
        pytest.param("f $a_1+b$ c", "a_1", "f $a_1+b$[901] c", id="behind a formula"),
        pytest.param("claim(details) more", "claim", "claim(details)[901] more", id="not as a link's label"),
        pytest.param("Title\n=====\n\nText", "=====", "Title[901]\n=====\n\nText", id="not on a heading's underline"),
        pytest.param("[ref]: https://a.de", "https", "[ref]: https://a.de", id="nowhere in a definition"),
        pytest.param(
            "Is [ref] so.\n\n[ref]: /x", "[ref]", "Is [ref] so.[901]\n\n[ref]: /x", id="not as another reference"
        ),
        pytest.param("It **is so at** best.", "is", "It **is so at**[901] best.", id="behind emphasis that goes on"),
        pytest.param("A <!-- is --> b", "is", "A <!-- is -->[901] b", id="behind a comment"),
        pytest.param("So:\n\n```py\nx = 1", "= 1", "So:\n\n```py\nx = 1", id="nowhere in code that is cut off"),
        pytest.param(
            "| a | b |\n|---|---|\n| `x|y` | 2 |",
            "2",
            "| a | b |\n|---|---|\n| `x|y`[901] | 2 |",
            id="in the last cell that is shown",
        ),
        pytest.param("- one\n- ![a](/x) `b", "`b", "- one\n- ![a](/x) `b[901]", id="in its own item"),
    ],
)
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
