import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.urls import Link, find_links


def urls(text: str) -> list[str]:
    return [link.url for link in find_links(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.example/x.", ["https://a.example/x"]),
        ("([a.example](https://a.example/x?utm_source=openai))", ["https://a.example/x?utm_source=openai"]),
        ("<https://a.example/x> and https://b.example", ["https://a.example/x", "https://b.example"]),
        ("![map](https://a.example/map.png)", ["https://a.example/map.png"]),
        ("https://en.wikipedia.org/wiki/Ruby_(language)", ["https://en.wikipedia.org/wiki/Ruby_(language)"]),
        ("(https://en.wikipedia.org/wiki/Ruby_(language)).", ["https://en.wikipedia.org/wiki/Ruby_(language)"]),
        ("[R](https://en.wikipedia.org/wiki/Ruby_(language))", ["https://en.wikipedia.org/wiki/Ruby_(language)"]),
        ("https://mhlw.example/abcによると、安全です。", ["https://mhlw.example/abc"]),
        ("（https://mhlw.example/abc）と「https://b.example/」。", ["https://mhlw.example/abc", "https://b.example/"]),
        ("[公式](https://a.example/ワクチン)では", ["https://a.example/ワクチン"]),
        ("[公式](https://a.example/東京（曖昧）)", ["https://a.example/東京（曖昧）"]),
        ("<https://a.example/ワクチン>です", ["https://a.example/ワクチン"]),
        ("https://a.example/%E3%83%AF%E3%82%AFです", ["https://a.example/%E3%83%AF%E3%82%AF"]),
        ("Siehe „https://a.example/Straße“", ["https://a.example/Stra"]),
        ("**https://a.example/**, _https://b.example/_", ["https://a.example/", "https://b.example/"]),
        ('[x](https://a.example/ "The title")', ["https://a.example/"]),
        ("https://a.example https://a.example", ["https://a.example", "https://a.example"]),
        ("https://web.example/https://a.example/", ["https://web.example/https://a.example/"]),
        ("http://, https:// and ftp://a.example", []),
        ("[https://a.example/1](https://b.example/2)", ["https://a.example/1", "https://b.example/2"]),
    ],
)
def test_urls_come_in_order_and_end_where_the_sentence_takes_over(text: str, expected: list[str]) -> None:
    assert urls(text) == expected


def test_the_span_is_the_whole_link_and_the_label_its_words() -> None:
    text = "日本 [公式 サイト](https://a.example/) と https://b.example/、"
    assert find_links(text) == [
        Link(3, 31, "https://a.example/", "公式 サイト", "markdown"),
        Link(34, 52, "https://b.example/", "", "bare"),
    ]


def test_a_number_in_double_brackets_is_one_link() -> None:
    assert find_links("So.[[1]](https://a.example/)") == [Link(3, 28, "https://a.example/", "[1]", "markdown")]


def test_an_image_inside_a_link_is_a_link_of_its_own() -> None:
    image, around = find_links("[![logo](https://a.example/l.png)](https://a.example/)")
    assert (image.kind, image.label) == ("image", "logo")
    assert (around.start, around.label) == (0, "![logo](https://a.example/l.png)")


@pytest.mark.parametrize(
    "text",
    ["[x](https://a.example/ b)", "[x](https://a.example/", "x](https://a.example/)", "[x\n\ny](https://a.example/)"],
)
def test_a_link_that_is_none_still_has_its_url(text: str) -> None:
    assert [(link.url, link.kind) for link in find_links(text)] == [("https://a.example/", "bare")]


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "](",
        "[](",
        "](https://",
        "(https://a(",
        "https://a(",
        "https://a（「",
        "\\[",
        "\n \t",
        "<https://",
        "[a](https://b)",
    ],
)
def test_a_megabyte_of_brackets_is_read_in_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        started = time.process_time()
        find_links(unit * (size // len(unit)))
        return time.process_time() - started

    assert seconds(1_000_000) < 8


def test_nested_labels_are_not_copied_over_and_over() -> None:
    depth = 100_000
    links = find_links("[" * depth + "](https://a.example)" * depth)
    assert len(links) == depth


@given(st.text(alphabet="[]()<>!ahtps:/.（）「」 \n\\日1") | st.text())
def test_every_span_holds_its_url(text: str) -> None:
    for link in find_links(text):
        assert link.url in text[link.start : link.end]
        assert link.label in text[link.start : link.end]
