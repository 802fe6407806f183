import json
import shutil
from pathlib import Path

import pytest

from pipeline.core.errors import InputError
from pipeline.research.artefacts import RunFolder, json_schemas
from pipeline.research.audit import audit_run
from pipeline.research.journal import JOURNAL
from tests.support.research_process import FACTS, Servers, options_in, run_here


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
