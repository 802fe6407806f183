import json
import re
from typing import Any

import pytest

from pipeline.citations.addresses import canonical_url
from pipeline.citations.marks import AUTHOR_YEAR
from pipeline.verifying.read import read_report
from pipeline.verifying.values import ReadReport
from tests.support.places import NO_SHARED, SHARED, cases

CASES = cases("report_marks")
REPORTS = SHARED / "corpora" / "reports" / "open_deep_research_gpt-4.1.jsonl"
LIST = "\n\n## Sources\n\n[1] One: https://a.example/1\n[2] Two: https://a.example/2\n[3] Three: https://a.example/3\n"
ONE, TWO = "https://a.example/1", "https://a.example/2"


@pytest.mark.parametrize(("mark", "urls"), CASES["marks"])
@pytest.mark.parametrize("place", ["Bees make honey {}.", "Bees make honey. {}", "Bees make honey{}. Next one."])
def test_a_mark_cites_for_the_sentence_it_stands_in_or_behind(mark: str, urls: list[str], place: str) -> None:
    sentence = read_report(place.replace("{}", mark) + LIST).sentences[0]
    text = sentence.text
    assert list(sentence.urls) == urls
    assert text.rstrip(".").rstrip(" site").startswith("Bees make honey")
    assert "[" not in text
    assert "C00" not in text


@pytest.mark.parametrize(("paragraph", "shared"), CASES["paragraphs"])
def test_marks_at_a_paragraphs_end_may_cover_sentences_without_one(paragraph: str, shared: list[list[str]]) -> None:
    sentences = read_report(paragraph + LIST).sentences
    assert [list(each.paragraph_urls) for each in sentences] == shared
    assert all(each.paragraph_urls == each.urls for each in sentences if each.urls)
    assert not all(each.urls for each in sentences)


@pytest.mark.parametrize(
    "words", ["the interval [0, 1]", "the year [2024]", "`a[1]`", "`` b`[2] ``", "$a[1]$", "[not a mark]", "![alt](https://b.example/i.png)"]
)  # fmt: skip
def test_what_only_looks_like_a_mark_cites_nothing(words: str) -> None:
    report = read_report(f"Bees like {words}." + LIST)
    assert (report.sentences[0].urls, report.unresolved) == ((), ())


@pytest.mark.parametrize("listed", CASES["listed"])
@pytest.mark.parametrize("heading", ["## Sources", "**参考文献**", "### Quellen", "## 六、参考来源"])
def test_a_source_list_is_read_in_every_form(listed: str, heading: str) -> None:
    mark = "(C007)" if "C007" in listed else "[^7]" if "^" in listed else "[7]"
    head = "| n | title | url |\n|---|---|---|\n" if listed.startswith("|") else ""
    report = read_report(f"# Bees\n\nBees make honey {mark}.\n\n{heading}\n\n{head}{listed}\n")
    assert [(sentence.text, sentence.urls) for sentence in report.sentences] == [
        ("Bees make honey.", ("https://b.example/x",))
    ]
    assert (report.unresolved, len(report.sources)) == ((), 1)
    assert report.sources[0].title in ("A title", "")


@pytest.mark.parametrize(("report", "is_listed", "wanted"), CASES["reports"].values(), ids=CASES["reports"])
def test_a_report_is_read_as_these_sentences_urls_and_lines(report: str, is_listed: bool, wanted: list[Any]) -> None:
    found = read_report(report + LIST * is_listed).sentences
    assert [[each.text, list(each.urls), each.line] for each in found] == wanted


def test_tokens_of_a_provider_are_no_words_of_a_sentence() -> None:
    report = read_report("[cite_start]Bees make honey [1]. \ue200x\ue201They fly <grok:render>\n</grok:render>." + LIST)
    assert [each.text for each in report.sentences] == ["Bees make honey.", "They fly."]


@pytest.mark.parametrize(("report", "sentences", "sources", "without_url"), CASES["lists without URLs"])
def test_a_source_list_is_no_text_of_the_report_with_urls_or_without(
    report: str, sentences: list[str], sources: list[str], without_url: int
) -> None:
    read = read_report(report)
    assert [each.text for each in read.sentences] == sentences
    assert ([each.url for each in read.sources], read.without_url) == (sources, without_url)


@pytest.mark.parametrize(("text", "cites"), CASES["authors and years"])
def test_author_and_year_are_told_from_other_brackets(text: str, cites: bool) -> None:
    assert bool(AUTHOR_YEAR.search(text)) == cites


def test_a_mark_in_a_tables_head_may_cover_its_rows_and_what_leads_nowhere_has_its_reason() -> None:
    read = read_report("| City [1] | People |\n|---|---|\n| Bonn | 3 |\n| Köln [2] | 9 |\n| Ulm [9] | 1 |" + LIST)
    assert [(each.text, each.urls, each.paragraph_urls) for each in read.sentences] == [
        ("City | People", (ONE,), (ONE,)),
        ("Bonn | 3", (), (ONE,)),
        ("Köln | 9", (TWO,), (TWO,)),
        ("Ulm | 1", (), ()),
    ]
    report = read_report("One bee [1]. Two bees [4].\n\n## Sources\n\n[1] One: https://a.example/1\n[2] Two: https://a.example/2\n"
                         "[4] One again: https://A.example/1\n")  # fmt: skip
    assert [(each.url, each.ids, each.sentences) for each in report.sources] == [(ONE, ("1", "4"), 2), (TWO, ("2",), 0)]
    report = read_report(
        "One bee [1]. Two bees [9]. Three bees [9][5]. Four [bees](http://u:p@b.example/)."
        + LIST
        + "[5] A book, 1999.\n"
    )
    assert [(each.id, each.reason, each.sentences) for each in report.unresolved] == [
        ("9", "no_entry", 2),
        ("5", "no_url", 1),
        ("http://u:p@b.example/", "not_a_url", 1),
    ]


@pytest.fixture(scope="module")
def real() -> list[tuple[str, ReadReport]]:
    if not REPORTS.is_file():
        pytest.skip(NO_SHARED)
    articles = [json.loads(line)["article"] for line in REPORTS.read_text(encoding="utf-8").splitlines()]
    return [(article, read_report(article)) for article in articles]


def test_of_100_real_reports_95_percent_of_the_cited_sources_are_found(real: list[tuple[str, ReadReport]]) -> None:
    cited_ids = [{each for sentence in report.sentences for each in sentence.ids} for _, report in real]
    lost = [{each.id for each in report.unresolved} for _, report in real]
    referenced = sum(map(len, cited_ids))
    assert referenced > 1800
    assert sum(len(ids - gone) for ids, gone in zip(cited_ids, lost, strict=True)) >= 0.95 * referenced
    assert all(ids <= gone | {each for source in report.sources for each in source.ids}
               for ids, gone, (_, report) in zip(cited_ids, lost, real, strict=True))  # fmt: skip
    compared = 0
    for article, report in real:
        last = re.split(r"\n#+ .*(?:Sources|参考|来源).*\n", article)[-1]
        listed = dict(re.findall(r"(?m)^\[(\d+)\][^\n]*?: (https?://[^\s()]+?)[.,]?\s*$", last))
        found = {each: source.url for source in report.sources for each in source.ids}
        for number, url in listed.items():
            compared += 1
            assert found[number] == canonical_url(url)
    assert compared > 1000


def test_no_mark_of_the_real_reports_is_passed_over_and_61_percent_lack_one(real: list[tuple[str, ReadReport]]) -> None:
    for article, report in real:
        body = re.split(r"\n#+ .*(?:Sources|参考|来源).*\n", article)[0]
        body = re.sub(r"(?m)^\[\d+\].*$|`[^`\n]*`", "", body)
        plain = set(re.findall(r"(?<!\[)[\[【]([1-9]\d{0,2})[\]】](?!\(|\])", body))
        assert plain <= {each for sentence in report.sentences for each in sentence.ids}
    cites = [(bool(x.urls), bool(x.paragraph_urls)) for _, report in real for x in report.sentences]
    assert len(cites) > 6_000
    assert [round(1 - sum(each) / len(cites), 2) for each in zip(*cites, strict=True)] == [0.61, 0.51]


@pytest.mark.parametrize(
    "hostile",
    [
        "[" * 30_000,
        "[1" * 20_000,
        "[1-3]" * 8_000,
        "[1](" * 10_000,
        "【" * 30_000 + "】",
        "`" * 20_000 + "[1]",
        " `" * 10_000,
        "> - " * 10_000 + "x [1]",
        "- a [1]\n" * 3_000,
        "<!--\n" * 8_000,
        "<a " * 10_000,
        "|a" * 2_000 + "\n" + "|-" * 2_000 + "\n" + "|[1]\n" * 2_000,
        "[1] https://a.example/\n" * 3_000,
        "1. a https://a.example/ [2] https://b.example/ " * 1_500,
        "[^a]: x\n" * 5_000,
        "http://" * 8_000,
        "(" * 20_000 + "https://a.example/" + ")" * 20_000,
        "**" * 20_000,
        "a\\\n" * 10_000,
        "\x00\x0b\x1c\x85\u2028" * 5_000 + "[1]",
        "\ud800 [1] \udfff.",
    ],
    ids=lambda text: repr(text[:10]),
)
def test_hostile_markdown_comes_to_an_end(hostile: str) -> None:
    report = read_report(f"# T\n\nBees make honey [1].\n\n{hostile}\n\n{LIST}")
    assert report.sentences[0].text == "Bees make honey."


@pytest.mark.parametrize(
    "listed", ["https://a.example/O'Bär_(Tier)", "(https://a.example/O'Bär_(Tier))", "(https://a.example/O'Bär)"]
)
def test_a_listed_url_keeps_the_brackets_that_it_opens(listed: str) -> None:
    (source,) = read_report(f"Bears eat honey [1].\n\n## Sources\n\n[1] Bear: {listed}\n").sources
    assert source.url == "https://a.example/O'B%C3%A4r" + "_(Tier)" * ("Tier" in listed)
