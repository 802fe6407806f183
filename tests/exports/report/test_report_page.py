"""`report.html`: for everybody, in three languages, with the narratives, examples and no annotator's name."""

import csv
import re
import string
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from openpyxl import load_workbook

from exports.cli import main
from exports.report.words import LANGUAGES, read_language
from pipeline.records.schema import CONTEXT_SEPARATOR, Passage, QueryResponse, Source
from tests.support.export_folders import Answer, campaign, write_export, write_rows
from tests.support.report_data import BIDI, HOSTILE
from tests.support.report_page import Page

TRANSLATED = (
    *("format", "nouns", "page", "report", "verdicts", "problems", "labels", "columns", "methods"),
    *("interim", "interval", "refused", "rate_interval", "values", "values_of_all", "finding_values"),
)
ENGLISH = re.compile(r"\b(the|of|and|were|not|by|people|answers?|passages?|with|from|units?|records?)\b", re.IGNORECASE)
ANSWER = "Der Turm wurde 1889 gebaut [1]. Er ist 500 Meter hoch [2]."
PASSAGES = ("Der Turm steht in Paris.", "Er hat drei Ebenen. Der Turm ist 330 Meter hoch. Er wurde 1889 eröffnet.")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["exports", "results", *map(str, words), "--resamples", "100"])


def written(
    answers: Sequence[Answer], answer: str = ANSWER, passages: Sequence[str] = PASSAGES, note: str = ""
) -> Path:
    """An export of the answers, with these texts and a note on every one in grounding, and when they were asked."""
    folder = write_export(Path("export"), answers)
    more = {"answer": answer, "context_set": CONTEXT_SEPARATOR.join(passages), "notes": note}
    asked = {"model_version": "model-7", "answer_timestamp": "2026-02-03T10:00:00+00:00"}
    for name, update in (("generation", more), ("grounding", more), ("provenance", asked)):
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        known = {column for column in rows[0]} | (asked.keys() if name == "provenance" else set())
        write_rows(folder / f"{name}.csv", [row | {k: v for k, v in update.items() if k in known} for row in rows])
    return folder


def page_of(folder: Path, *words: str | Path) -> Page:
    result = run(folder, "--out", "out", *words)
    assert result.exit_code == 0, result.output
    return Page(Path("out/report.html").read_text(encoding="utf-8"))


def rows_of(page: Page) -> list[str]:
    return [" ".join(text.split()) for _, text in page.all("tr")]


def fields(text: object) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(str(text)) if name}


def test_every_language_has_every_text_with_the_same_things_to_fill_in() -> None:
    english = read_language("en").texts
    for code in LANGUAGES[1:]:
        texts = read_language(code).texts
        assert set(texts) == {*TRANSLATED}
        for table in TRANSLATED:
            assert (
                {*english[table]} >= {*texts[table]}
                if table == "columns"
                else texts[table].keys() == english[table].keys()
            )
            for name, text in texts[table].items():
                told = english[table][name]
                assert text or name == "space"
                assert type(text) is type(told)
                assert fields(text) <= fields(told) | ({"n"} if table == "nouns" else set()), (code, table, name)
                if table == "report":
                    assert fields(text) == fields(told), (code, name)


@pytest.mark.parametrize("code", LANGUAGES)
def test_it_says_who_was_asked_when_and_what_was_found_in_its_readers_language(code: str) -> None:
    folder = written(campaign(narratives=24), note="Zahl falsch.")
    page = page_of(folder, "--language", code)
    say = read_language(code).say
    assert page.all("html")[0][0]["lang"].startswith(code)
    assert [text for _, text in page.all("h1")] == [say("title")]
    sections = ("asked_title", "by_model", "narratives_title", "examples_title", "disagreements_title", "methods")
    assert [text for _, text in page.all("h2")] == [say(name) for name in sections]
    day = {"en": "3 February 2026", "de": "3. Februar 2026", "ja": "2026年2月3日"}[code]
    assert day in page.text
    (claude,) = [row for row in rows_of(page) if row.startswith("claude model-7")]
    assert claude.endswith("24")
    (told,) = [at for at, (_, each) in enumerate(page.tags) if each.get("class") == "sentences-part"]
    assert len([at for at, (tag, _) in enumerate(page.tags) if tag == "li" and told in page.ancestors(at)]) == 3
    names = {name.lower() for name in ("anna", "ben")}
    assert not names & set(re.findall(r"\w+", page.text.lower()))
    assert "--" not in page.text
    assert "citejury.toml" not in page.text
    (methods,) = [text for _, text in page.all("details") if text.lstrip().startswith(say("methods"))]
    assert "grounding.csv" in methods
    if code != "en":
        told = re.sub(r"Is statement \d+ true\?|Student's|\w+\.csv|Calderon, Reichart & Dror", "", page.text)
        assert not ENGLISH.findall(told), ENGLISH.findall(told)


def test_each_narrative_has_its_text_and_what_was_found_of_each_model_worst_first() -> None:
    answers = [each for each in campaign(narratives=4) if (each.model, each.narrative) != ("gemini", "n03")]
    rows = rows_of(page_of(written(answers)))
    queries = [row for row in rows if row.startswith("Is statement")][:4]
    assert queries[0].startswith("Is statement 1 true?n01")
    at = rows.index(queries[0])
    assert rows[at + 1 : at + 4] == [
        "claude none of the problems looked for 1 2",
        "gemini none of the problems looked for 1 2",
        "perplexity ⚠ Contradicts the sources: 2 of 2 · A claim without backing: 2 of 2 1 2",
    ]
    last = next(at for at, row in enumerate(rows) if row.startswith("Is statement 3 true"))
    assert rows[last + 3] == "gemini no answer was judged 0 0"


def test_of_many_narratives_the_worst_are_shown_and_the_others_on_a_click() -> None:
    page = page_of(written(campaign(("claude",), narratives=49)))
    folded = [text for _, text in page.all("details") if "Is statement" in text]
    assert [text.strip().splitlines()[0] for text in folded] == ["25 more narratives"]
    assert len(re.findall(r"Is statement \d+ true", folded[0])) == 25


def test_an_example_has_the_sentence_the_passage_beside_it_and_what_people_said() -> None:
    answers = campaign(narratives=5)
    folder = written(answers, note="330 Meter, nicht 500.")
    page = page_of(folder)
    (table,) = [text for _, text in page.all("table") if "In the answer of perplexity" in text and "Meter" in text][:1]
    assert "Er ist 500 Meter hoch [2]." in table
    assert "Der Turm ist 330 Meter hoch." in table
    assert "1889 gebaut" not in table
    told = [" ".join(text.split()) for _, text in page.all("li")]
    assert "2 of 2 people: “Contradicts the sources”." in told
    assert "One of them noted: “330 Meter, nicht 500.”" in told
    assert "Most people found this in 3 of 15 answers." in page.text
    assert "In none of 15 answers did most people find this." in page.text
    found = [each.record for each in answers]
    sources = [
        Source(n=n, url=f"https://{site}.example/a", host=site, state="read") for n, site in ((1, "one"), (2, "two"))
    ]
    chunks = [
        Passage(chunk_id=f"{n}#0", doc_id=str(n), chunk_rank=n, text=text, url=f"https://{site}.example/a")
        for n, text, site in zip((1, 2), PASSAGES, ("one", "two"), strict=True)
    ]
    lines = [
        QueryResponse(record_uuid=each, query="", answer=ANSWER, sources=tuple(sources), chunks=tuple(chunks))
        for each in found
    ]
    Path("records.jsonl").write_text("".join(each.model_dump_json() + "\n" for each in lines), encoding="utf-8")
    assert "In the passage from two.example" in page_of(folder, "--runs", "records.jsonl").text


def test_a_headline_title_and_asker_are_the_projects_and_no_other_composite_finding_is_there() -> None:
    folder = written(campaign(narratives=12))
    bare = page_of(folder)
    assert "Serious problem" not in bare.text
    settings = '[report]\ntitle = "Our check"\nasked_by = "A newsroom"\nheadline = "serious_problem"\nlanguage = "de"\n'
    Path("citejury.toml").write_text(settings, encoding="utf-8")
    page = page_of(folder)
    assert page.all("h1")[0][1] == "Our check"
    assert "Gefragt hat: A newsroom." in page.text
    assert page.all("li")[1][1].startswith("Schwerwiegendes Problem: 22 % von 36 Antworten")
    assert any(row.startswith("Schwerwiegendes Problem 22 %") for row in rows_of(page))
    assert page_of(folder, "--language", "en").all("html")[0][0]["lang"] == "en-GB"
    for told, said in (
        ('headline = "nothing"', "`headline` in `[report]` is 'nothing', which was not measured."),
        ('heading = "x"', "`heading` in `[report]` of `citejury.toml` cannot be used"),
        ('language = "fr"', "`language` in `[report]` of `citejury.toml` cannot be used"),
    ):
        Path("citejury.toml").write_text(f"[report]\n{told}\n", encoding="utf-8")
        result = run(folder, "--out", "other")
        assert result.exit_code == 1
        assert said in result.stderr
        assert not Path("other").exists()


def test_the_workbook_opens_with_what_the_page_opens_with_and_has_numbers_in_sheets_of_whole_words() -> None:
    page = page_of(written(campaign(narratives=24)), "--language", "de")
    book = {sheet.title: list(sheet.values) for sheet in load_workbook("out/report.xlsx")}
    assert len(book) == 8
    assert max(map(len, book)) <= 31
    assert {"Zusammenfassung", "Wo die Urteile auseinandergehen", "Was gefunden wurde, nach Modell"} <= book.keys()
    told = [text for (text,) in book["Zusammenfassung"]]
    assert told[0] == page.all("h1")[0][1]
    assert told[1].startswith("Ob alles fertig beurteilt war, ist nicht bekannt")
    assert told[2:] == [page.all("p")[0][1], *(text for _, text in page.all("li")[1:4])]
    head, *rows = book["Was gefunden wurde, nach Modell"]
    assert head[2:6] == ("alle", "alle: ab", "alle: bis", "alle: von")
    (row,) = [row for row in rows if row[1] == "Widerspricht den Quellen"]
    assert row[2] == pytest.approx(16 / 72)
    assert row[3] < row[2] < row[4]
    assert row[5] == 72


def test_it_says_why_a_model_has_no_judged_answers_and_counts_no_research_report_as_a_model() -> None:
    answers = campaign(narratives=4)
    own = answers[0]._replace(record="own", model="pipeline", narrative="own", query="A topic?")
    folder = written([*answers, own])
    for name in ("grounding", "provenance"):
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        gemini = {each.record for each in answers if each.model == "gemini"}
        if name == "grounding":
            rows = [row for row in rows if row["record_uuid"] not in gemini]
        else:
            rows = [row | {"n_sources": "2", "n_read": "0" if row["record_uuid"] in gemini else "2"} for row in rows]
        write_rows(folder / f"{name}.csv", rows)
    page = page_of(folder)
    (group,) = [row for row in rows_of(page) if row.startswith("Grounding") and "judged" in row]
    assert group.endswith("none judged of gemini, since no passage of what they cite was fetched")
    asked = "Asked: 3 models and citejury's own research report about 5 narratives (answers recorded: 3 February 2026)."
    assert asked in page.text
    assert "Asked on" not in page.text
    assert not any("no answer was judged" in row for row in rows_of(page))


def test_answers_are_weighted_only_where_their_probabilities_differ() -> None:
    answers = campaign(narratives=4)
    for chances, told in ((["1.0"], False), (["0.5"], False), (["0.5", "1.0"], True)):
        rows = [
            {"record_uuid": each.record, "inclusion_probability": chances[at % len(chances)]}
            for at, each in enumerate(answers)
        ]
        page = page_of(written(answers), "--sample", write_rows(Path("sample.csv"), rows))
        assert ("weighted" in page.text) is told
        assert ("weighted by inclusion" in Path("out/details.html").read_text(encoding="utf-8")) is told


def test_hostile_texts_are_text_in_every_part_of_it() -> None:
    texts = (*HOSTILE, BIDI.replace("\ud800", "").replace("\x00", ""))
    models = campaign(HOSTILE[:3], narratives=len(texts))
    answers = [
        each._replace(query=text) for each, text in zip(models, [t for t in texts for _ in range(3)], strict=True)
    ]
    folder = written(answers, answer=f"{HOSTILE[3]} {HOSTILE[4]} [1].", passages=HOSTILE[5:8], note=HOSTILE[0])
    page = page_of(folder)
    cells = [cell for sheet in load_workbook("out/report.xlsx") for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells if cell.value is not None} == {"s", "n"}
    assert not any(isinstance(cell.value, str) for cell in cells if cell.data_type == "n")
    assert HOSTILE[0] in {cell.value for cell in cells}
    calm = page_of(written(campaign(narratives=12), note="calm"))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in calm.tags}
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.tags for name in attributes)
    shown = " ".join(page.text.split())
    assert all(" ".join(text.split()) in shown for text in (*HOSTILE[:4], *HOSTILE[5:8]))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x07]", page.text)
