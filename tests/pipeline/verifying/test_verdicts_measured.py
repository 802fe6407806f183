import unicodedata
from collections.abc import Iterator

import pytest

from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import Finding, check_sentence
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
