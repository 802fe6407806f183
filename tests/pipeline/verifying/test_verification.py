import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

import pytest

from pipeline.research.claims import verify
from pipeline.sources.html import read_html
from pipeline.verifying.page_text import PageText, read_page
from pipeline.verifying.rules import Finding, check_sentence, denials, disagreements, single_source
from pipeline.verifying.values import Claim, Page, Quote
from tests.support.debian_pages import handbook
from tests.support.places import NO_SHARED
from tests.support.verdict_data import (
    CORPORA,
    LANGUAGES,
    MADE_HERE,
    Case,
    Judged,
    attribution_bench,
    edits,
    judged,
    qags,
    sentences_of_pages,
    wice,
)
from tests.support.verdict_figures import figures_of, rows_of, table_row

TEXT = (
    "Debian 11 includes 59,551 packages. It was released on 14 August 2021. The installer does not ask for a password. "
    "Ian Murdock announced the Debian project in August 1993."
)


def page(url: str, text: str, lang: str = "en") -> Page:
    return Page(url, "Title", url.split("/")[2], lang, text, "2026-11-22T00:00:00Z")


def quote(of: Page, text: str) -> Quote:
    start = of.text.index(text)
    return Quote(of.url, text, start, start + len(text))


def test_without_a_readable_page_nothing_is_known_and_a_span_within_a_number_ends_no_words() -> None:
    german = page(
        "https://a.example/", "Der Händler verkauft am Wochenende frisches Obst und Gemüse auf dem Markt.", "de"
    )
    assert check_sentence("[1]", [PageText(TEXT)]).verdict == "cannot_tell"
    claim = "The merchant sells fresh fruit and vegetables on the market at weekends."
    for pages in ([], [page("https://a.example/", " \n ")], [german]):
        checked = check_sentence(claim, [read_page(each) for each in pages])
        assert (checked.verdict, len(checked.problems)) == ("cannot_tell", 1)
    text = "It weighs 1.5 grams, or -3 of them."
    whole = PageText(text)
    for words, is_whole in (("1.5 grams", True), ("5 grams", False), ("-3 of", True), ("3 of", False)):
        assert whole.ends_words((text.index(words), text.index(words) + len(words))) is is_whole, words


NEGATED = {
    "en-US": [(r"\b(is|are|was|were|can|will|must|should|has|have) (?!not|only)", r"\1 not ")],
    "de-DE": [(r"\b(ist|sind|war|kann|können|wird|werden|hat) (?!nicht|nur)", r"\1 nicht ")],
    "ja-JP": [("されています。", "されていません。"), ("できます。", "できません。"), ("します。", "しません。")],
    "zh-CN": [("可以", "不可以"), ("会", "不会")],
}
NAMES = {
    "en-US": (r"(?<=[a-z] )[A-Z][a-zA-Z]{3,}", "Zenobia"),
    "de-DE": (r"(?<=[a-z] )(?:Debian|Linux|Apache|Samba|Windows)\b", "Zenobia"),
    "ja-JP": (r"[ァ-ヺー]{4,}", "ゼノビアス"),
    "zh-CN": (r"(?<=[\u4e00-\u9fff] )[A-Z][a-z]{3,}", "Zenobia"),
}
NUMBER = re.compile(r"(?<![A-Za-z0-9_.,:/\[-])\d+(?![A-Za-z0-9_.,:/\]-])")


def changed(sentence: str, language: str) -> dict[str, str]:
    """The sentence with another number, with another name, and negated; only what can be changed in it."""
    pattern, name = NAMES[language]
    found = {
        "number": NUMBER.sub(lambda number: str(int(number[0]) + 13), sentence, count=1),
        "name": re.sub(pattern, name, sentence, count=1),
    }
    if not denials(sentence):
        rewritten = (re.sub(positive, negative, sentence, count=1) for positive, negative in NEGATED[language])
        found["negation"] = next((each for each in rewritten if each != sentence), sentence)
    return {kind: text for kind, text in found.items() if text != sentence}


@pytest.mark.parametrize(
    "language", [pytest.param(each, marks=() if each == "en-US" else pytest.mark.rare) for each in NEGATED]
)
def test_changed_sentences_of_a_book_are_found_out_and_unchanged_ones_supported(language: str) -> None:
    chapters = sorted(handbook(language).glob("*.html"), key=lambda file: -file.stat().st_size)[1:5]
    texts = [
        PageText(read_html(each.read_text("utf-8"), "https://a.example/").text, lang=language[:2]) for each in chapters
    ]
    prose = [(each, text) for text in texts for each in text.sentences if each[-1] in ".。" and 25 < len(each) < 300]
    kept = random.Random(7).sample([each for each in prose if "\n" not in each[0]], 150)
    said = sum(check_sentence(sentence, [text]).verdict == "supported" for sentence, text in kept)
    assert said >= 148  # one that is followed by "In reality ..." counts as called wrong
    verdicts: dict[str, Counter[str]] = {}
    for sentence, text in kept:
        for kind, other in changed(sentence, language).items():
            verdicts.setdefault(kind, Counter())[check_sentence(other, [text]).verdict] += 1
    assert set(verdicts) == {"number", "name", "negation"}
    for kind, counted in verdicts.items():
        assert counted["supported"] == 0, (kind, counted)
    assert verdicts["negation"]["contradicted"] >= 0.4 * verdicts["negation"].total()


def test_all_claims_of_a_run_get_supporters_conflicts_and_coverage() -> None:
    first = page("https://a.example/x", TEXT)
    mirror = page("https://www.a.example/y", TEXT)._replace(site="a.example")
    other = page(
        "https://b.example/",
        "Debian 11 includes 57,703 packages. Ian Murdock announced the Debian project in August 1993.",
    )
    sentences = ("Debian 11 includes 59,551 packages.", "Ian Murdock announced the Debian project in August 1993.")
    claims = [Claim(f"c{n}", text, 0, (quote(first, text),)) for n, text in enumerate(sentences, start=1)]
    claims.append(Claim("c3", "Nothing of this stands there at all.", 1, (quote(first, "Debian"),)))
    pages = [first, mirror, other]
    verified = verify(claims, pages, ["Packages", "History", "Future", "Licences", "Money"])
    assert [each.verdict for each in verified.claims] == ["supported", "supported", "not_found"]
    assert [each.supporters for each in verified.claims] == [
        (first.url, mirror.url),
        (first.url, mirror.url, other.url),
        (),
    ]
    assert [each.claim_ids for each in disagreements(verified.claims)] == [("c1",)]
    assert verified.claims[0].against == (quote(other, "Debian 11 includes 57,703 packages."),)
    assert [each.claim.id for each in single_source(verified.claims, {page.url: page.site for page in pages})] == ["c1"]
    assert (verified.coverage, verify([], [], [])[1:]) == (pytest.approx(0.2), (0.0, ()))


@pytest.mark.parametrize(("language", "contradicted"), [("english", 12), ("german", 18), ("japanese", 16)])
def test_false_edits_are_not_supported_and_true_sentences_not_contradicted(language: str, contradicted: int) -> None:
    found = [judged(case) for case in edits(MADE_HERE / f"{language}.json")]
    figures = figures_of(language, found)
    assert figures.cases[False] >= 40
    assert (figures.said("supported", False).of, figures.said("contradicted", True).of) == (0, 0)
    assert figures.said("contradicted", False).of >= contradicted
    for case, finding, _ in found:
        for quote in finding.against:
            assert case.pages[0][quote.start : quote.end] == quote.text


def written_otherwise(sentence: str) -> Iterator[tuple[str, str]]:
    """The claim and the sentence as a page has it, where both only look different."""
    yield f"{sentence} [3]", sentence
    yield sentence, sentence.replace(".", ".[12]") if sentence.count(".") == 1 else sentence
    yield sentence.replace("-", "‑").replace("'", "’"), sentence
    yield "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in sentence), sentence
    yield sentence, unicodedata.normalize("NFD", sentence)
    words = sentence.split(" ")
    if len(words) > 3 and words[3][0].islower():
        yield sentence, f"{' '.join(words[:3])}\n{' '.join(words[3:])}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_of_the_page_is_supported_however_it_is_set(language: str) -> None:
    for sentence, page, lang in sentences_of_pages(MADE_HERE / f"{language}.json"):
        for claim, written in written_otherwise(sentence):
            text = page.replace(sentence, written)
            assert check_sentence(claim, [PageText(text, lang=lang)]).verdict == "supported", (claim, written)


def test_the_nearest_sentence_is_given_and_what_is_supported_in_part_is_not_supported() -> None:
    page = PageText("Bees make honey. The town has 4,000 people.", lang="en")
    near = check_sentence("Honey was found in old tombs.", [page])
    assert (near.verdict, near.places[0].sentence) == ("cannot_tell", 0)
    numbered = check_sentence("4,000 tombs were opened.", [page])
    assert (numbered.verdict, numbered.places[0].sentence) == ("cannot_tell", 1)
    assert check_sentence("Lawyers drafted treaties.", [page]).verdict == "not_found"
    said = [("supported", True), ("supported", None), ("cannot_tell", True), ("cannot_tell", False)]
    found = [
        Judged(Case(str(at), "", (), truth), Finding(verdict, score), 0.5)  # type: ignore[arg-type]
        for at, ((verdict, truth), score) in enumerate(zip(said, (1.0, 1.0, 0.6, 0.2), strict=True))
    ]
    figures = figures_of("set", found)
    assert (str(figures.right), figures.right) == (".500", (1, 2))
    # Of the four pairs of a true and another case: 1 > .2, .6 > .2, 1 = 1 counted half, .6 < 1.
    assert figures.score[0] == 2.5 / 4
    assert table_row(figures).startswith(
        "| set | measured here | 2, 1, 1 | 1, 1, 0 | 1 of 2 = .500 [.095, .905] | .500 |"
    )
    assert "| .500 | of all others, the share called `supported`: 1 of 2 " in "\n".join(rows_of(figures))


@pytest.mark.rare
@pytest.mark.skipif(not CORPORA.is_dir(), reason=NO_SHARED)
def test_verdicts_on_a_sample_of_open_data_are_as_safe_as_they_are_said_to_be() -> None:
    for name, cases in {
        "WiCE": tuple(wice()),
        "AttributionBench": tuple(attribution_bench())[::3],
        "QAGS": tuple(qags())[::3],
    }.items():
        found = [judged(case) for case in cases]
        figures = figures_of(name, found)
        assert figures.said("supported", None, False).of == 0, name
        assert figures.said("contradicted", True, None).of == 0, name
        assert figures.score[0] >= figures.plain[0] - 0.02, name
        whole = figures_of(name, [each for each in found if each.case.truth is not None])
        assert whole.score[0] >= 0.9 or name != "WiCE"
