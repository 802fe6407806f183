"""From `ask --arm` to `exports results --by arm`: whose answer it is goes through Argilla unseen and comes back."""

import csv
import json
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.cli import main
from exports.csv.write import export_csv
from pipeline.records.run import records_from_run
from tests.support.told_runs import said

pytestmark = pytest.mark.server

NUMBERS = count(1)
HELPFUL = "leading"


def run(*words: str) -> Result:
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 0, done.output
    return done


def asked(arms: tuple[str, ...]) -> None:
    """A run of two arms in the folder `run`, each with its own answer to four narratives."""
    rows = [f"N{number},The claim {number} that something is so." for number in range(4)]
    Path("narratives.csv").write_text("\n".join(["narrative_id,prompt", *rows]), encoding="utf-8")
    for arm in arms:
        Path(f"{arm}.toml").write_text(f'[prompts]\nuser_template = "{arm}: {{note_text}}"\n', encoding="utf-8")
        folder = Path("payloads", arm, "openai")
        folder.mkdir(parents=True)
        for number in range(4):
            body = said(f"No. The claim {number} is a myth, as the page of that day says.", "https://a.example/1")
            (folder / f"N{number}.json").write_text(json.dumps(body), encoding="utf-8")
    named = [word for arm in arms for word in ("--arm", f"{arm}:{arm}.toml")]
    run("pipeline", "ask", "narratives.csv", "--replay", "payloads", "--out", "run", *named)


def answer(owner: Argilla, workspace: str, user_id: str, helpful: dict[str, bool]) -> None:
    """Submit the user's answers: yes to everything of the helpful records, by id, and no to all else."""
    for task, dataset in find_datasets(owner, workspace).items():
        records = [record for _, page in owner.record_pages(dataset.id) for record in page]
        items = []
        for record in records:
            assert HELPFUL not in json.dumps(record["fields"])
            value = "yes" if helpful[record["external_id"].partition("#")[0]] else "no"
            values = {label: {"value": value} for label in LABELS[task]}
            response = {"user_id": user_id, "status": "submitted", "values": values}
            items.append(
                {**{name: record[name] for name in ("fields", "metadata", "external_id")}, "responses": [response]}
            )
        if items:
            owner.request("PUT", f"/datasets/{dataset.id}/records/bulk", json={"items": items})


def test_arms_are_compared_by_what_the_jury_said_of_their_answers(
    owner: Argilla, users: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked(("neutral", HELPFUL))
    workspace = f"arms-{next(NUMBERS)}"
    set_up(owner, workspace)
    records = list(records_from_run(Path("run")))
    assert push_records(owner, workspace, records)
    helpful = {record.record_uuid: record.provenance.arm == HELPFUL for record in records}
    answer(owner, workspace, users["anna"], helpful)
    export_csv(owner, workspace, Path("export"))
    with open("export/provenance.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["record_uuid"]: row["arm"] == HELPFUL for row in rows} == helpful
    assert {row["repeat"] for row in rows} == {"1"}
    run("exports", "results", "export", "--by", "arm", "--runs", "run", "--out", "results")
    found = json.loads(Path("results/results.json").read_text(encoding="utf-8"))
    groups = found["tasks"]["generation"]["labels"]["helpful"]["groups"]
    assert {group["by"]["arm"]: group["rate"] for group in groups} == {HELPFUL: 1.0, "neutral": 0.0}
    behind = [group["denominators"] for group in groups]
    assert [(each["asked"], each["answered"], each["refused"], each["failed"]) for each in behind] == [(4, 4, 0, 0)] * 2
