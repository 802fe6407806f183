"""Nothing unfinished looks finished: what an export knows of the work opens all that is made of it."""

import csv
import json
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from exports.csv.folder import MANIFEST_FILE
from exports.report.words import TEXTS
from tests.support.export_bench import Bench, answered_by, answers, manifest_of, record

pytestmark = pytest.mark.server

SENTENCE = "Interim: 2 of 5 units are done. Wanting: 3 submissions; begun 1, discarded 1."
NOBODY = "Nobody is left who may finish 1 of the others."

MARKS = ("Interim: 2 of 5 units are done.", "Not known whether all was done")


def run(*words: object) -> Result:
    result = CliRunner().invoke(main, ["exports", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result


def opened(told: str, cell: str) -> None:
    """Check that all that results write and print opens with the sentence, and each row ends in the cell."""
    printed = run("results", "export", "--out", "out", "--excel")
    pages = {name: Path("out", name).read_text(encoding="utf-8") for name in ("results.md", "agreement.md")}
    assert [text.split("\n\n")[1] == told for text in pages.values()] == [bool(told)] * 2
    assert " ".join(printed.stdout.split()).startswith(told or "Found in ")
    for name in ("results.tex", "agreement.tex", "report.html"):
        text = Path("out", name).read_text(encoding="utf-8")
        assert [mark for mark in MARKS if mark in text] == [mark for mark in MARKS if told.startswith(mark)], name
    details = Path("out/details.html").read_text(encoding="utf-8")
    assert details.count("<h1 id=") == 1
    assert sum(details.count(mark) for mark in MARKS) == bool(told)
    for path in Path("out").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            assert {row["interim"] for row in csv.DictReader(file)} <= {cell}, path
    book = openpyxl.load_workbook("out/results.xlsx")
    assert ([*book["interim"].values] == [(told,)]) if told else "interim" not in book
    summary = [text for (text,) in openpyxl.load_workbook("out/report.xlsx")["Summary"].values]
    assert (summary[1] == told) if told else summary[1].startswith("Asked: ")


def test_interim_figures_say_so_from_the_export_to_every_table_until_all_is_there(
    generation: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = generation
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    bench.client.request("POST", f"/workspaces/{bench.workspace_id}/users", json={"user_id": bench.annotators["anna"]})
    for name in ("r1", "r2"):
        answered_by(bench, "anna", record_uuid=name)
    begun = bench.response("ben", "draft", **answers("generation"))
    bench.put("generation", record("generation", "r3", begun), record("generation", "r5"))
    bench.put("generation", record("generation", "r4", bench.response("anna", "discarded")))
    url = ("--api-url", bench.server.url)
    told = f"{SENTENCE} {NOBODY}"
    assert f"\n{told}\n" in run("csv", "export", *url, "--workspace", bench.workspace).stderr
    (dataset,) = manifest_of(Path("export"))["datasets"]
    assert dataset["work"] == {"done": 2, "of": 5, "wanting": 3, "nobody_left": 1, "drafts": 1, "discarded": 1}
    opened(told, "2 of 5")
    for name, who in (("r3", "anna"), ("r4", "ben"), ("r5", "anna")):
        answered_by(bench, who, record_uuid=name)
    assert "Interim" not in run("csv", "export", "--update", *url).stderr
    opened("", "")
    manifest = manifest_of(Path("export"))
    assert manifest["datasets"][0].pop("work")["done"] == 5
    Path("export", MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    opened(TEXTS["interim"]["unknown"], "not known")
