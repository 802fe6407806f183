from typing import Any

import pytest

from pipeline.sources.decode import decoded
from pipeline.sources.extract import Extracted, extract_document
from pipeline.sources.html import read_html
from tests.pipeline.sources.test_fetch import with_fetcher
from tests.support.places import cases
from tests.support.web import Page, Web

CASES = cases("whole_pages")
# Of each language: a heading, a sentence about a year, words before and behind a word, and words that stand once.
LANGUAGES: dict[str, Any] = CASES["languages"]
# In several languages: the charset, a sentence, and bytes that stand for nothing in it.
BROKEN = [(charset, words, bytes.fromhex(broken)) for charset, words, broken in CASES["broken"]]


def article(language: str, block: str, around: str = "{0}") -> str:
    heading, sentence, (before, behind), words = LANGUAGES[language]
    told = "".join(f"<p>{sentence.format(number)}</p>" for number in range(8))
    named = {"a": before, "b": behind, "w": words}
    inner = around.format(f"<article><h1>{heading}</h1>{told}{block.format(**named)}{told}</article>", **named)
    return f"<html lang={language}><title>{heading}</title><body>{inner}</body></html>"


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_visible_word_of_an_article_is_lost(language: str) -> None:
    words = LANGUAGES[language][3]
    lost = {}
    for kind, block in CASES["kinds"].items():
        found = read_html(article(language, block), "https://a.example/harbour")
        missing = [word for at, word in enumerate(words) if f"{{w[{at}]}}" in block and word not in found.text]
        lost |= {kind: (missing, found.read_share)} if missing or found.read_share != 1 else {}
    assert lost == {}


def test_what_no_click_shows_is_not_read() -> None:
    word = LANGUAGES["en"][3][0]
    texts = {
        kind: read_html(article("en", block), "https://a.example/harbour").text
        for kind, block in CASES["unseen"].items()
    }
    assert [kind for kind, text in texts.items() if word in text] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_surrounds_an_article_has_no_part_in_the_share_of_its_words_that_is_read(language: str) -> None:
    alone = read_html(article(language, "<p>{a} {w[0]} {b}</p>"), "https://a.example/harbour")
    among = read_html(article(language, "<p>{a} {w[0]} {b}</p>", CASES["around"]), "https://a.example/harbour")
    assert (among.visible_words, among.read_share) == (alone.visible_words, 1)


def extracted(body: str | bytes, **named: Any) -> Extracted:
    whole = body.encode() if isinstance(body, str) else body
    return extract_document(
        whole, **{"content_type": "text/html", "charset": "", "url": "https://a.example/harbour"} | named
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ('<frameset cols="20%,*"><frame src="menu.html"><frame src="text.html"><noframes>{all}</noframes></frameset>',
         "in 2 frames, each a page of its own"),
        ('<body><nav>{all}</nav><iframe src="/text"></iframe></body>', "in 1 frame, each a page of its own"),
        ('<body><nav>{all}</nav><div id="__next"></div><script id="__NEXT_DATA__">{{"props":1}}</script></body>',
         "in data of its scripts (__NEXT_DATA__)"),
        ("<body><nav>{all}</nav><div id=app></div><footer>{all}</footer></body>", "no words outside navigation"),
    ],
    ids=["frames", "a frame", "data of a script", "navigation alone"],
)  # fmt: skip
def test_a_page_whose_words_are_elsewhere_is_empty_and_says_where(language: str, inner: str, said: str) -> None:
    heading, sentence, *_ = LANGUAGES[language]
    found = extracted(
        f"<html lang={language}><head><title>{heading} harbour</title></head>{inner}</html>".format(
            all=sentence.format(1)
        )
    )
    assert (found.reason, said in found.detail) == ("empty", True), found.detail


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_giant_paragraph_is_read_whole_and_nesting_too_deep_has_a_reason(language: str) -> None:
    heading, sentence, *_ = LANGUAGES[language]
    giant = " ".join(sentence.format(number) for number in range(2_000))
    found = extracted(f"<html><title>{heading}</title><body><h1>{heading}</h1><p>{giant}</p></body></html>")
    assert (found.reason, found.read_share, len(found.text) >= len(giant)) == ("page", 1, True)
    told = ["".join(f"<p>{sentence.format(10 * part + each)}</p>" for each in range(5)) for part in range(3)]
    deep = "<html><body>{}{}{}{}{}</body></html>"
    found = extracted(deep.format(told[0], "<div>" * 600, told[1], "</div>" * 600, told[2]))
    held = sum(sentence.format(number) in found.text for number in range(25))
    assert (found.reason, found.read_share) == ("page", pytest.approx(held / 15, abs=0.1))
    found = extracted(deep.format(told[0], "<div>" * 20_000, told[1], "</div>" * 20_000, told[2]))
    assert (found.reason, found.detail) == ("parser_failed", "it is nested too deep")


@pytest.mark.parametrize(
    ("language", "declared", "actual"),
    [
        ("en", "utf-16", "utf-8"),
        ("de", "utf-8", "windows-1252"),
        ("de", "iso-8859-1", "utf-8"),
        ("de", "shift_jis", "utf-8"),
        ("ja", "iso-8859-1", "shift_jis"),
        ("ja", "utf-8", "euc_jp"),
        ("ja", "euc-jp", "utf-8"),
        ("ja", "shift_jis", "iso2022_jp"),
    ],
)
def test_a_page_in_another_charset_than_declared_is_read_or_told(language: str, declared: str, actual: str) -> None:
    page = article(language, "<p>{a} {w[0]} {b}</p>").replace("<title>", f"<meta charset={declared}><title>")
    found = extracted(page.encode(actual), charset=declared)
    assert (found.reason, LANGUAGES[language][1].format(1) in found.text) == ("page", True), found.text[:200]


@pytest.mark.parametrize(("charset", "words", "broken"), BROKEN)
@pytest.mark.parametrize("told_by", ["server", "page"])
def test_one_bad_byte_changes_one_letter_and_no_alphabet(charset: str, words: str, broken: bytes, told_by: str) -> None:
    whole, half = (words * 20).encode(charset), (words * 10).encode(charset)
    head = f"<meta charset={charset}>".encode() if told_by == "page" else b""
    text = decoded(head + half + broken + whole[len(half) :], charset if told_by == "server" else "utf-8")
    assert text.count(words) >= 18
    assert "\ufffd" in text


@pytest.mark.parametrize(("charset", "words", "broken"), [*BROKEN, ("macintosh", "Élève près de Nîmes. ", b"")])
def test_the_servers_word_for_the_charset_comes_to_the_reader_as_it_was_sent(
    charset: str, words: str, broken: bytes
) -> None:
    head = "<html><title>Harbour</title><body><p>"
    body = (head + words * 40).encode(charset) + broken + words.encode(charset)
    with Web({"a.example": {"/x": Page(body, content_type=f"text/html; charset={charset}")}}) as web:
        url = web.url("a.example", "/x")
        came = with_fetcher(web, lambda fetcher: fetcher.fetch(url))
    assert words.strip() in extracted(came.body, charset=came.charset).text


def test_what_is_said_to_be_utf_8_and_is_latin_keeps_the_letters_of_its_language() -> None:
    told = {"fr": "Le port de Sète a été élargi après que les pêcheurs eurent exigé à Nîmes un bassin protégé.",
            "pl": "Port w Świnoujściu powiększono, gdyż łodzie rybackie i żaglowce przypływały często."}  # fmt: skip
    for charset, words in (("windows-1252", told["fr"]), ("windows-1250", told["pl"])):
        assert words in decoded(b"<meta charset=utf-8>" + (words * 20).encode(charset), "utf-8")
