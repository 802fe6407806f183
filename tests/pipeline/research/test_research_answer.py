import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from annotation.argilla.labels import LABELS, broken_rules
from annotation.judge.judgements import FullJudgement
from annotation.push.record_sources import check_paths, read_source
from exports.cli import main
from exports.reading.judgements import read_judges
from pipeline.csv.file import read_answers
from pipeline.records.run import record_from_answer
from pipeline.records.schema import QueryResponse
from pipeline.research.artefacts import RunFolder
from pipeline.research.jury import VERIFIER, FinishedRun, write_for_jury
from pipeline.research.layout import CitationForm, LaidOut, lay_out
from pipeline.research.values import Intake, Plan, Verified, Written
from pipeline.sources.store import StoredPage, open_store
from pipeline.verifying.values import Checked, Claim, Page, Paragraph, Quote

BUTTER, ICE, WATER = "https://butter.example/a", "https://ice.example/", "https://water.example/#top"
PAGES = tuple(
    Page(url, title, site, "en", text, "2026-11-22T12:00:00+00:00")
    for url, title, site, text in [
        (BUTTER, "Butter [1]", "butter.example", "Butter keeps the heat in. " + "It is made of milk. " * 150 + "End."),
        (ICE, "Ice", "ice.example", "Ice can harm the skin. Butter is no help."),
        (WATER, "", "water.example", "Cool water for twenty minutes helps."),
    ]
)


def claim(number: int, page: Page, text: str, **verdict: object) -> Checked:
    start = page.text.index(text)
    quote = Quote(page.url, text, start, start + len(text))
    checked = Checked(Claim(f"c{number}", text, 0, (quote,)), "supported", 0.9)
    return checked._replace(**verdict)  # type: ignore[arg-type]


HEAT = claim(1, PAGES[0], "Butter keeps the heat in.")
SKIN = claim(2, PAGES[1], "Ice can harm the skin.", score=0.6)
END = claim(3, PAGES[0], "End.", verdict="not_found")


@dataclass
class Run:
    """A finished run in its folder, and what came of it for the jury."""

    folder: RunFolder
    laid_out: LaidOut
    record: QueryResponse


def make_run(runs_dir: Path, form: CitationForm = "c", claims: tuple[Checked, ...] = (HEAT, SKIN, END)) -> Run:
    intake = Intake("What helps a burn?", "What helps a burn?", "en", "brief")
    paragraphs = (
        Paragraph(0, "Ice can harm the skin.", ("c2",), (ICE,)),
        Paragraph(0, "Butter keeps the heat in; see [7].", ("c1",), (BUTTER, ICE)),
    )
    written = Written("What helps a burn?", paragraphs, (END,))
    plan = Plan(("What helps?",), ("burn",))
    laid_out = lay_out(intake, plan, Verified(claims, 1.0), written, PAGES, form=form)
    folder = RunFolder(runs_dir / "burn_1")
    run = FinishedRun(
        "burn_1", "brief", "extractive", "2026-11-22T12:00:00+00:00", laid_out.report, laid_out.markdown, claims, PAGES
    )
    return Run(folder, laid_out, write_for_jury(folder, run))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path)


def test_its_csv_is_csv_v2_and_names_run_model_depth_and_sources(run: Run, tmp_path: Path) -> None:
    file = run.folder.path / "pipeline.csv"
    checked = CliRunner().invoke(main, ["pipeline", "check", str(file)])
    assert checked.exit_code == 0, checked.output
    (answer,) = read_answers(file)
    assert (answer.narrative_id, answer.model_name, answer.model_version) == ("burn_1", "pipeline", "extractive@brief")
    assert (answer.citations, answer.domains) == ((ICE, BUTTER), ("ice.example", "butter.example"))
    assert json.loads(answer.answer_raw_json)["reportJson"]["references"][1]["title"] == "Butter [1]"
    assert answer.answer_text == run.laid_out.report.sections[0]
    edited = answer.model_copy(update={"answer_text": "One (C001, C009). Two (C002)."})
    assert record_from_answer(edited).answer == "One (C001, C009). Two [2].\n\n[1]", "an id without source stays"
    assert list(read_source(run.folder.path, [])) == [run.record]
    assert check_paths([run.folder.path]).without_passages == frozenset()
    assert record_from_answer(answer).record_uuid == run.record.record_uuid == answer.answer_id
    again = make_run(tmp_path / "again").folder.path
    for name in ("pipeline.csv", "records.jsonl", "judgements.jsonl"):
        assert (run.folder.path / name).read_bytes() == (again / name).read_bytes()


@pytest.mark.parametrize("form", ["c", "n"])
def test_its_record_shows_citations_in_the_one_form_and_no_back_matter(tmp_path: Path, form: CitationForm) -> None:
    record = make_run(tmp_path, form).record
    assert record.query == "What helps a burn?"
    assert record.answer.endswith("Ice can harm the skin. [1]\n\nButter keeps the heat in; see \\[\u20607\\]. [1][2]")
    assert "C001" not in record.answer
    assert [(source.n, source.url, source.title, source.state) for source in record.sources] == [
        (1, ICE, "Ice", "read"),
        (2, BUTTER, "Butter [1]", "read"),
    ]


def test_its_passages_are_those_of_the_quotes_and_the_verifier_judges_what_it_can_know(run: Run) -> None:
    assert {chunk.url for chunk in run.record.chunks} == {ICE, BUTTER}
    assert {chunk.origin for chunk in run.record.chunks} == {"page"}
    texts = [chunk.text for chunk in run.record.chunks]
    assert any("Butter keeps the heat in." in text for text in texts)
    assert not any("End." in text for text in texts), "the quote of a claim that was left out"
    assert run.record.context_set == " [CTX_SEP] ".join(texts)
    assert [chunk.chunk_rank for chunk in run.record.chunks] == [1, 2]
    assert verifier_labels(run) == {
        "support_present": (True, 0.95),
        "unsupported_claim_present": (False, 0.2),
        "contradicted_claim_present": (False, 0.0),
        "source_cited": (True, 1.0),
        "fabricated_source": (False, 0.0),
    }
    judges = read_judges([run.folder.path / "judgements.jsonl"]).judges
    assert set(judges) == {VERIFIER}
    assert set(judges[VERIFIER]["grounding"].labels) == {(run.record.record_uuid, "")}


def test_the_jury_sees_both_sides_of_what_pages_disagree_about(tmp_path: Path) -> None:
    disputed = END._replace(verdict="supported", against=(Quote(ICE, "Butter is no help.", 23, 41),))
    record = make_run(tmp_path, claims=(HEAT, SKIN, disputed)).record
    assert any("End." in chunk.text for chunk in record.chunks)
    assert any("Butter is no help." in chunk.text for chunk in record.chunks)


def test_sources_takes_the_folder_with_the_store_beside_it(run: Run, tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        for page in PAGES:
            blank = StoredPage(page.url, page.url, *[""] * 7, b"", "", 200, "page", "")  # type: ignore[arg-type]
            store.put_page(blank._replace(text=page.text, title=page.title, lang="en", ts=page.fetched_at))
    out = tmp_path / "records.jsonl"
    words = ["pipeline", "sources", str(run.folder.path), "--out", str(out), "--offline"]
    made = CliRunner().invoke(main, words)
    assert made.exit_code == 0, made.output
    (record,) = read_source(out, [])
    assert (record.record_uuid, record.answer) == (run.record.record_uuid, run.record.answer)
    assert {source.state for source in record.sources} == {"read"}
    assert {chunk.url for chunk in record.chunks} == {ICE, BUTTER}


def verifier_labels(run: Run) -> dict[str, tuple[bool, float]]:
    judgement = FullJudgement.model_validate_json((run.folder.path / "judgements.jsonl").read_bytes())
    assert judgement.record_uuid == run.record.record_uuid
    return {name: (label.value, label.p_yes) for name, label in judgement.labels.items()}


@pytest.mark.parametrize(
    ("heat", "contradicted"),
    [
        (HEAT._replace(verdict="contradicted"), True),
        (HEAT._replace(against=(Quote(ICE, "Butter is no help.", 23, 41),)), True),
        (HEAT._replace(against=(Quote(WATER, "Cool water", 0, 10),)), False),
    ],
    ids=["verdict", "conflict on a cited page", "conflict on a page that the jury does not see"],
)
def test_a_contradicted_claim_is_said_to_be_unsupported_too(tmp_path: Path, heat: Checked, contradicted: bool) -> None:
    labels = verifier_labels(make_run(tmp_path, claims=(heat, SKIN, END)))
    values = {name: value for name, (value, _) in labels.items()}
    assert (values["contradicted_claim_present"], values["unsupported_claim_present"]) == (contradicted, contradicted)
    assert (set(values), broken_rules("grounding", values)) == (set(LABELS["grounding"]), ())


@pytest.mark.parametrize(
    ("verdicts", "proposed"),
    [
        (("supported", "cannot_tell"), {"support_present": True}),
        (("cannot_tell", "cannot_tell"), {}),
        (("not_found", "cannot_tell"), {"unsupported_claim_present": True}),
        (
            ("contradicted", "cannot_tell"),
            {"unsupported_claim_present": True, "contradicted_claim_present": True},
        ),
        (
            ("not_found", "not_found"),
            {"support_present": False, "unsupported_claim_present": True, "contradicted_claim_present": False},
        ),
    ],
)
def test_a_claim_that_nobody_can_tell_of_is_evidence_neither_way(
    tmp_path: Path, verdicts: tuple[str, str], proposed: dict[str, bool]
) -> None:
    heat, skin = (each._replace(verdict=verdict) for each, verdict in zip((HEAT, SKIN), verdicts, strict=True))
    labels = verifier_labels(make_run(tmp_path, claims=(heat, skin, END)))
    about_the_text = {"source_cited": True, "fabricated_source": False}
    assert {name: value for name, (value, _) in labels.items()} == proposed | about_the_text
