import json
from collections.abc import Sequence

import pytest

from pipeline.core.schema import Answer, Occurrence
from pipeline.providers import read_payload
from pipeline.records.citation_form import answer_from_report, read_stored, reference_numbers, report_marks, to_one_form
from tests.support.cited_run import cited_answer

WHO = "https://www.who.int/a?utm_source=openai"
NASA = "https://nasa.gov/b"
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZ"


def form(text: str, citations: Sequence[str], *occurrences: Occurrence) -> str:
    domains = ("",) * len(citations)
    return to_one_form(Answer(text=text, citations=tuple(citations), domains=domains, occurrences=occurrences)).text


def at(text: str, part: str | int, url: str, placement: str = "marker") -> Occurrence:
    """An occurrence at a part of the text, or at an `[n]` that begins there."""
    start = text.index(part) if isinstance(part, str) else part
    end = start + (len(part) if isinstance(part, str) else 3)
    return Occurrence.model_validate({"url": url, "start": start, "end": end, "placement": placement})


@pytest.mark.parametrize(
    ("text", "citations", "places", "wanted"),
    [
        (f"Safe. ([who.int]({WHO}))", [WHO], {f"([who.int]({WHO}))": WHO}, "Safe. [1]"),
        (
            f"One[[7]]({NASA}) two[[2]]({WHO}).",
            [NASA, WHO],
            {f"[[7]]({NASA})": NASA, f"[[2]]({WHO})": WHO},
            "One[1] two[2].",
        ),
        ("Boils[7] and freezes[3][7].", [NASA, WHO], {5: NASA, 20: WHO, 23: NASA}, "Boils[1] and freezes[2][1]."),
        (f"Quelle: {NASA}.", [NASA], {NASA: NASA}, "Quelle: [1]."),
        # A native number of no source is never taken for one of the list.
        ("A [7]. B [2]. C [3]. D [9]. E[1].", [NASA, WHO], {2: NASA, 16: WHO}, "A [1]. B [10]. C [2]. D [9]. E[11]."),
        (f"Row[2] ([nasa.gov]({NASA})).", [WHO, NASA], {f"([nasa.gov]({NASA}))": NASA}, "Row[3] [2].\n\n[1]"),
        (f"Between [1, 2] ([nasa.gov]({NASA})).", [NASA], {f"([nasa.gov]({NASA}))": NASA}, "Between [1, 2] [1]."),
        ("Paris[1][2] is old[1] [2].", [NASA], {5: NASA, 8: NASA, 18: NASA, 22: NASA}, "Paris[1] is old[1]."),
        ("Vitamin[7]X[7].", [NASA], {7: NASA, 11: NASA}, "Vitamin[1]X[1]."),
        (f"[[7]]({NASA}) says so.", [NASA], {f"[[7]]({NASA})": NASA}, "[1] says so."),
        (f"{WHO} says so.", [], {}, "https://www.who.int/a says so."),
        (f"https://a.example/x?id=1&utm_source=openai and {REDIRECT} now", [], {}, "https://a.example/x?id=1 and now"),
        (f"Yes ({REDIRECT}). No（{REDIRECT}）。", [], {}, "Yes. No。"),
        ("Fact【1†source】 and more 【4:0†report.pdf】.", [], {}, "Fact and more."),
        (f"Fact【1†source】 and [[7]]({NASA}).", [NASA], {f"[[7]]({NASA})": NASA}, "Fact and [1]."),
    ],
)
def test_a_providers_own_marks_become_numbers_of_the_list(
    text: str, citations: list[str], places: dict[str | int, str], wanted: str
) -> None:
    assert form(text, citations, *(at(text, part, url) for part, url in places.items())) == wanted


def test_a_claim_is_followed_by_its_sources_once_a_link_keeps_its_words_and_of_two_places_the_first_holds() -> None:
    text, claim = "Honig verdirbt nicht. \nEnde", "Honig verdirbt nicht. \n"
    places = [at(text, claim, url, "claim") for url in (NASA, WHO, NASA)]
    assert form(text, (WHO, NASA), *places) == "Honig verdirbt nicht.[1][2] \nEnde"
    text = f"See [the full study]({WHO}) today."
    assert form(text, (WHO,), at(text, f"[the full study]({WHO})", WHO, "claim")) == "See the full study [1] today."
    first = Occurrence(url=WHO, start=10, end=14, placement="marker")
    second = Occurrence(url=NASA, start=12, end=17, placement="marker")
    assert form("It is safe[12][3] today.", (WHO, NASA), first, second) == "It is safe[1][3] today.\n\n[2]"


@pytest.mark.parametrize("text", ["Yes.", "", "| a |\n|---|"])
def test_citations_without_a_place_stand_in_a_last_line_after_an_empty_one(text: str) -> None:
    wanted = f"{text}\n\n[1] [2]".lstrip()
    assert form(f"{text}\n" if text else "", (WHO, NASA), Occurrence(url=WHO), Occurrence(url=NASA)) == wanted


def test_a_url_in_a_links_words_shares_its_place_and_numbers_mean_what_their_list_says() -> None:
    message = {"content": f"See [https://www.who.int/a]({WHO}) there."}
    assert (
        to_one_form(read_payload("openai", json.dumps({"choices": [{"message": message}]}))).text == "See [1][2] there."
    )
    cited = [{"type": "url_citation", "url_citation": {"url": url, "title": "T"}} for url in (NASA, WHO)]
    message = {"content": "Yes [1][3].", "annotations": cited}
    answer = read_payload("openai", json.dumps({"choices": [{"message": message}], "citations": [NASA, NASA, WHO]}))
    assert [(each.url, each.start, each.title) for each in answer.occurrences] == [(NASA, 4, "T"), (WHO, 7, "T")]
    assert to_one_form(answer).text == "Yes [1][2]."
    text = f"Warm [1]. Cold [2] as [they][n] say.\n\nSources:\n[2] {WHO}\n[1] {NASA}\n\n[n]: {NASA}"
    read = read_stored(cited_answer(1, "Q", text, [WHO, NASA]))
    assert read.citations == (WHO, NASA)
    assert to_one_form(read).text == "Warm [2]. Cold [1] as they [2] say.\n\nSources:\n[1] [1]\n[2] [2]"


def test_marks_of_a_report_are_places_of_its_references_and_a_number_of_none_stays_text() -> None:
    def places(text: str) -> list[tuple[int, int, tuple[int, ...]]]:
        return [(mark.start, mark.end, reference_numbers(mark)) for mark in report_marks(text)]

    assert places("Warm [1]. Cold [2, 10].") == [(5, 8, (1,)), (15, 22, (2, 10))]
    assert places("Warm (C001, C012). Not [1].") == [(5, 17, (1, 12))]
    references = [{"url": WHO, "title": "Who says"}, {"url": NASA, "title": ""}]
    stored = cited_answer(1, "Q", "Warm [2]. Cold [1, 3].", [WHO, NASA], "pipeline").model_copy(
        update={"answer_raw_json": json.dumps({"reportJson": {"references": references}})}
    )
    answer = answer_from_report(stored)
    placed = Occurrence(url=NASA, start=5, end=8, placement="marker")
    assert answer.occurrences == (placed, Occurrence(url=WHO, title="Who says"))
    assert (answer.text, answer.citations, answer.domains) == (stored.answer_text, stored.citations, stored.domains)
