"""Every provider's citation marks become `[n]`."""

import json

from pipeline.core.schema import Answer, Occurrence
from pipeline.providers import read_payload
from pipeline.records.citation_form import Mark, answer_from_report, read_marks, to_one_form
from tests.support.cited_run import cited_answer

WHO = "https://www.who.int/a?utm_source=openai"
NASA = "https://nasa.gov/b"
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZ"


def place(text: str, part: str, url: str, placement: str) -> Occurrence:
    start = text.index(part)
    return Occurrence.model_validate({"url": url, "start": start, "end": start + len(part), "placement": placement})


def shown(text: str, citations: tuple[str, ...], *occurrences: Occurrence) -> str:
    return to_one_form(Answer(text=text, citations=citations, domains=("",) * len(citations), occurrences=occurrences))


def test_a_bracketed_link_gives_way_to_its_number() -> None:
    text = f"It is safe. ([who.int]({WHO}))"
    assert shown(text, (WHO,), place(text, f"([who.int]({WHO}))", WHO, "marker")) == "It is safe. [1]"


def test_a_numbered_link_is_renumbered_by_first_appearance() -> None:
    text = f"First[[7]]({NASA}) then[[2]]({WHO})."
    marked = (place(text, f"[[7]]({NASA})", NASA, "marker"), place(text, f"[[2]]({WHO})", WHO, "marker"))
    assert shown(text, (NASA, WHO), *marked) == "First[1] then[2]."


def test_native_numbers_of_sources_that_are_named_late_are_renumbered() -> None:
    text = "Water boils[7] and freezes[3][7]."
    marked = [
        Occurrence(url=NASA, start=11, end=14, placement="marker"),
        Occurrence(url=WHO, start=26, end=29, placement="marker"),
        Occurrence(url=NASA, start=29, end=32, placement="marker"),
    ]
    assert shown(text, (NASA, WHO), *marked) == "Water boils[1] and freezes[2][1]."


def test_a_quoted_sentence_is_followed_by_all_its_sources_once() -> None:
    text = "Honig verdirbt nicht. \nEnde"
    claim = "Honig verdirbt nicht. \n"
    places = [place(text, claim, url, "claim") for url in (NASA, WHO, NASA)]
    assert shown(text, (WHO, NASA), *places) == "Honig verdirbt nicht.[1][2] \nEnde"


def test_an_inline_link_keeps_its_words() -> None:
    text = f"See [the full study]({WHO}) today."
    assert shown(text, (WHO,), place(text, f"[the full study]({WHO})", WHO, "claim")) == "See the full study [1] today."


def test_citations_without_a_place_stand_in_a_last_line() -> None:
    assert shown("Yes.", (WHO, NASA), Occurrence(url=WHO), Occurrence(url=NASA)) == "Yes.\n\n[1] [2]"


def test_an_answer_without_text_shows_its_citations_alone() -> None:
    assert shown("", (WHO,), Occurrence(url=WHO)) == "[1]"


def test_no_tracking_parameter_and_no_redirect_host_is_left_to_see() -> None:
    text = f"Read https://a.example/x?id=1&utm_source=openai and {REDIRECT} now"
    assert shown(text, ()) == "Read https://a.example/x?id=1 and now"


def test_a_bare_cited_url_becomes_its_number() -> None:
    text = f"Quelle: {NASA}."
    assert shown(text, (NASA,), place(text, NASA, NASA, "marker")) == "Quelle: [1]."


def test_a_native_number_of_no_source_is_never_taken_for_one_of_the_list() -> None:
    text = "A [7]. B [2]. C [3]. D [9]. E[1] and [2]."
    marked = (place(text, "[7]", NASA, "marker"), place(text, "[3]", WHO, "marker"))
    assert shown(text, (NASA, WHO), *marked) == "A [1]. B [10]. C [2]. D [9]. E[11] and [10]."


def test_numbers_in_brackets_stay_where_the_provider_does_not_cite_by_number() -> None:
    text = f"Take row[2] ([nasa.gov]({NASA}))."
    assert shown(text, (WHO, NASA), place(text, f"([nasa.gov]({NASA}))", NASA, "marker")) == "Take row[2] [2].\n\n[1]"


def test_marks_of_one_source_side_by_side_are_one_mark() -> None:
    text = "Paris[1][2] is old[1] [2]."
    marked = [
        Occurrence(url=NASA, start=start, end=start + 3, placement="marker") for start in (5, 8, text.index("[1] "), 22)
    ]
    assert shown(text, (NASA,), *marked) == "Paris[1] is old[1]."


def test_a_url_in_the_words_of_a_link_to_it_shares_its_place() -> None:
    message = {"content": f"See [https://www.who.int/a]({WHO}) there."}
    assert to_one_form(read_payload("openai", json.dumps({"choices": [{"message": message}]}))) == "See [1][2] there."


def test_numbers_of_a_list_that_a_proxy_passes_on_are_its_sources() -> None:
    cited = [{"type": "url_citation", "url_citation": {"url": url, "title": "T"}} for url in (NASA, WHO)]
    message = {"content": "Yes [1][3].", "annotations": cited}
    answer = read_payload("openai", json.dumps({"choices": [{"message": message}], "citations": [NASA, NASA, WHO]}))
    assert [(each.url, each.start, each.title) for each in answer.occurrences] == [(NASA, 4, "T"), (WHO, 7, "T")]
    assert to_one_form(answer) == "Yes [1][2]."


def test_a_hidden_redirect_leaves_no_empty_brackets() -> None:
    assert shown(f"Yes ({REDIRECT}). No（{REDIRECT}）。", ()) == "Yes. No。"


def test_markers_of_files_that_nobody_can_open_are_dropped() -> None:
    assert shown("Fact【1†source】 and more 【4:0†report.pdf】.", ()) == "Fact and more."


def test_the_last_line_of_citations_follows_after_one_empty_line() -> None:
    assert shown("| a |\n|---|\n", (WHO,), Occurrence(url=WHO)) == "| a |\n|---|\n\n[1]"


def test_an_answer_may_begin_with_a_mark_or_a_link() -> None:
    text = f"[[7]]({NASA}) says so."
    assert shown(text, (NASA,), place(text, f"[[7]]({NASA})", NASA, "marker")) == "[1] says so."
    assert shown(f"{WHO} says so.", ()) == "https://www.who.int/a says so."


def test_of_two_places_that_overlap_the_first_holds() -> None:
    text = "It is safe[12][3] today."
    overlapping = (
        Occurrence(url=WHO, start=10, end=14, placement="marker"),
        Occurrence(url=NASA, start=12, end=17, placement="marker"),
    )
    # NASA has lost its place in the text, and stands where those without one do.
    assert shown(text, (WHO, NASA), *overlapping) == "It is safe[1][3] today.\n\n[2]"


def test_the_same_mark_stands_again_behind_other_words_however_short() -> None:
    text = "Vitamin[7]X[7]."
    marked = [Occurrence(url=NASA, start=at, end=at + 3, placement="marker") for at in (7, 11)]
    assert shown(text, (NASA,), *marked) == "Vitamin[1]X[1]."


def test_marks_of_a_report_are_read_with_their_places_and_numbers() -> None:
    assert list(read_marks("Warm [1]. Cold [2, 10].")) == [Mark(5, 8, (1,)), Mark(15, 22, (2, 10))]
    assert list(read_marks("Warm (C001, C012). Not [1].")) == [Mark(5, 17, (1, 12))]


def test_a_reports_marks_are_places_of_its_references_and_a_number_of_none_stays_text() -> None:
    references = [{"url": WHO, "title": "Who says"}, {"url": NASA, "title": ""}]
    stored = cited_answer(1, "Q", "Warm [2]. Cold [1, 3].", [WHO, NASA], "pipeline").model_copy(
        update={"answer_raw_json": json.dumps({"reportJson": {"references": references}})}
    )
    answer = answer_from_report(stored)
    placed = Occurrence(url=NASA, start=5, end=8, placement="marker")
    assert answer.occurrences == (placed, Occurrence(url=WHO, title="Who says"))
    assert (answer.text, answer.citations, answer.domains) == (stored.answer_text, stored.citations, stored.domains)
