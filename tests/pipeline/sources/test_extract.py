import gzip
import json
import re
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest

from pipeline.sources.extract import Extracted, extract_document
from pipeline.sources.quality import count_words, verdict_on
from tests.support.places import DATA, NO_SHARED, SHARED

ARTICLES = SHARED / "corpora" / "articles"

JAPANESE = "ワクチンは安全です。厚生労働省によると、副反応はまれである。"
GERMAN = "Größere Maßnahmen für „schöne“ Übungen – das gefällt den Zuhörern."
PAGE = """<html lang="{language}"><head><title>{title} | Site</title></head><body><nav><a href="/">Home</a></nav>
<article><h1>{title}</h1>{paragraphs}</article><script>var secret = 1</script></body></html>"""


def extract(body: bytes | str, content_type: str = "text/html", charset: str = "") -> Extracted:
    return extract_document(
        body.encode() if isinstance(body, str) else body, content_type, charset, "https://a.example/"
    )


def page(text: str, language: str = "de", title: str = "Ein Titel") -> str:
    return PAGE.format(language=language, title=title, paragraphs=f"<p>{text}</p>" * 6)


def shingles(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return Counter(tuple(words[at : at + 4]) for at in range(max(1, len(words) - 3)))


def f1(pairs: list[tuple[str, str]]) -> float:
    """Source: scrapinghub/article-extraction-benchmark, evaluate.py: precision and recall of 4-grams, averaged."""
    found = [(shingles(text), shingles(gold)) for text, gold in pairs]
    precision = mean((text & gold).total() / text.total() for text, gold in found)
    recall = mean((text & gold).total() / gold.total() for text, gold in found)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.skipif(not ARTICLES.is_dir(), reason=NO_SHARED)
def test_the_main_text_of_real_articles_is_found_and_none_is_taken_for_a_wall() -> None:
    gold = json.loads((ARTICLES / "ground-truth.json").read_text(encoding="utf-8"))
    names = sorted(gold)[::12]
    found = [extract(gzip.decompress((ARTICLES / "html" / f"{name}.html.gz").read_bytes())) for name in names]
    assert f1([(read.text, gold[name]["articleBody"]) for name, read in zip(names, found, strict=True)]) >= 0.93
    assert [read.detail for read in found if read.reason != "page"] == []
    assert all(read.title and read.language for read in found)
    assert mean(read.read_share or 0 for read in found) >= 0.9
    assert {verdict_on(entry["articleBody"]).reason for entry in gold.values()} == {"page"}


@pytest.mark.parametrize("charset", ["shift_jis", "euc_jp", "iso2022_jp", "utf-8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("told", [True, False], ids=["told", "guessed"])
def test_a_japanese_page_is_read_in_any_charset(charset: str, told: bool) -> None:
    found = extract(page(JAPANESE, "ja", "題名").encode(charset), charset=charset if told else "")
    assert JAPANESE in found.text
    assert (found.reason, found.language, found.title) == ("page", "ja", "題名 | Site")


@pytest.mark.parametrize("named", ["windows-1252", "iso-8859-1", "utf-8", "no-such-charset", "rot13", ""])
@pytest.mark.parametrize("charset", ["windows-1252", "utf-8"])
def test_a_german_page_is_read_whatever_charset_the_server_names(charset: str, named: str) -> None:
    found = extract(page(GERMAN).encode(charset), charset=named)
    assert GERMAN in found.text
    assert found.language == "de"


def test_the_charset_of_the_page_beats_the_servers_and_no_control_character_is_stored() -> None:
    body = '<html><head><meta charset="Shift_JIS"></head><body><p>' + JAPANESE * 3 + "</p></body></html>"
    assert JAPANESE in extract(body.encode("shift_jis"), charset="ISO-8859-1").text
    found = extract("a\r\nb\x00\x1b\tc  \x85d\u2028e\n\n\n\n" + GERMAN * 3, "text/plain")
    assert found.text == "a\nb c\nd\ne\n\n" + GERMAN * 3
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", extract(page("x&#1;&#x85;&#xD800;y")).text)


@pytest.mark.parametrize(
    "wrapped",
    [
        "This paragraph was wrapped by its author at a column that\nis common for text files on the web, as is usual.",
        "Cool running water for twenty minutes is the best first treatment for a burn, because it takes heat out of "
        "the skin\nBefore it reaches deeper layers. Butter does not help a burn: it seals heat into the skin and makes "
        "an infection\nMore likely in the days that follow.",
    ],
)
def test_a_wrapped_paragraph_becomes_one_line_and_a_list_or_a_heading_stays(wrapped: str) -> None:
    rest = "- one\n- two\n\nA short line.\nAnother one, which is no part of it, but longer."
    found = extract(f"# First aid\n{wrapped}\n\n{rest}\n", "text/markdown")
    assert found.text == f"# First aid\n{wrapped.replace(chr(10), ' ')}\n\n{rest}"
    assert found.title == "First aid"


@pytest.mark.parametrize("heading", ["Why are default values shared between objects?", "Cookie Objects"])
@pytest.mark.parametrize("tag", ["p", "div"])
def test_a_section_whose_id_sounds_like_what_surrounds_a_text_is_read(heading: str, tag: str) -> None:
    name = re.sub("[^a-z]+", "-", heading.lower()).strip("-")
    told = "This takes new programmers by surprise, for a value is made once and kept."
    boxes = (
        '<section id="related-articles"><h2>Related articles</h2><p><a href="/">Ten things that you must know</a></p>'
    )
    section = f'<section id="{name}"><h2>{heading}<a href="#x">¶</a></h2><{tag}>{told}</{tag}></section>'
    prose = "<p>A function is called with arguments, and each of them has a name in it.</p>" * 6
    found = extract(f"<html><body><main><h1>Questions</h1>{prose}{section}{boxes}</section></main></body></html>")
    assert told in found.text
    assert "Ten things" not in found.text


def test_a_page_without_main_text_and_a_long_table_of_contents_are_read_whole() -> None:
    cells = "".join(f"<tr><td>Region {number}</td><td>{number * 1000} people</td></tr>" for number in range(9))
    body = f"<html><body><div style='display: none'>hidden words</div><form><table>{cells}</table></form></body></html>"
    text = extract(body).text
    assert ("Region 3" in text, "3000 people" in text, "hidden" in text) == (True, True, False)
    words = "Everything that the manual says of each of the things that it is about. " * 3
    entries = "".join(f'<li><a href="{each}.html">{each}. How to do the next thing</a></li>' for each in range(9000))
    found = extract(f"<html><head><title>Manual</title></head><body><p>{words}</p><ul>{entries}</ul></body></html>")
    assert found.reason == "page"
    assert found.text.split("\n") == [words.strip(), *(f"{each}. How to do the next thing" for each in range(9000))]


@pytest.mark.parametrize("more", ["", "<p>It was paid for by the miners of the valley, who use it each day.</p>"])
def test_blocks_and_cells_without_blanks_between_them_are_parted(more: str) -> None:
    body = """<html><body><article><h1>Bridges</h1><p>The first was opened in 1931.</p><ul><li>It has
<b>two</b> lanes</li><li>It is grey</li></ul><table><tr><th>Bridge</th><th>Toll</th><th>Cars</th></tr>
<tr><td>Karst</td><td>12</td><td>160</td></tr><tr><td>Morava</td><td>7</td><td></td></tr></table></article></body></html>""".replace(
        ">\n", ">"
    )
    lines = extract(body.replace("<ul>", more + "<ul>")).text.split("\n")
    expected = ["Bridges", "The first was opened in 1931.", "It has two lanes", "It is grey", "Bridge | Toll | Cars"]
    assert [line for line in lines if "miners" not in line] == [*expected, "Karst | 12 | 160", "Morava | 7 |"]


@pytest.mark.parametrize(
    ("body", "content_type", "reason", "kind"),
    [
        (b"", "text/html", "empty", "text/html"),
        (b" \n", "text/plain", "empty", "text/plain"),
        (b"\x89PNG\r\n\x1a\n" + bytes(500), "image/png", "not_text", "image/png"),
        (bytes(range(256)) * 40, "text/html", "not_text", "application/octet-stream"),
        (b"%PDF-1.7 no more of it", "text/html", "parser_failed", "application/pdf"),
        (b"body { color: red }", "text/css", "not_text", "text/css"),
        (
            b"<html><body><div id='app'></div><noscript>Please enable JavaScript.</noscript></body></html>",
            "",
            "empty",
            "text/html",
        ),
        (b'{"text": "kept as it is"}', "application/json", "page", "text/plain"),
        (
            b"<!DOCTYPE html><html><body>"
            + b"<p>The office is closed on Monday, and it opens again on Tuesday.</p>" * 3,
            "",
            "page",
            "text/html",
        ),
    ],
)
def test_a_body_is_read_for_what_it_is(body: bytes, content_type: str, reason: str, kind: str) -> None:
    found = extract(body, content_type)
    assert (found.reason, found.content_type) == (reason, kind)


def test_an_entity_of_the_page_reads_no_file_and_a_billion_laughs_stay_unheard(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret of this machine", encoding="utf-8")
    head, body = '<?xml version="1.0"?><!DOCTYPE html [{}]>', f"<html><body><p>{GERMAN} &x;</p></body></html>"
    doctype = head.format(f'<!ENTITY x SYSTEM "file://{tmp_path}/secret">')
    assert "secret of this" not in extract(doctype + body, "application/xhtml+xml").text
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    laughs = head.format(f'<!ENTITY l0 "laugh">{entities}<!ENTITY x "&l11;">')
    assert len(extract(laughs + body, "application/xml").text) < 10_000


WALLS = json.loads((DATA / "walls.json").read_text(encoding="utf-8"))
CASES = [(reason, page) for reason, pages in WALLS.items() for page in pages]


@pytest.mark.parametrize(("reason", "page"), CASES, ids=[f"{reason}: {page['title']}" for reason, page in CASES])
def test_a_useless_page_is_named_for_what_it_is(reason: str, page: dict[str, str]) -> None:
    assert verdict_on(page["text"], page["title"]).reason == reason


@pytest.mark.parametrize("page", [page for reason, page in CASES if reason != "empty"], ids=lambda page: page["title"])
def test_the_same_words_in_a_long_article_are_no_wall(page: dict[str, str]) -> None:
    article = "Eight people told reporters on Monday what they had seen there. " * 40
    assert verdict_on(f"{page['text']}\n{article}", page["title"]).reason == "page"


def test_short_pages_are_named_with_the_words_that_told() -> None:
    assert verdict_on("Please log in. You must be logged in to see it.") == ("login", "it says 'Please log in'")
    assert (verdict_on("Moment"), verdict_on("a" * 1_000_000).reason) == (("empty", "1 word of text"), "empty")
    beginning = "It began with a phone call on a rainy morning in March, and nobody thought much of it."
    assert (verdict_on(beginning, marked_paid=True).reason, verdict_on(beginning).reason) == ("paywall", "page")
    assert (count_words("ワクチンは安全です"), count_words("The vaccine is safe, 2 times.")) == (3, 5)
