"""`exports feedback`: each annotator's own differences in her language, without names, controls and practice."""

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from exports.csv.schema import COLUMNS, CONTROL_COLUMNS
from exports.reading.read import read_tables
from exports.report.feedback import compare

PEOPLE = ("anna", "ben", "cora", "Jörg Müller")
LABELS = ("topically_relevant", "evidence_sufficient", "misleading")


def export(folder: Path, votes: dict[str, str], language: str = "de", extra: str = "") -> Path:
    """An export of retrieval whose people said these answers (y, n, space for none) to units 1, 2 … on one label."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "retrieval.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS["retrieval"])
        writer.writeheader()
        for name, said in votes.items():
            for number, vote in enumerate(said, start=1):
                if vote == " ":
                    continue
                row = dict.fromkeys(COLUMNS["retrieval"], "") | dict.fromkeys(LABELS, "False")
                row |= {"input_query": f"Frage {number} {extra}", "chunk": f"Stelle {number}", "doc_id": "d"}
                row |= {"chunk_id": f"c{number}", "chunk_rank": "1", "topically_relevant": str(vote == "y")}
                row |= {"record_uuid": f"r{number}", "annotator_id": name, "task": "retrieval", "language": language}
                writer.writerow(row | {"created_at": "2026-11-23T10:00:00+00:00"})
    return folder


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["exports", "feedback", *arguments])
    return result.exit_code, result.output


def page_of(folder: Path, who: str, source: Path) -> str:
    assert run(str(folder / "out"), "--from", str(source))[0] == 0
    return (folder / "out" / f"feedback-{who}.html").read_text(encoding="utf-8")


def write_controls(source: Path, record: str) -> None:
    with (source / "controls.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, CONTROL_COLUMNS)
        writer.writeheader()
        writer.writerow(dict.fromkeys(CONTROL_COLUMNS, "") | {"record_uuid": record, "chunk_id": "c1"})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Anna differs from two others on both units."""
    return export(tmp_path / "export", {"anna": "yy", "ben": "nn", "cora": "nn"})


def test_an_answer_differs_from_a_decision_or_most_others_never_from_a_tie_or_one_person(tmp_path: Path) -> None:
    votes = {"anna": "yyyy", "ben": "nnn ", "cora": "ny  ", "Jörg Müller": "nn n"}
    found = compare(read_tables([export(tmp_path, votes) / "retrieval.csv"]).tables, {}, 2)
    (relevant, *_) = found.by_annotator["anna"]
    # Unit 1: three others said no. Unit 2: two no, one yes. Units 3 and 4: one other.
    assert (relevant.label, relevant.compared) == ("topically_relevant", 2)
    assert [(each.record_uuid, each.others, each.agreed) for each in relevant.differences] == [
        ("r1", 3, 3),
        ("r2", 3, 2),
    ]
    # ben at unit 2: anna and cora said yes, Jörg no, so most said yes.
    (bens, *_) = found.by_annotator["ben"]
    assert [each.record_uuid for each in bens.differences] == ["r2"]
    assert found.too_few == 4  # two people each at units 3 and 4
    everybody = compare(read_tables([tmp_path / "retrieval.csv"]).tables, {}, 1)
    assert (everybody.too_few, everybody.by_annotator["anna"][0].compared) == (0, 4)
    tables = read_tables([export(tmp_path, {"anna": "y", "ben": "n", "cora": "n"}) / "retrieval.csv"]).tables
    found = compare(tables, {("r1", "c1", "topically_relevant"): True}, 2)
    assert found.by_annotator["anna"][0].differences == ()
    assert [each.decided for each in found.by_annotator["ben"][0].differences] == [True]


def test_each_page_has_her_own_differences_in_her_language_and_nobodys_name(tmp_path: Path) -> None:
    votes = dict(zip(PEOPLE, ("yn", "nn", "nn", "ny"), strict=True))
    source = export(tmp_path / "export", votes, extra="<script>alert(1)</script> {answer} \x1b[31m")
    code, said = run(str(tmp_path / "out"), "--from", str(source))
    assert (code, "Next: read a page yourself" in said) == (0, True)
    pages = {path.stem.removeprefix("feedback-"): path.read_text("utf-8") for path in (tmp_path / "out").iterdir()}
    page = pages["anna"]
    for there in (
        *("Ihre Antworten neben denen der anderen", "Frage 1", "Ihre Antwort: Ja"),
        *("Die meisten der 3 anderen: Nein", "1 von 2 Antworten weichen ab"),
    ):
        assert there in page
    assert not any(secret in page for secret in ("Frage 2", "<script>", "\x1b"))
    assert not any(re.search(rf"\b{name}\b", page) for name in PEOPLE)
    assert "Frage 2" in pages["Jörg-Müller"]
    assert "Überall, wo es sich vergleichen ließ" in pages["ben"]


def test_her_language_is_that_of_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = export(tmp_path / "export", {"anna": "y", "ben": "n", "cora": "n"})
    people = '[{ name = "anna", locales = ["ja"] }, { name = "ben" }]'
    (tmp_path / "citejury.toml").write_text(f'[campaign]\nlocales = ["en", "ja"]\nannotators = {people}\n')
    monkeypatch.chdir(tmp_path)
    assert run("out", "--from", str(source))[0] == 0
    texts = {name: (tmp_path / "out" / f"feedback-{name}.html").read_text("utf-8") for name in ("anna", "ben", "cora")}
    assert "あなたの答え：はい" in texts["anna"]
    assert '<html lang="en">' in texts["ben"]
    assert '<html lang="de">' in texts["cora"]


def test_controls_are_in_no_page_and_unreadable_ones_end_it_in_a_sentence(tmp_path: Path, source: Path) -> None:
    write_controls(source, "r1")
    page = page_of(tmp_path, "anna", source)
    assert ("Frage 1" in page, "Frage 2" in page) == (False, True)
    table = (source / "retrieval.csv").read_text("utf-8").replace("r1", "'=r1").replace("r2", "'=r2")
    (source / "retrieval.csv").write_text(table, "utf-8")  # ids that a spreadsheet would run
    write_controls(source, "'=r1")
    assert page_of(tmp_path, "anna", source) == page
    for written, said in (
        (b"record_uuid,kind\nr1,planted\n", "needs the column"),
        (b"record_uuid\xff\n", "is not UTF-8"),
        (",".join(CONTROL_COLUMNS).encode() + b"\nr1\n", "found 1 cells, the header has"),
    ):
        (source / "controls.csv").write_bytes(written)
        code, told = run(str(tmp_path / "out"), "--from", str(source))
        assert (code, said in told, "Traceback" in told) == (1, True, False)


def test_practice_is_in_no_page_and_where_it_cannot_be_told_that_is_said(tmp_path: Path, source: Path) -> None:
    datasets = [{"task": "retrieval", "round": each} for each in ("practice", "production")]
    (source / "manifest.json").write_text(json.dumps({"citejury": "0.1.0", "datasets": datasets, "files": []}))
    code, said = run(str(tmp_path / "out"), "--from", str(source))
    assert (code, "has answers to practice cases" in said) == (1, True)
    with (source / "retrieval.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with (source / "retrieval.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [*COLUMNS["retrieval"], "round"])
        writer.writeheader()
        writer.writerows({**row, "round": "practice" if row["chunk_id"] == "c1" else "production"} for row in rows)
    page = page_of(tmp_path, "anna", source)
    assert ("Frage 1" in page, "Frage 2" in page) == (False, True)


def test_what_too_few_answered_is_counted_and_pages_no_longer_wanted_go(tmp_path: Path) -> None:
    source = export(tmp_path / "export", {"anna": "yy", "ben": "nn", "cora": "n ", "dora": "  "})
    code, said = run(str(tmp_path / "some"), "--from", str(source))
    assert (code, "Left out: 2 answers that differ from those of fewer than 2 others." in said) == (0, True)
    code, said = run(str(tmp_path / "out"), "--from", str(export(tmp_path / "two", {"anna": "y", "ben": "n"})))
    assert (code, "no unit has a decision or the answers of 3 people" in said) == (1, True)
    assert not (tmp_path / "out").exists()
    out = tmp_path / "out"
    assert run(str(out), "--from", str(export(tmp_path / "1", dict.fromkeys(PEOPLE, "y"))))[0] == 0
    (out / "feedback-of-a-film.html").write_text("Great.", encoding="utf-8")
    assert run(str(out), "--from", str(export(tmp_path / "2", dict.fromkeys(PEOPLE[:3], "y"))))[0] == 0
    names = {path.name for path in out.iterdir()}
    assert names == {"feedback-anna.html", "feedback-ben.html", "feedback-cora.html", "feedback-of-a-film.html"}
