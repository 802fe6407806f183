"""Pages cut into passages: boxes, code, tables and lists stay whole, in pages of three languages and in plain text."""

import pytest

from pipeline.sources.extract import extract_document
from pipeline.sources.headings import Heading, headings_above
from pipeline.sources.passages import is_index, lines_of, passage_places
from tests.support.places import DATA, cases

PAGES = {name: (DATA / "passages" / f"{name}.html").read_text(encoding="utf-8") for name in ("en", "de", "ja")}
WHOLE = cases("passages")


def texts_of(text: str, headings: tuple[Heading, ...] = ()) -> list[str]:
    return [text[start:end] for start, end, _ in passage_places(text, headings)]


def passages_of(page: str) -> list[str]:
    read = extract_document(page.encode(), "text/html", "utf-8", "https://manual.example/saving")
    return texts_of(read.text, read.headings)


@pytest.mark.parametrize("kind", ["warning", "code", "table", "list"])
@pytest.mark.parametrize("language", PAGES)
def test_a_box_code_a_table_and_a_list_are_one_passage_with_what_introduces_them(language: str, kind: str) -> None:
    first, last = WHOLE[language][kind]
    (passage,) = (each for each in passages_of(PAGES[language]) if each.startswith(first))
    assert passage.rstrip().endswith(last)


@pytest.mark.parametrize("language", PAGES)
def test_passages_hold_every_line_of_a_page_but_those_of_headings_once_and_in_order(language: str) -> None:
    read = extract_document(PAGES[language].encode(), "text/html", "utf-8", "https://manual.example/saving")
    named = {heading.text for heading in read.headings}
    lines = [line for each in passages_of(PAGES[language]) for line in each.split("\n")]
    assert lines == [line for line in read.text.split("\n") if line not in named]
    assert len(named) == 3


def test_a_box_whose_label_is_a_heading_is_one_passage() -> None:
    label, first, second = "Hinweis", "Der erste Satz steht im Kasten.", "Der zweite Satz steht auch darin."
    text = "\n".join(["Ein Satz davor.", label, first, second])
    (_, box) = passage_places(text, (Heading(text.index(label), 3, label),))
    assert text[box.start : box.end] == f"{first}\n{second}"


def test_a_box_ends_at_the_next_label_and_after_1500_characters() -> None:
    sentence = "This sentence of the page is as long as most of the sentences of a manual are."
    text = "\n".join(["Note", sentence, "Tip", *[sentence] * 40])
    note, tip, *others = passage_places(text)
    assert text[note.start : note.end] == f"Note\n{sentence}"
    assert 1_400 < tip.end - tip.start <= 1_500
    assert (note.goes_on, tip.goes_on) == (False, True), "what may belong to a box is never left out in silence"
    assert {text[start:end] for start, end, _ in others} == {sentence}


def test_a_long_list_is_cut_between_its_items() -> None:
    items = [f"- The item with the number {number} of a list that goes on and on." for number in range(200)]
    text = "\n".join(["These are the items of the list:", *items])
    found = texts_of(text)
    assert "\n".join(found) == text
    assert len(found) > 3
    assert all(len(each) <= 3_000 for each in found)


def test_a_term_and_a_caption_stand_with_what_follows_them_and_code_with_what_precedes_it() -> None:
    lines = [
        "The functions of the module are few, and each of them takes a file.",
        "saver.dump(thing, file)¶",
        "- Save the thing to the file.",
        "saver.load(file)¶",
        "- Give the thing back that is in the file.",
        "TIP Saving faster",
        "Saving is faster to a disk that is not full.",
        "Programs are started from a shell with their name.",
        "$ saver --all",
        "$ saver --none",
    ]
    text = "\n".join(lines)
    found = [each.split("\n") for each in texts_of(text)]
    assert found == [lines[:1], lines[1:3], lines[3:5], lines[5:]], "a box goes on to the next heading"


def test_markdown_keeps_its_fenced_code_and_blank_lines() -> None:
    code = "```\nA whole sentence in code.\n\nAnother one.\n```"
    text = f"# Saving\n\nPut these lines into the file:\n\n{code}\n\nThat is all of it."
    found = texts_of(text, (Heading(0, 1, "Saving"),))
    assert found == [text[text.index("Put") : text.rindex("```") + 3], "That is all of it."]


def test_headings_without_text_below_them_are_in_no_passage() -> None:
    text = "Warning\nOnly load data that you trust.\nUses¶\nIn programs¶\nPrograms save what they know in files."
    below = text.index("In programs")
    headings = (Heading(below, 1, "Uses"), Heading(below, 2, "In programs"))
    places = passage_places(text, headings)
    found = [(text[start:end], headings_above(headings, start)) for start, end, _ in places]
    assert found == [
        ("Warning\nOnly load data that you trust.", ()),
        ("Programs save what they know in files.", ("Uses", "In programs")),
    ]


def test_what_is_cut_for_its_length_says_so() -> None:
    items = "\n".join(f"- The item with the number {number} of a list that goes on." for number in range(80))
    long = "This sentence stands in a paragraph without an end. " * 100
    for text, count in ((items, 2), (long.strip(), 2)):
        places = passage_places(text)
        assert [each.goes_on for each in places] == [True] * (count - 1) + [False]
        assert all(each.end - each.start <= 3_000 for each in places)
    assert long.strip()[: passage_places(long.strip())[0].end].endswith("an end.")


def test_blank_lines_part_the_paragraphs_of_plain_text() -> None:
    text = (
        "The heater may be lit indoors by a fitter.\nBut this holds only when a window is open.\n\n"
        "WARNING: The gas is toxic.\nVentilate the room.\n\nNever smoke near it."
    )
    assert texts_of(text) == text.split("\n\n")


def test_steps_stay_together_around_what_stands_between_them() -> None:
    html = "The boiler is cleaned thus:\n1. Close the valve.\nThe valve breaks under a spanner.\n2. Open the lid."
    assert texts_of(html) == [html]
    markdown = "Clean it:\n\n1. Close the valve.\n\n   Use no spanner at all.\n\n2. Open the lid.\n\nThat is all of it."
    assert texts_of(markdown) == [markdown.rpartition("\n\n")[0], "That is all of it."]


def test_what_goes_on_with_a_small_letter_stays_with_a_line_that_ends_within_a_sentence() -> None:
    text = (
        "A package whose priority is below 0\nwill never be installed,\n"
        "will only be installed if there is no newer version installed or available in the target distribution."
    )
    assert texts_of(text) == [text]


def test_boxes_under_captions_in_capitals_stay_whole() -> None:
    lines = [
        "The partition is made by the installer of the system.",
        "IN DER PRAXIS Eine Partition verkleinern",
        "Die Partition lässt sich verkleinern.",
        "Vorher muss die Verschlüsselung ausgeschaltet werden.",
    ]
    assert texts_of("\n".join(lines)) == [lines[0], "\n".join(lines[1:])]


def test_the_output_of_code_stays_with_it() -> None:
    text = "\n".join(
        [
            "Packages are removed with these commands:",
            "# dpkg -r debian-cd",
            "Removing debian-cd (3.1.17) from the list of packages.",
            "# dpkg -P debian-cd",
            "Nothing is left of the package behind these commands.",
        ]
    )
    assert texts_of(text) == [text.rpartition("\n")[0], text.rpartition("\n")[2]]


def test_a_comment_in_fenced_code_is_no_heading() -> None:
    page = "# Guide\n\nRun this:\n\n```sh\n# danger zone\nrm x\n```\n\n## Remove\n\nIt is gone for good now."
    read = extract_document(page.encode(), "text/markdown", "utf-8", "https://manual.example/guide.md")
    assert [each.text for each in read.headings] == ["Guide", "Remove"]
    assert texts_of(read.text, read.headings) == [
        "Run this:\n\n```sh\n# danger zone\nrm x\n```",
        "It is gone for good now.",
    ]


def test_lines_of_code_are_told_from_prose_rows_and_items() -> None:
    passage = "You write this:\nPackage: perl\nPin-Priority: 1001\nimport io\n- an item\na | b"
    assert [is_code for _, is_code in lines_of(passage)] == [False, True, True, True, False, False]
    assert lines_of("if x == 1:\n    return y") == [("if x == 1:", True), ("    return y", True)]
    code = (
        "def find(name):\n    # Only allow what is safe, and nothing else.\n    if name == 'safe' and name in the_list:"
    )
    assert [is_code for _, is_code in lines_of(code)] == [True, True, True]
    assert lines_of("$ ls\nsynaptic ist eine grafische Oberfläche für das Programm APT") == [
        ("$ ls", True),
        ("synaptic ist eine grafische Oberfläche für das Programm APT", False),
    ]
    assert lines_of("") == []


def test_a_sentence_that_begins_with_the_name_of_a_program_is_prose() -> None:
    text = (
        "Programs are started from a shell with their name:\n$ saver --all\n"
        "saver is a program of its own that writes all things into one file, and it does so each night."
    )
    assert [each.partition("\n")[0][:8] for each in texts_of(text)] == ["Programs", "saver is"]


def test_a_blank_text_has_no_passage_and_a_table_of_contents_is_an_index() -> None:
    assert passage_places("") == passage_places(" \n\n ") == ()
    assert is_index("\n".join(f"{number}.1 Saving" for number in range(400)))
    assert not is_index("Saving takes a file and writes into it all that it was asked to save.\n" * 50)
