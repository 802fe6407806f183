from typing import Any

import pytest

from pipeline.sources.decode import decoded
from pipeline.sources.extract import Extracted, extract_document
from pipeline.sources.html import read_html
from tests.pipeline.sources.test_fetch import with_fetcher
from tests.support.web import Page, Web

# Of each language: a heading, a sentence about a year, words before and behind a word, and words that stand once.
TREES = {
    "en": "ALDER BEECH CEDAR DOGWOOD EBONY FIR GINKGO HAZEL IRONWOOD JUNIPER KAPOK LARCH MAPLE NUTMEG OAK PINE",
    "de": "AHORN BUCHE ZYPRESSE DOUGLASIE ERLE FÖHRE GINKGO HÄNGEBIRKE ILEX JOHANNISBEERE KIEFER LÄRCHE MISPEL "
    "ÖLBAUM PAPPEL ULME",
    "ja": "カエデ ブナ スギ ミズキ コクタン モミ イチョウ ハシバミ ナギ ネズ パンヤ カラマツ トチノキ "
    "ニクズク ナラ マツ",
}
LANGUAGES = {
    "en": (
        "Harbour",
        "Sentence {0} tells of the harbour and of ships that came in 19{0:02}, with enough words to count.",
        ("It was opened on", "by all who came."),
        TREES["en"].split(),
    ),
    "de": (
        "Hafen",
        "Satz {0} erzählt vom Hafen und von Schiffen, die im Jahr 19{0:02} kamen, mit genug Wörtern zum Zählen.",
        ("Eröffnet wurde er am", "für alle Größen."),
        TREES["de"].split(),
    ),
    "ja": (
        "港",
        "第{0}文は19{0:02}年に入港した船と港の歴史について、数えるのに十分な長さで詳しく述べている。",
        ("この港は", "に開かれ、多くの人が訪れた。"),
        TREES["ja"].split(),
    ),
}
KINDS = {
    "time": "<p>{a} <time>{w[0]}</time> {b}</p>",
    "wbr": "<p>{a}<wbr>{w[0]} {b}</p>",
    "a div among paragraphs": "<div>{a} {w[0]} {b}</div>",
    "bare text": "<p>{b}</p>{w[0]} {b}<p>{a}</p>",
    "nested": "<section><div><div>{a} {w[0]} {b}</div></div></section>",
    "a div with bold words": "<div><strong>{w[0]}:</strong> {a} {w[1]} {b}</div>",
    "a nested list": "<ul><li>{w[0]} {a}<ul><li>{w[1]} {b}</li></ul></li></ul>",
    "a caption": "<figure><img src=x><figcaption>{w[0]} {b}</figcaption></figure>",
    "a table": "<table><caption>{w[0]}</caption><tr><th>{w[1]}</th><td>{w[2]}</td></tr></table>",
    "a list of terms": "<dl><dt>{w[0]}</dt><dd>{w[1]} {b}</dd></dl>",
    "a question": "<details><summary>{w[0]}?</summary><div>{w[1]} {b}</div></details>",
    "an element of the page's own": "<x-note>{a} {w[0]} {b}</x-note>",
    "centred": "<center>{a} {w[0]} {b}</center>",
    "a div of nothing but a span": "<div><span>{a} {w[0]} {b}</span></div>",
    "a transcript": "<div><span>{w[0]}</span> {a}</div><div><span>{w[1]}</span> {b}</div>",
    "an unknown tag": "<p>{a} <o:p>{w[0]}</o:p> <meter></meter> {w[1]} {b}</p>",
    "elements of the page's own within another": "<x-ask><x-q>{w[0]}?</x-q><x-a>{w[1]} {b}</x-a></x-ask>",
    "a list in a cell": "<table><tr><th>{w[0]}</th><td><ul><li>{w[1]}</li><li>{w[2]}</li></ul></td></tr></table>",
    "a caption by class": "<div class=wp-caption><img src=x><p class=wp-caption-text>{w[0]} {b}</p></div>",
    "code in a figure": "<figure><pre>{w[0]} {b}</pre><figcaption>{w[1]}</figcaption></figure>",
    "the tail of an item": "<ul><li>{w[0]} {a}<ul><li>{w[1]} {b}</li></ul>{w[2]} {b}</li></ul>",
    "hidden until found": "<div hidden=until-found><p>{w[0]} {b}</p></div>",
    "a panel": "<h3><button aria-expanded=false aria-controls=p>{w[0]}?</button></h3><div id=p hidden>{w[1]} {b}</div>",
    "a formula": "<p>{a} <math><mi>{w[0]}</mi><mo>=</mo><mn>13</mn></math> {w[1]} {b}</p>",
    "a label": "<p>{a} <label>{w[0]}</label> {b}</p>",
    "a name that only sounds like a box's": "<div class=share-capital id=related-work><p>{w[0]} {b}</p></div>",
    "a form without fields": "<form><fieldset><legend>{w[0]}</legend><p>{w[1]} {b}</p></fieldset></form>",
    "a link in a sentence": "<p>{a} <a href='/x'>{w[0]}</a> {b}</p>",
}
UNSEEN = {
    "a panel whose button is hidden": "<p hidden><button aria-expanded=false aria-controls=p>+</button></p>"
    "<div id=p hidden><p>{w[0]} {b}</p></div>",
    "a panel with its own button": "<div id=p hidden><button aria-expanded=false aria-controls=p>+</button>"
    "<p>{w[0]} {b}</p></div>",
    "found by a search and hidden by style": "<div hidden=until-found style='display: none'><p>{w[0]} {b}</p></div>",
    "hidden within a panel": "<h3><button aria-expanded=false aria-controls=p>{w[1]}?</button></h3>"
    "<div id=p hidden><p>{w[2]} {b}</p><p style='visibility:hidden'>{w[0]} {b}</p></div>",
}
AROUND = """<header><nav><a href="/">{w[12]}</a> {a}</nav></header><div role="banner">{w[13]} {b}</div>{0}<aside>{w[14]}
{b}</aside><p hidden>{w[15]} {b}</p><div class=author-bio>{w[9]} {b}</div>
<ul><li><a href="/1">{w[11]} {b}</a></li></ul><footer>{w[10]} {b}</footer>"""


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
    for kind, block in KINDS.items():
        found = read_html(article(language, block), "https://a.example/harbour")
        missing = [word for at, word in enumerate(words) if f"{{w[{at}]}}" in block and word not in found.text]
        lost |= {kind: (missing, found.read_share)} if missing or found.read_share != 1 else {}
    assert lost == {}


def test_what_no_click_shows_is_not_read() -> None:
    word = LANGUAGES["en"][3][0]
    texts = {kind: read_html(article("en", block), "https://a.example/harbour").text for kind, block in UNSEEN.items()}
    assert [kind for kind, text in texts.items() if word in text] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_surrounds_an_article_has_no_part_in_the_share_of_its_words_that_is_read(language: str) -> None:
    alone = read_html(article(language, "<p>{a} {w[0]} {b}</p>"), "https://a.example/harbour")
    among = read_html(article(language, "<p>{a} {w[0]} {b}</p>", AROUND), "https://a.example/harbour")
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


# In several languages: the charset, a sentence, and bytes that stand for nothing in it.
BROKEN = (
    ("utf-8", "Größe über Köln, sagt Jürgen Groß. ", b"\xff"),
    ("utf-8", "Élève à l’école près de Nîmes. ", b"\xe9"),
    ("utf-8", "Zażółć gęślą jaźń w Łodzi. ", b"\xb3"),
    ("utf-8", "港の会議が東京で開かれた。", b"\xe6"),
    ("euc-jp", "港の会議が東京で開かれ、多くの代表が参加した。", b"\xff"),
    ("shift_jis", "港の会議が東京で開かれ、多くの代表が参加した。", b"\x81\xff"),
    ("gb18030", "会议在北京举行，许多代表参加了会议。", b"\xff"),
    ("big5", "會議在臺北舉行，許多代表參加了會議。", b"\xff"),
    ("euc-kr", "회의가 서울에서 열렸고 많은 대표가 참석했다. ", b"\xff"),
    ("windows-1252", "Größe über Köln, erzählt Jürgen Groß. ", b"\x81"),
    ("iso-8859-1", "Élève à la forêt près de Nîmes, où il gèle. ", b"\x9d"),
    ("windows-1250", "Zażółć gęślą jaźń w Łodzi. ", b"\x81"),
    ("windows-1251", "Заседание прошло в порту Архангельска. ", b"\x98"),
    ("iso-8859-7", "Η συνεδρίαση έγινε στο λιμάνι. ", b"\xff"),
    ("windows-1253", "Η συνεδρίαση έγινε στο λιμάνι. ", b"\xd2"),
    ("windows-1255", "הישיבה התקיימה בנמל. ", b"\xff"),
    ("tis-620", "การประชุมจัดขึ้นที่ท่าเรือ ", b"\xff"),
)


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
