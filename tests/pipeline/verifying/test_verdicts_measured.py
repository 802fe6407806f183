"""How often a verdict without a model is right: on edits made here, and on open data beside the project.

`pytest -m soak -s` prints the table of all sets. Rules were chosen on these sets, so every figure of them flatters.
"""

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import get_args

import numpy as np
import pytest

from pipeline.verifying.claim import check_sentence
from pipeline.verifying.page_text import PageText
from pipeline.verifying.values import Verdict
from tests.support.places import NO_SHARED
from tests.support.verdict_data import (
    CORPORA,
    LANGUAGES,
    MADE_HERE,
    Judged,
    attribution_bench,
    edits,
    judged,
    qags,
    sentences_of_pages,
    sets,
    wice,
)

OF_PARTICULARS = ("number", "date", "unit", "negation")


def share(found: Sequence[Judged], verdict: str) -> float:
    return sum(each.finding.verdict == verdict for each in found) / max(1, len(found))


def of(found: Sequence[Judged], truth: bool | None) -> list[Judged]:
    return [each for each in found if each.case.truth is truth]


def area_under_curve(found: Sequence[Judged], scores: Sequence[float]) -> float:
    positive, negative = (
        [score for each, score in zip(found, scores, strict=True) if each.case.truth is truth]
        for truth in (True, False)
    )
    above = np.array(positive)[:, None] - np.array(negative)[None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0))) if above.size else float("nan")


def wilson(right: int, said: int) -> str:
    if not said:
        return "–"
    z, p = 1.96, right / said
    middle, width = p + z * z / (2 * said), z * sqrt(p * (1 - p) / said + z * z / (4 * said * said))
    return f"{right}/{said} [{(middle - width) / (1 + z * z / said):.2f}, {(middle + width) / (1 + z * z / said):.2f}]"


@pytest.mark.parametrize("language", LANGUAGES)
def test_false_edits_are_not_supported_and_true_sentences_not_contradicted(language: str) -> None:
    found = [judged(case) for case in edits(MADE_HERE / f"{language}.json")]
    false, true = of(found, False), of(found, True)
    assert len(false) >= 40
    assert [each.case.text for each in false if each.finding.verdict == "supported"] == []
    assert [each.case.text for each in true if each.finding.verdict == "contradicted"] == []
    assert share(true, "supported") >= 0.15
    particular = [each for each in false if any(kind in each.case.kind for kind in OF_PARTICULARS)]
    assert share(particular, "contradicted") >= 0.5


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_contradicts_is_quoted_from_the_page(language: str) -> None:
    found = [judged(case) for case in edits(MADE_HERE / f"{language}.json")]
    contradicted = [each for each in found if each.finding.verdict == "contradicted"]
    for case, finding, _ in contradicted:
        assert finding.score == 0
        for quote in finding.against:
            assert case.pages[0][quote.start : quote.end] == quote.text
            assert any(repr(quote.text) in problem for problem in finding.problems)


def written_otherwise(sentence: str) -> Iterator[tuple[str, str]]:
    """The claim and the sentence as a page has it, where both only look different."""
    yield sentence, sentence
    yield f"{sentence} [3]", sentence
    yield sentence.replace("-", "‑").replace("'", "’"), sentence
    yield "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in sentence), sentence
    yield sentence, unicodedata.normalize("NFD", sentence)
    words = sentence.split(" ")
    if len(words) > 3:
        yield sentence, f"{' '.join(words[:3])}\n{' '.join(words[3:])}" if words[3][0].islower() else sentence
        long = max(words[1:-1], key=len)
        if long.isalpha() and len(long) > 7:
            yield sentence, sentence.replace(long, f"{long[:4]}-\n{long[4:]}", 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_of_the_page_is_supported_however_it_is_set(language: str) -> None:
    for sentence, page, lang in sentences_of_pages(MADE_HERE / f"{language}.json"):
        for claim, written in written_otherwise(sentence):
            text = page.replace(sentence, written)
            assert check_sentence(claim, [PageText(text, lang=lang)]).verdict == "supported", (claim, written)


CHINESE = "这座桥长300米，建于1957年。只有部分居民支持新的计划。该公司没有公布2020年的收入。"


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("这座桥长300米，建于1957年。", "supported"),
        ("只有部分居民支持新的计划。", "supported"),
        ("这座桥长300米，建于1975年。", "contradicted"),
        ("该公司公布2020年的收入。", "contradicted"),
        ("所有居民支持新的计划。", "cannot_tell"),
    ],
)
def test_chinese_is_compared_character_by_character(claim: str, verdict: str) -> None:
    assert check_sentence(claim, [PageText(CHINESE, lang="zh")]).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "page", "verdict"),
    [
        ("Cats can fly over the wide ocean.", "Nobody says that cats can fly over the wide ocean.", "cannot_tell"),
        ("The drug cures cancer.", "The drug cures cancer only in mice.", "cannot_tell"),
        ("Smith may have signed the treaty.", "Smith signed the treaty.", "cannot_tell"),
        ("In 2021 the port grew.", "The port grew in 2021, and the town shrank.", "supported"),
        ("The treaty was signed by Smith in 1921.", "Smith signed the treaty in 1921.", "supported"),
        ("The treaty was signed by Jones in 1921.", "Smith signed the treaty in 1921.", "cannot_tell"),
        ("Smith was visited by Jones in 1921.", "Smith visited Jones in 1921.", "cannot_tell"),
        ("Der Kanal ist für Tanker frei.", "Der Kanal ist nicht für Tanker frei.", "contradicted"),
        ("A ticket costs $3.", "A ticket for grown-ups costs £3.", "cannot_tell"),
        ("$3 is what a ticket costs.", "£3 is what a ticket costs.", "contradicted"),
        ("Unemployment was 5.4% in June 2023.", "Unemployment was 6.1% in March 2023.", "cannot_tell"),
        ("The park covers 4.9 hectares of land.", "The park covers 12 acres of land.", "cannot_tell"),
        (
            "Unemployment fell from 5.4% in March to 6.1% in June 2023.",
            "Unemployment fell from 6.1% in March to 5.4% in June 2023.",
            "contradicted",
        ),
        ("The prices rose from €8 to €9 a piece.", "The prices rose from $8 to $9 a piece.", "contradicted"),
        (
            "The second train leaves at 8:15.",
            "The train leaves at 8:15. The second train leaves at 9:40.",
            "cannot_tell",
        ),
        ("In 2021, sales rose by 5%.", "In 2020, sales rose by 5%. In 2021, exports rose by 7%.", "cannot_tell"),
        (
            "Der Stadtrat nahm den Antrag mit 31 zu 19 Stimmen an.",
            "Der Zug fährt. Der Stadtrat lehnte den Antrag mit 31 zu 19 Stimmen ab. Die Miete stieg.",
            "cannot_tell",
        ),
    ],
)
def test_what_decides_is_looked_at_and_only_that(claim: str, page: str, verdict: str) -> None:
    assert check_sentence(claim, [PageText(page)]).verdict == verdict


def test_the_nearest_sentence_is_given_wherever_one_shares_a_word() -> None:
    page = PageText("Bees make honey. The town has 4,000 people.", lang="en")
    near = check_sentence("Honey was found in old tombs.", [page])
    assert (near.verdict, near.places[0].sentence) == ("cannot_tell", 0)
    numbered = check_sentence("4,000 tombs were opened.", [page])
    assert (numbered.verdict, numbered.places[0].sentence) == ("cannot_tell", 1)
    assert check_sentence("Lawyers drafted treaties.", [page]).verdict == "not_found"


@pytest.mark.skipif(not CORPORA.is_dir(), reason=NO_SHARED)
def test_verdicts_on_a_sample_of_open_data_are_as_safe_as_they_are_said_to_be() -> None:
    for name, cases in {
        "WiCE": tuple(wice()),
        "AttributionBench": tuple(attribution_bench())[::3],
        "QAGS": tuple(qags())[::3],
    }.items():
        found = [judged(case) for case in cases]
        assert share(of(found, False), "supported") <= 0.07, name
        assert share(of(found, True), "contradicted") == 0, name
        assert area_under_curve(found, [each.finding.score for each in found]) >= (
            area_under_curve(found, [each.plain for each in found]) - 0.02
        ), name


def row(name: str, found: Sequence[Judged]) -> list[str]:
    groups = [of(found, truth) for truth in (True, None, False)]
    counted = [Counter(each.finding.verdict for each in group) for group in groups]
    said = [f"{verdict} {'/'.join(str(each[verdict]) for each in counted)}" for verdict in get_args(Verdict)]
    supported = [each["supported"] for each in counted]
    score = area_under_curve(found, [each.finding.score for each in found])
    plain = area_under_curve(found, [each.plain for each in found])
    return [
        f"{name}: {'/'.join(str(len(group)) for group in groups)} true/in part/false | {', '.join(said)}",
        f"    supported: right {wilson(supported[0], supported[0] + supported[2])}, "
        f"of true {wilson(supported[0], len(groups[0]))}, of false {wilson(supported[2], len(groups[2]))}",
        f"    cannot_tell {wilson(sum(each['cannot_tell'] for each in counted), len(found))}, "
        f"AUC {score:.3f}, of plain coverage {plain:.3f}",
    ]


@pytest.mark.soak
@pytest.mark.skipif(not CORPORA.is_dir(), reason=NO_SHARED)
def test_table_of_all_sets(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [""]
    for name, cases in sets().items():
        found = [judged(case) for case in cases]
        lines += row(name, found)
        assert share(of(found, True), "contradicted") == 0
    with capsys.disabled():
        sys.stdout.write("\n".join(lines) + "\n")
