"""Nothing that a reader sees of an article is missing in its text, in the charset that the page declares."""

import re

import pytest

from pipeline.sources.decode import decoded
from pipeline.sources.html import read_html

SENTENCE = "<p>Sentence {} tells of the harbour and of ships that came in 19{:02}, with enough words to count.</p>"
FILLER = "".join(SENTENCE.format(number, number) for number in range(8))


@pytest.mark.parametrize(
    "block",
    [
        pytest.param("<p>It was opened on <time>ZWOELF</time> by all.</p>", id="time"),
        pytest.param("<p>Dampf<wbr>schiff KAPITAEN went out to sea.</p>", id="wbr"),
        pytest.param("<div>On Friday three KLAGEN were denied in court.</div>", id="a div among paragraphs"),
        pytest.param("<p>One.</p>NACKTERTEXT stands between paragraphs.<p>Two.</p>", id="bare text"),
        pytest.param("<section><div><div>TIEFER text without any paragraph.</div></div></section>", id="nested"),
        pytest.param("<div><strong>FETT:</strong> what stands behind it in a div.</div>", id="a div with bold words"),
        pytest.param("<ul><li>AUSSEN item<ul><li>INNEN item</li></ul></li></ul>", id="a nested list"),
        pytest.param("<figure><img src=x><figcaption>BILDTEXT shows the ships.</figcaption></figure>", id="a caption"),
        pytest.param("<table><caption>TABELLE one</caption><tr><th>KOPF</th><td>ZELLE</td></tr></table>", id="a table"),
        pytest.param("<dl><dt>TERM</dt><dd>ERKLAERUNG of it</dd></dl>", id="a list of terms"),
        pytest.param(
            "<details><summary>FRAGE?</summary><div>ANTWORT is open all year.</div></details>", id="a question"
        ),
        pytest.param("<x-note>EIGENES element with words of its own.</x-note>", id="an element of the page's own"),
        pytest.param("<center>MITTE is text that is centred in the page.</center>", id="centred"),
    ],
)
def test_no_visible_word_of_an_article_is_lost(block: str) -> None:
    page = f"<html><title>T</title><body><article><h1>Harbour</h1>{FILLER}{block}{FILLER}</article></body></html>"
    text = read_html(page, "https://a.example/harbour").text
    assert not [word for word in re.findall("[A-Z]{4,}", re.sub("<[^>]*>", " ", block)) if word not in text]


@pytest.mark.parametrize(
    ("charset", "words", "broken"),
    [
        ("utf-8", "Größe über Köln, sagt Jürgen Groß. ", b"\xff"),
        ("utf-8", "Élève à l’école près de Nîmes. ", b"\xe9"),
        ("utf-8", "Zażółć gęślą jaźń w Łodzi. ", b"\xb3"),
        ("utf-8", "港の会議が東京で開かれた。", b"\xe6"),
        ("euc-jp", "港の会議が東京で開かれ、多くの代表が参加した。", b"\xff"),
        ("shift_jis", "港の会議が東京で開かれ、多くの代表が参加した。", b"\x81\xff"),
        ("gb18030", "会议在北京举行，许多代表参加了会议。", b"\xff"),
        ("euc-kr", "회의가 서울에서 열렸고 많은 대표가 참석했다. ", b"\xff"),
    ],
)
def test_one_bad_byte_changes_one_letter_and_no_alphabet(charset: str, words: str, broken: bytes) -> None:
    whole = (words * 20).encode(charset)
    middle = len((words * 10).encode(charset))
    text = decoded(whole[:middle] + broken + whole[middle:], charset)
    assert text.count(words) >= 18
    assert "\ufffd" in text
