"""An export over an earlier one: what came, changed and went by annotator, and when it asks; units answered twice."""

import json
import os
import pty
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.server.launch import ServerHandle
from exports.cli.csv import csv_command
from exports.csv.compare import Changes
from exports.csv.folder import INDEX_FILE, MANIFEST_FILE, PROVENANCE_FILE
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from exports.report.files import FigureOptions, measure_and_write
from exports.report.methods import agreement_methods, results_methods
from tests.support.export_bench import (
    Bench,
    answered_by,
    answers,
    full_bench,
    generation_bench,
    make_dataset,
    make_user,
    manifest_of,
    pairs,
    read_csv,
    record,
    username,
)

pytestmark = pytest.mark.server


def changes(bench: Bench, out: Path, *workspaces: str, **wanted: object) -> Changes:
    names = workspaces or (bench.workspace,)
    found = export_csv(bench.client, names, out, ExportFilters.model_validate(wanted)).changes
    assert found is not None
    return found


def run(bench: Bench, monkeypatch: pytest.MonkeyPatch, out: Path, *words: str) -> Result:
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    place = ["--workspace", bench.workspace, "--api-url", bench.server.url]
    return CliRunner().invoke(csv_command, [str(out), *place, *words])


def left(bench: Bench) -> Bench:
    """The bench with a third annotator, who answers three records and whose account is deleted."""
    return bench._replace(annotators={**bench.annotators, "lea": make_user(bench.client, "lea")["id"]})


def old_form(out: Path) -> None:
    """Leave what an earlier version wrote."""
    (out / INDEX_FILE).unlink()
    (out / PROVENANCE_FILE).unlink()


@pytest.mark.parametrize("earlier_version", [False, pytest.param(True, marks=pytest.mark.rare)])
def test_rows_came_changed_went_by_annotator(generation: Bench, tmp_path: Path, earlier_version: bool) -> None:
    bench, out = left(generation), tmp_path / "out"
    for n in range(4):
        answered_by(bench, "anna", "ben", record_uuid=f"r{n}")
    answered_by(bench, "lea", record_uuid="r0")
    export_csv(bench.client, bench.workspace, out)
    if earlier_version:
        old_form(out)
    ((_, stored),) = bench.client.record_pages(bench.datasets["generation"])
    ids = {each["external_id"]: each["id"] for each in stored}
    bench.put("generation", record("generation", "r1", bench.response("anna", **answers("generation", helpful="yes"))))
    bench.put("generation", record("generation", "r2", bench.response("anna", "draft", helpful="yes")))
    path = f"/datasets/{bench.datasets['generation']}/records"
    bench.client.request("DELETE", path, params={"ids": ids["r3"]})
    answered_by(bench, "ben", record_uuid="r4")
    lea = username(bench, "lea")
    bench.client.request("DELETE", f"/users/{bench.annotators['lea']}")
    found = changes(bench, out)
    anna, ben = username(bench, "anna"), username(bench, "ben")
    assert found.by_annotator == {
        anna: {"changed": 1, "withdrawn": 1, "gone": 1},
        ben: {"added": 1, "gone": 1},
        lea: {"gone": 1},
    }
    assert found.gone() == f"all 1 row of {lea}, 1 of 4 rows of {anna}, 1 of 4 rows of {ben}"
    assert changes(bench, out).by_annotator == {}


def test_nobodys_rows_vanish_unasked(generation: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, out = left(generation), tmp_path / "out"
    answered_by(bench, "lea", "anna")
    assert run(bench, monkeypatch, out).exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    lea = username(bench, "lea")
    bench.client.request("DELETE", f"/users/{bench.annotators['lea']}")
    for words in ((), ("--extended",)):
        refused = run(bench, monkeypatch, out, *words)
        assert refused.exit_code == 1
        assert f"gone from the server: all 1 row of {lea}" in refused.output + str(refused.exception)
        assert "`--yes`" in refused.output + str(refused.exception)
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    done = run(bench, monkeypatch, out, "--yes")
    assert done.exit_code == 0, done.output
    assert [lea, "0", "0", "1"] in [line.split() for line in done.stderr.splitlines()]
    assert [row["annotator_id"] for row in read_csv(out / "generation.csv")] == [username(bench, "anna")]


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminals on Windows")
@pytest.mark.parametrize(("typed", "code"), [(b"n\n", 1), pytest.param(b"y\n", 0, marks=pytest.mark.rare)])
def test_at_a_terminal_the_person_decides(generation: Bench, tmp_path: Path, typed: bytes, code: int) -> None:
    bench, out = left(generation), tmp_path / "out"
    answered_by(bench, "lea", "anna")
    export_csv(bench.client, bench.workspace, out)
    before = (out / "generation.csv").read_bytes()
    bench.client.request("DELETE", f"/users/{bench.annotators['lea']}")
    command = [sys.executable, "-c", "from exports.cli import main; main()", "exports", "csv", str(out)]
    words = ["--workspace", bench.workspace, "--api-url", bench.server.url]
    terminal, end = pty.openpty()
    environment = {**os.environ, "ARGILLA_API_KEY": bench.server.owner_api_key}
    with subprocess.Popen([*command, *words], stdin=end, stderr=subprocess.PIPE, env=environment) as export:
        os.write(terminal, typed)
        _, said = export.communicate(timeout=120)
    os.close(terminal)
    os.close(end)
    assert b"May their rows vanish from" in said
    assert export.returncode == code, said
    assert ((out / "generation.csv").read_bytes() == before) == (code == 1)


def test_rows_that_other_options_leave_out_are_told_and_not_asked_about(
    argilla_server: ServerHandle, client: Argilla, users: dict[str, str], tmp_path: Path
) -> None:
    bench, out = full_bench(argilla_server, client, users), tmp_path / "out"
    for n, language in ((1, "en"), (2, "de")):
        for task in ("grounding", "generation"):
            people = [bench.response(who, **answers(task)) for who in ("anna", "ben")]
            bench.put(task, record(task, f"r{n}", *people, language=language))
    anna, ben = username(bench, "anna"), username(bench, "ben")
    narrower: list[dict[str, object]] = [{"tasks": ["grounding"]}, {"languages": ["de"]}, {"annotators": [ben]}]
    for wanted, earlier_version in product(narrower, (False, True)):
        export_csv(bench.client, bench.workspace, out)
        if earlier_version:
            old_form(out)
        found = changes(bench, out, **wanted)
        assert found.total("gone") == found.total("added") == found.total("changed") == 0, wanted
        assert found.by_annotator[anna] == {"left out": 4 if wanted == {"annotators": [ben]} else 2}
    assert changes(bench, out).total("added") == 4


def test_rounds_stand_side_by_side_and_one_left_out_is_not_gone(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna")
    trial = make_dataset(generation.client, generation.workspace_id, "generation", "calibration")
    answered_by(generation._replace(datasets={"generation": trial}), "anna")
    out = tmp_path / "out"
    export_csv(generation.client, generation.workspace, out, ExportFilters(extended=True))
    assert {row["round"] for row in read_csv(out / "generation.csv")} == {"calibration", "production"}
    found = changes(generation, out, anonymized=True)
    assert (found.total("changed"), found.total("gone"), found.total("added")) == (1, 0, 0), "pseudonyms for names"
    export_csv(generation.client, generation.workspace, out)
    answered_by(generation._replace(datasets={"generation": trial}), "anna", record_uuid="r2")
    assert changes(generation, out).total("added") == 1
    found = changes(generation, out, rounds=("production",))
    assert (found.total("left out"), found.total("gone"), len(read_csv(out / "generation.csv"))) == (1, 0, 1)
    assert changes(generation, out).total("added") == 1
    generation.client.request("DELETE", f"/datasets/{trial}")
    assert changes(generation, out).total("gone") == 1


def test_a_unit_that_somebody_answered_in_two_workspaces_is_their_newest_answer(
    argilla_server: ServerHandle, users: dict[str, str], generation: Bench, tmp_path: Path
) -> None:
    other = generation_bench(argilla_server, generation.client, users)
    for bench, said in ((generation, "yes"), (other, "no")):
        first = bench.response("anna", **answers("generation", helpful=said))
        bench.put("generation", record("generation", "r1", first))
        answered_by(bench, "anna", record_uuid="r2")
    answered_by(generation, "ben")
    out = tmp_path / "out"
    export = export_csv(generation.client, (generation.workspace, other.workspace), out)
    rows = read_csv(out / "generation.csv")
    anna, ben = username(generation, "anna"), username(generation, "ben")
    assert (pairs(rows), rows[0]["helpful"]) == ([("r1", anna), ("r1", ben), ("r2", anna)], "False")
    counted = {each["workspace"]: (each["doubled"], each["doubled_differing"]) for each in manifest_of(out)["datasets"]}
    assert counted == {generation.workspace: (2, 1), other.workspace: (0, 0)}
    assert any("2 responses are left out" in warning and "1 of them" in warning for warning in export.warnings)
    every = ExportFilters(every_response=True)
    export_csv(generation.client, (generation.workspace, other.workspace), tmp_path / "both", every)
    wanted = [("r1", anna), ("r1", anna), ("r1", ben), ("r2", anna), ("r2", anna)]
    assert pairs(read_csv(tmp_path / "both" / "generation.csv")) == wanted


def test_a_nul_that_would_end_a_cell_is_replaced_and_counted(generation: Bench, tmp_path: Path) -> None:
    told = generation.response("anna", **answers("generation"), notes="before \0 after")
    said = generation.response("ben", **answers("generation"))
    shown = record("generation", "r2", said)
    shown["fields"] |= {"answer": "An \0 answer"}
    generation.put("generation", record("generation", "r1", told), shown)
    out = tmp_path / "out"
    export = export_csv(generation.client, (generation.workspace,), out, ExportFilters())
    rows = read_csv(out / "generation.csv")
    assert [(row["notes"], row["answer"]) for row in rows] == [
        ("before \ufffd after", "answer of r1"),
        ("", "An \ufffd answer"),
    ]
    assert "U+FFFD stands for NUL characters in 2 rows: some readers of CSV end a text at a NUL." in export.warnings


def test_drafts_and_discards_are_counted(generation: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, out = generation, tmp_path / "out"
    draft, dropped = bench.response("ben", "draft", helpful="yes"), bench.response("ben", "discarded")
    submitted = bench.response("anna", **answers("generation"))
    bench.put(
        "generation", record("generation", "r1", submitted, draft), record("generation", "r2", submitted, dropped)
    )
    bench.put("generation", record("generation", "r3", bench.response("anna", "discarded")))
    done = run(bench, monkeypatch, out)
    assert "In no file: 1 draft, 2 discarded responses (`--discarded` writes them)." in done.stderr
    written = run(bench, monkeypatch, tmp_path / "written", "--discarded").stderr
    assert "\nIn no file: 1 draft.\n" in written
    for export in (out, tmp_path / "written"):
        measured = measure_and_write([export], tmp_path / "results", FigureOptions(resamples=10))
        assert measured.results
        told = agreement_methods(measured.agreement), results_methods(measured.results)
        assert all("Discarded, and not counted: 2 responses." in each for each in told)
        page = (tmp_path / "results" / "agreement.md").read_text(encoding="utf-8")
        assert ("2 answers discarded, 50.0 % of all" in page, "not known: the files" in page) == (True, False)
    (dataset,) = manifest_of(out)["datasets"]
    assert (dataset["drafts"], dataset["discarded"]) == (1, 2)
    assert dataset["annotators"] == {
        username(bench, "anna"): {"submitted": 2, "drafts": 0, "discarded": 1},
        username(bench, "ben"): {"submitted": 0, "drafts": 1, "discarded": 1},
    }
    assert run(bench, monkeypatch, out, "--anonymize").exit_code == 0
    text = (out / MANIFEST_FILE).read_text(encoding="utf-8")
    assert json.loads(text)["datasets"][0]["annotators"].keys() == {"annotator-01", "annotator-02"}
    assert not [name for name in bench.client.usernames().values() if name in text]


def test_the_former_since_says_what_to_do_instead(tmp_path: Path) -> None:
    result = CliRunner().invoke(csv_command, [str(tmp_path / "out"), "--since", "2026-03-01"])
    assert result.exit_code == 2
    assert "exports csv OUT --update" in result.stderr
    assert "--since" not in CliRunner().invoke(csv_command, ["--help"]).stdout
