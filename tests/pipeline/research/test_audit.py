import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.core.errors import InputError
from pipeline.research.artefacts import CitationEntry, ParagraphLine, RunFolder, VerifyResult
from pipeline.research.audit import Audit, audit, audit_run, verify_result
from pipeline.research.contracts import Citation, Reference, Report
from pipeline.research.journal import JOURNAL
from tests.support.places import DATA, NO_SHARED, SHARED
from tests.support.research_process import FACTS, Servers, options_in, run_here
from tests.support.research_schemas import json_schemas

REPORTS = SHARED / "corpora" / "reports" / "open_deep_research_gpt-4.1.jsonl"
REPORT = (DATA / "research" / "bees.md").read_text(encoding="utf-8")


def entries(*urls: str) -> list[CitationEntry]:
    return [
        CitationEntry(
            cid=f"C{number:03d}",
            url=url,
            title="T",
            locator=url,
            fetched_at=datetime(2026, 11, 22, tzinfo=UTC),
            quote_hash=None,
            local_path=None,
        )
        for number, url in enumerate(urls, start=1)
    ]


CITATIONS = entries("https://a.example/1", "https://b.example/2", "https://c.example/3")
PARAGRAPHS = [ParagraphLine(text="Bees make honey from nectar.", cite_ids=("C001",))]


def audited(report: str, citations: Sequence[CitationEntry] = CITATIONS) -> Audit:
    return audit(report, PARAGRAPHS, citations)


def test_a_good_report_passes_and_ids_without_source_or_references_out_of_order_fail() -> None:
    found = audited(REPORT)
    assert found.passed, found.problems
    assert (found.total_paragraphs, found.citations_found) == (4, 3)
    numbers = REPORT.replace("(C001, C002)", "[1, 2]").replace("(C001)", "[1]").replace("(C003)", "【3】")
    assert audited(numbers.replace("（C002）", "[2].")).passed
    found = audit("# Bees\n\n## References\n\n### What was left out\n\n- Nothing.\n", (), ())
    assert (found.total_paragraphs, found.passed) == (0, False)
    found = audited(REPORT.replace("## Honey", "## Energy sources\n\nOf which nobody says anything."))
    assert len(found.uncited) == 1
    assert "nobody" in found.uncited[0]
    found = audited(REPORT.replace("(C003)", "(C003, C999)"))
    assert found.fabricated == ("C999",)
    assert not found.passed
    assert audit(REPORT, [ParagraphLine(text="x", cite_ids=("C004",))], CITATIONS).fabricated == ("C004",)
    swapped = REPORT.replace("nectar (C001)", "nectar (C002)")
    assert "C002 first where C001 is due" in audited(swapped).disorder[0]
    assert "has C003 where C002 is due" in audited(REPORT, [CITATIONS[0], CITATIONS[2], CITATIONS[1]]).disorder[0]
    found = audited(REPORT.replace("https://b.example/2", "https://evil.example/2"))
    assert "evil.example" in found.disorder[0]


@pytest.mark.parametrize(
    ("paragraph", "cites"),
    [
        *((text, True) for text in ("Ends (C001)", "Ends (C001).", "以上（C001）。", "**Bold (C001)**")),
        *((text, True) for text in ("Ends (C001, C002) ", "Ends [1][2].")),
        *((text, False) for text in ("No citation.", "Cited (C001) and then not.", "- one (C001)\n- two", "> quoted")),
        *((text, False) for text in ("Seen in `(C001)`", "(c001)", "**A bold sentence that says something.**")),
        *((text, False) for text in ("[site](https://a.example/1)", "<p>raw</p>", "x (C01)", "x [2024]")),
    ],
)
def test_a_paragraph_without_a_citation_at_its_end_fails(paragraph: str, cites: bool) -> None:
    found = audited(f"Bees (C001).\n\n{paragraph}\n")
    assert len(found.uncited) == int(not cites)
    assert cites or (found.total_paragraphs, found.passed) == (2, False)


def test_a_run_is_audited_again_from_its_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no `final/report.md`"):
        audit_run(RunFolder(tmp_path / "run"))
    folder = written_run(tmp_path / "run")
    assert audit_run(folder).passed
    counted = verify_result(audit_run(folder), folder.read_verify())
    assert counted == VERIFIED.model_copy(update={"stage": "audit", "total_paragraphs": 4, "citations_found": 3})
    folder.paragraphs_file.write_text('{"text": "x", "cite_ids": []}\n', encoding="utf-8")
    found = audit_run(folder)
    assert not found.passed
    assert "line 1" in found.paragraph_lines[0]
    assert not verify_result(found, None).paragraphs_jsonl_cite_ids_passed


def test_a_report_whose_data_do_not_belong_together_fails_the_audit(tmp_path: Path) -> None:
    folder = written_run(tmp_path / "run")
    folder.write_report(REPORT, report_data("a (C001)", "b (C002, C001)"))
    assert audit_run(folder).passed
    for broken, problem in {
        report_data("a [2]", "b [1]"): "cite 2, 1 where 1 to 2 are due",
        report_data("a [1]"): "cite 1 where 1 to 2 are due",
        report_data("a [1, 2]", urls=("https://a.example/", "https://c.example/")): "cites 'https://c.example/'",
        report_data("a [1, 2]", urls=()): "no URL for the claim c1",
        report_data("a [1, 2]", claims=("c1", "c1")): "the claim c1 2 times",
    }.items():
        folder.write_report(REPORT, broken)
        (found,) = audit_run(folder).problems
        assert problem in found
        assert not audit_run(folder).passed


def report_data(
    *sections: str, urls: tuple[str, ...] = ("https://a.example/",), claims: tuple[str, ...] = ("c1",)
) -> Report:
    return Report(
        topic="x",
        outline=("one",) * len(sections),
        sections=sections,
        citations=tuple(Citation(claim_id=claim, urls=urls) for claim in claims),
        references=(Reference(n=1, url="https://a.example/"), Reference(n=2, url="https://b.example/")),
    )


VERIFIED = VerifyResult(
    stage="verify",
    status="completed",
    verified_claims_count=7,
    single_source_claims_count=1,
    conflicts_count=2,
    total_paragraphs=3,
    paragraph_without_citation_count=0,
    paragraph_end_citation_passed=True,
    paragraphs_jsonl_cite_ids_passed=True,
    citations_found=0,
    passed=True,
)


def written_run(path: Path) -> RunFolder:
    folder = RunFolder(path)
    folder.report_file.parent.mkdir(parents=True)
    folder.report_file.write_text(REPORT, encoding="utf-8")
    folder.write_paragraphs(PARAGRAPHS)
    folder.write_citations(CITATIONS)
    folder.write_verify(VERIFIED)
    return folder


@pytest.mark.skipif(not REPORTS.is_file(), reason=NO_SHARED)
def test_real_reports_show_why_the_writer_has_to_make_the_rule_hold() -> None:
    """Models end fewer than half of the blocks in a citation, whatever they are told.

    Source: pipeline/contracts/research.md#audit.
    """
    reports = [json.loads(line)["article"] for line in REPORTS.read_text(encoding="utf-8").splitlines()[::5]]
    found = [audit(report, PARAGRAPHS, CITATIONS) for report in reports]
    blocks = sum(each.total_paragraphs for each in found)
    assert blocks > 300
    assert not any(each.passed for each in found)
    assert 0.2 < 1 - sum(len(each.uncited) for each in found) / blocks < 0.7


@pytest.fixture(scope="module")
def finished(running: Servers, read_pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of runs with a finished one."""
    runs_dir = tmp_path_factory.mktemp("finished")
    shutil.copy(read_pages, runs_dir)
    run_here(options_in(runs_dir, running), running)
    return runs_dir


@pytest.fixture
def runs_dir(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "runs"))


def test_every_claim_stands_in_its_file_and_a_run_without_it_is_resumed(runs_dir: Path, servers: Servers) -> None:
    folder = RunFolder(runs_dir / "pumps")
    listed = json.loads((folder.path / "evidence" / "claims.json").read_bytes())
    assert [set(claim) for claim in listed] == [{"id", "text", "type", "confidence"}] * 6
    assert {claim["text"] for claim in listed} == {fact for _, *facts in FACTS.values() for fact in facts}
    claims, report = folder.read_claims(), folder.read_report()
    assert claims is not None
    assert report is not None
    assert [claim.id for claim in claims] == [f"c{number}" for number in range(1, 7)]
    assert {citation.claim_id for citation in report.citations} <= {claim.id for claim in claims}
    assert json_schemas()["claims.json.schema.json"]["items"]["$ref"].endswith("Claim")
    """As runs are that were made before there was such a file."""
    folder = RunFolder(runs_dir / "pumps")
    (folder.path / "evidence" / "claims.json").unlink()
    (folder.path / "logs" / "config.json").unlink()
    assert folder.read_claims() is None
    assert audit_run(folder).passed
    assert run_here(options_in(runs_dir, servers), servers).passed


@pytest.mark.parametrize(("change", "problem"), [("lost", "c1 0 times"), ("doubled", "c1 2 times")])
def test_claims_that_the_file_does_not_have_once_fail_the_audit(runs_dir: Path, change: str, problem: str) -> None:
    folder = RunFolder(runs_dir / "pumps")
    claims = folder.read_claims() or ()
    folder.write_claims(claims[1:] if change == "lost" else (*claims, claims[0]))
    (found,) = audit_run(folder).problems
    assert problem in found


def test_a_report_on_quotes_that_no_page_has_is_not_written(servers: Servers, runs_dir: Path) -> None:
    """Somebody has changed what the run read, and all after the check of its claims is to be done."""
    without_what_followed(runs_dir / "pumps", "evaporating a refrigerant", "condensing a refrigerant")
    with pytest.raises(InputError, match=r"not written\. A quote of claim c\d does not stand on 'http"):
        run_here(options_in(runs_dir, servers), servers)
    assert not (runs_dir / "pumps" / "final" / "report.md").exists()
    last = RunFolder(runs_dir / "pumps").read_log()[-1]
    assert (last.stage, last.status) == ("write", "failed")
    assert "does not stand on" in (last.details.error or "")


def without_what_followed(folder: Path, words: str, others: str) -> None:
    """The run as if it had been killed before it wrote, with other words in the page that it has read."""
    lines = (folder / JOURNAL).read_text(encoding="utf-8").splitlines(keepends=True)
    entries = [json.loads(line) for line in lines]
    kept = []
    for line, entry in zip(lines, entries, strict=True):
        if entry["entry"] == "stage" and entry["stage"] in ("write", "audit", "cache"):
            continue
        kept.append(line.replace(words, others) if entry.get("stage") == "fetch" else line)
    assert kept != lines
    (folder / JOURNAL).write_text("".join(kept), encoding="utf-8")
    log = folder / "logs" / "pipeline.jsonl"
    past = [line for line in log.read_text(encoding="utf-8").splitlines(keepends=True) if '"write"' not in line]
    log.write_text("".join(line for line in past if '"audit"' not in line and '"cache"' not in line), encoding="utf-8")
    shutil.rmtree(folder / "final")
    (folder / "final").mkdir()
