import pytest

from pipeline.sources.extract import extract_document
from pipeline.sources.headings import Heading, headings_above
from pipeline.sources.passages import is_index, lines_of, passage_places
from tests.support.places import DATA, cases

PAGES = {name: (DATA / "passages" / f"{name}.html").read_text(encoding="utf-8") for name in ("en", "de", "ja")}
CASES = cases("passages")


def texts_of(text: str, headings: tuple[Heading, ...] = ()) -> list[str]:
    return [text[start:end] for start, end, _ in passage_places(text, headings)]


def passages_of(page: str) -> list[str]:
    read = extract_document(page.encode(), "text/html", "utf-8", "https://manual.example/saving")
    return texts_of(read.text, read.headings)


@pytest.mark.parametrize("kind", ["warning", "code", "table", "list"])
@pytest.mark.parametrize("language", PAGES)
def test_a_box_code_a_table_and_a_list_are_one_passage_with_what_introduces_them(language: str, kind: str) -> None:
    first, last = CASES[language][kind]
    (passage,) = (each for each in passages_of(PAGES[language]) if each.startswith(first))
    assert passage.rstrip().endswith(last)


@pytest.mark.parametrize("language", PAGES)
def test_passages_hold_every_line_of_a_page_but_those_of_headings_once_and_in_order(language: str) -> None:
    read = extract_document(PAGES[language].encode(), "text/html", "utf-8", "https://manual.example/saving")
    named = {heading.text for heading in read.headings}
    lines = [line for each in passages_of(PAGES[language]) for line in each.split("\n")]
    assert (lines, len(named)) == ([line for line in read.text.split("\n") if line not in named], 3)


def test_a_box_is_one_passage_to_the_next_label_and_what_is_cut_says_so() -> None:
    label, first, second = "Hinweis", "Der erste Satz steht im Kasten.", "Der zweite Satz steht auch darin."
    text = "\n".join(["Ein Satz davor.", label, first, second])
    (_, box) = passage_places(text, (Heading(text.index(label), 3, label),))
    assert text[box.start : box.end] == f"{first}\n{second}"
    sentence = "This sentence of the page is as long as most of the sentences of a manual are."
    text = "\n".join(["Note", sentence, "Tip", *[sentence] * 40])
    note, tip, *others = passage_places(text)
    assert text[note.start : note.end] == f"Note\n{sentence}"
    assert 1_400 < tip.end - tip.start <= 1_500
    assert (note.goes_on, tip.goes_on) == (False, True), "what may belong to a box is never left out in silence"
    assert {text[start:end] for start, end, _ in others} == {sentence}
    items = "\n".join(f"- The item with the number {number} of a list that goes on." for number in range(200))
    assert "\n".join(texts_of(items)) == items
    long = ("This sentence stands in a paragraph without an end. " * 100).strip()
    for text, count in ((items, 4), (long, 2)):
        places = passage_places(text)
        assert [each.goes_on for each in places] == [True] * (count - 1) + [False]
        assert all(each.end - each.start <= 3_000 for each in places)
    assert long[: passage_places(long)[0].end].endswith("an end.")


@pytest.mark.parametrize(("text", "passages"), CASES["texts"].values(), ids=CASES["texts"])
def test_lines_that_belong_together_are_one_passage(text: str, passages: list[str]) -> None:
    assert texts_of(text) == passages


def test_headings_without_text_below_and_blanks_are_in_no_passage_and_a_table_of_contents_is_an_index() -> None:
    text = "Warning\nOnly load data that you trust.\nUses¶\nIn programs¶\nPrograms save what they know in files."
    below = text.index("In programs")
    headings = (Heading(below, 1, "Uses"), Heading(below, 2, "In programs"))
    places = passage_places(text, headings)
    assert [(text[start:end], headings_above(headings, start)) for start, end, _ in places] == [
        ("Warning\nOnly load data that you trust.", ()),
        ("Programs save what they know in files.", ("Uses", "In programs")),
    ]
    assert passage_places("") == passage_places(" \n\n ") == ()
    assert is_index("\n".join(f"{number}.1 Saving" for number in range(400)))
    assert not is_index("Saving takes a file and writes into it all that it was asked to save.\n" * 50)


@pytest.mark.parametrize(("page", "headings", "passages"), CASES["markdown"].values(), ids=CASES["markdown"])
def test_fenced_code_of_markdown_is_one_passage(page: str, headings: list[str], passages: list[str]) -> None:
    read = extract_document(page.encode(), "text/markdown", "utf-8", "https://manual.example/guide.md")
    assert ([each.text for each in read.headings], texts_of(read.text, read.headings)) == (headings, passages)


@pytest.mark.parametrize(
    ("passage", "is_code"),
    [
        ("You write this:\nPackage: perl\nPin-Priority: 1001\nimport io\n- an item\na | b", [0, 1, 1, 1, 0, 0]),
        ("if x == 1:\n    return y", [1, 1]),
        (
            "def find(name):\n    # Only what is safe, and nothing else.\n    if name == 'safe' and name in them:",
            [1] * 3,
        ),
        ("$ ls\nsynaptic ist eine grafische Oberfläche für das Programm APT", [1, 0]),
        ("", []),
    ],
)
def test_lines_of_code_are_told_from_prose_rows_and_items(passage: str, is_code: list[int]) -> None:
    assert lines_of(passage) == [(line, bool(code)) for line, code in zip(passage.splitlines(), is_code, strict=True)]
