"""`exports csv --history`: what was answered, changed and deleted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.people import forget_user
from annotation.server.launch import ServerHandle
from exports.cli import main
from exports.csv.history import export_history
from exports.csv.schema import HISTORY_COLUMNS, ExportFilters
from pipeline.core.errors import NotFoundError
from tests.support.export_bench import (
    Bench,
    answered_by,
    answers,
    full_bench,
    generation_bench,
    make_user,
    read_csv,
    record,
)

pytestmark = pytest.mark.server


@pytest.fixture
def run(argilla_server: ServerHandle) -> Callable[..., Result]:
    """What a command says; another exit code than the one given fails the test."""

    def command(*words: str | Path, code: int = 0) -> Result:
        environment = {"ARGILLA_API_URL": argilla_server.url, "ARGILLA_API_KEY": argilla_server.owner_api_key}
        result = CliRunner(env=environment).invoke(main, list(map(str, words)))
        assert result.exit_code == code, result.output
        return result

    return command


@pytest.fixture
def people(client: Argilla) -> dict[str, str]:
    """Ids of annotators of the test's own by first name."""
    return {who: make_user(client, who)["id"] for who in ("anna", "ben", "carla")}


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


def responses_of(bench: Bench, task: str) -> list[dict[str, Any]]:
    """The responses of one dataset, record by record."""
    pages = bench.client.record_pages(bench.datasets[task])
    return [response for _, page in pages for each in page for response in each["responses"]]


def test_the_history_has_a_row_for_each_question_of_each_change(
    tmp_path: Path, argilla_server: ServerHandle, client: Argilla, people: dict[str, str], run: Callable[..., Result]
) -> None:
    bench = full_bench(argilla_server, client, people)
    given = bench.response("anna", **answers("retrieval"), notes='=1+1, "quoted"')
    bench.put("retrieval", record("retrieval", "r1", given, rank=2))
    bench.put("generation", record("generation", "r2", bench.response("ben", "discarded")))
    out = tmp_path / "history.csv"
    first = run("exports", "csv", "--history", out, "--workspace", bench.workspace)
    before = out.read_bytes()
    client.request("DELETE", f"/datasets/{bench.datasets['retrieval']}")
    run("exports", "csv", "--history", out, "--workspace", bench.workspace)
    assert out.read_bytes().startswith(before)  # it is only added to
    anna = client.usernames()[people["anna"]]
    rows = read_csv(out)
    labels = [*LABELS["retrieval"], "notes"]
    assert [(row["action"], row["label"]) for row in rows] == [
        *(("insert", label) for label in labels),
        ("insert", ""),
        *(("delete", label) for label in labels),
    ]
    assert tuple(rows[0]) == HISTORY_COLUMNS
    last = rows[-1] | {"change": "", "at": "", "response_id": ""}
    assert last == {
        "change": "",
        "at": "",
        "action": "delete",
        "record_uuid": "r1",
        "chunk_id": "c2",
        "task": "retrieval",
        "label": "notes",
        "value_before": '=1+1, "quoted"',
        "value_after": "",
        "status_before": "submitted",
        "status_after": "",
        "annotator_id": anna,
        "response_id": "",
        "workspace": bench.workspace,
        "dataset": "1-retrieval-en",
        "round": "production",
    }
    assert "The history begins at 20" in first.output
    assert "generation" in first.output
    words = ("--history", out, "--workspace", bench.workspace)
    run("exports", "csv", *words, "--task", "generation", "--spreadsheet-safe")
    assert [row["status_after"] for row in read_csv(out)] == ["discarded"]
    for other in ((tmp_path / "export",), ("--update",), ("--yes",), ("--until", "2026-03-01"), ("--text-pair",)):
        assert "is written alone" in run("exports", "csv", *words, *other, code=2).output
    assert "or a file with `--history`" in run("exports", "csv", code=2).output


def test_a_history_without_names_has_the_exports_pseudonyms_and_somebody_who_is_forgotten_another_name(
    tmp_path: Path, argilla_server: ServerHandle, client: Argilla, people: dict[str, str], run: Callable[..., Result]
) -> None:
    bench, out = generation_bench(argilla_server, client, people), tmp_path / "history.csv"
    answered_by(bench, "anna", "ben")
    words = ("--workspace", bench.workspace, "--anonymize", "--key-file", tmp_path / "keys.json")
    run("exports", "csv", tmp_path / "export", *words)
    run("exports", "csv", "--history", out, *words)
    rows = read_csv(out)
    assert {row["annotator_id"] for row in rows} == {"annotator-01", "annotator-02"}
    assert {row["response_id"] for row in rows} == {""}
    name = client.usernames()[people["anna"]]
    forget_user(client, name, pseudonym=f"former-{name[-8:]}")
    export_history(client, [bench.workspace], out, ExportFilters())
    assert {row["annotator_id"] for row in read_csv(out)} == {f"former-{name[-8:]}", client.usernames()[people["ben"]]}
    assert name.encode() not in out.read_bytes()
    (tmp_path / "notes.csv").write_text("my notes\n", encoding="utf-8")
    result = run("exports", "csv", "--history", tmp_path / "notes.csv", "--workspace", bench.workspace, code=1)
    assert "is no history of citejury's" in result.output
    assert (tmp_path / "notes.csv").read_text(encoding="utf-8") == "my notes\n"
    missing = run("exports", "csv", "--history", tmp_path / "new.csv", "--workspace", "nobody's", code=1)
    assert 'no workspace "nobody\'s"' in missing.output
    assert not (tmp_path / "new.csv").exists()


class Stock(Argilla):
    """A client whose server knows none of citejury's own paths."""

    def request(self, method: str, path: str, **options: Any) -> Any:
        if path.startswith("/citejury/"):
            raise NotFoundError("a stock Argilla does not know this path")
        return super().request(method, path, **options)


def test_a_stock_argilla_is_told_plainly(tmp_path: Path, argilla_server: ServerHandle, generation: Bench) -> None:
    answered_by(generation, "anna")
    with (
        Stock(argilla_server.url, argilla_server.owner_api_key) as stock,
        pytest.raises(Exception, match=r"keeps no history of responses; only citejury's own server does"),
    ):
        export_history(stock, [generation.workspace], tmp_path / "history.csv", ExportFilters())
    assert list(tmp_path.iterdir()) == []
