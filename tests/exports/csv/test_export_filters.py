"""What `exports csv` leaves out, adds and hides on request; nothing found is an error that says what there is."""

import codecs
import csv
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.server.launch import ServerHandle
from exports.cli.csv import csv_command
from exports.csv.fetch import check_server
from exports.csv.schema import COLUMNS, ExportFilters
from exports.csv.write import export_csv
from pipeline.core.errors import ArgillaError, CitejuryError, NotFoundError
from tests.support.export_bench import (
    Bench,
    answered_by,
    answers,
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


@pytest.fixture
def bench(generation: Bench) -> Bench:
    return generation


@pytest.fixture
def other(argilla_server: ServerHandle, client: Argilla, users: dict[str, str]) -> Bench:
    return generation_bench(argilla_server, client, users)


def test_a_window_does_not_hold_its_end_and_a_round_is_a_choice_and_a_column(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
    (row,) = bench.export(tmp_path / "out")["generation"]
    moment = datetime.fromisoformat(row["created_at"])
    later = moment + timedelta(microseconds=1)
    assert len(bench.export(tmp_path / "out", until=later)["generation"]) == 1
    assert manifest_of(tmp_path / "out")["filters"]["until"] == later.isoformat().replace("+00:00", "Z")
    with pytest.raises(NotFoundError, match=rf"no submitted response before \S+, .*from {moment.isoformat()[:19]}"):
        bench.export(tmp_path / "out", until=moment)
    pilot = make_dataset(bench.client, bench.workspace_id, "generation", "pilot")
    answered_by(bench._replace(datasets={"generation": pilot}), "ben", record_uuid="r2")
    both = bench.export(tmp_path / "out", extended=True)["generation"]
    assert [(row["record_uuid"], row["round"], row["dataset_id"], row["workspace"]) for row in both] == [
        ("r1", "production", bench.datasets["generation"], bench.workspace),
        ("r2", "pilot", pilot, bench.workspace),
    ]
    assert [row["record_uuid"] for row in bench.export(tmp_path / "out", rounds=("pilot",))["generation"]] == ["r2"]
    assert [dataset["round"] for dataset in manifest_of(tmp_path / "out")["datasets"]] == ["pilot"]
    with pytest.raises(NotFoundError, match=r"no dataset of the round 'plot'; there are: .*round pilot"):
        bench.export(tmp_path / "out", rounds=("plot",))


def test_only_named_annotators_and_languages_are_exported_and_a_typo_is_named(bench: Bench, tmp_path: Path) -> None:
    bench = bench._replace(annotators={**bench.annotators, "carl": make_user(bench.client, "carl")["id"]})
    answered_by(bench, "anna", "ben", "carl", language="ja")  # more than a record waits for
    answered_by(bench, "anna", record_uuid="r2", language="de")
    anna, ben = username(bench, "anna"), username(bench, "ben")
    for named in (ben, bench.annotators["ben"]):
        assert pairs(bench.export(tmp_path / "out", annotators=(named,))["generation"]) == [("r1", ben)]
    rows = bench.export(tmp_path / "out", languages=("ja",))["generation"]
    assert [(row["record_uuid"], row["language"]) for row in rows] == [("r1", "ja")] * 3
    others: dict[str, Any] = {"tasks": ["generation"], "rounds": ["production"]}
    for wanted, said in (
        ({"annotators": (anna, "nna")}, rf"no submitted response by 'nna', .*by the annotators {anna},"),
        ({"annotators": ("nna",), **others}, "no submitted response by 'nna'"),
        ({"languages": ("de", "fr")}, r"of the language 'fr', .*of the languages de, ja,"),
        ({"languages": ("fr",), **others}, "no submitted response to a record of the language 'fr'"),
        ({"languages": ("de",), "annotators": (ben,)}, "that fits all the options"),
    ):
        with pytest.raises(NotFoundError, match=said):
            bench.export(tmp_path / "none", **wanted)
    assert not (tmp_path / "none").exists()


def test_a_round_that_a_machine_filled_in_is_left_out_unless_it_is_named(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
    filled_in = make_dataset(bench.client, bench.workspace_id, "generation", "suggested-2")
    answered_by(bench._replace(datasets={"generation": filled_in}), "ben", record_uuid="r2")
    export = export_csv(bench.client, bench.workspace, tmp_path / "jury")
    assert [row["record_uuid"] for row in read_csv(tmp_path / "jury" / "generation.csv")] == ["r1"]
    assert "`--round suggested-2`" in export.warnings[-1]
    for wanted in ({"rounds": ("production", "suggested-2")}, {"suggested": True}):
        everything = ExportFilters.model_validate(wanted)
        export = export_csv(bench.client, bench.workspace, tmp_path / "all", everything)
        assert [row["record_uuid"] for row in read_csv(tmp_path / "all" / "generation.csv")] == ["r1", "r2"]
        assert not any("left out" in warning for warning in export.warnings)
    bench.client.request("DELETE", f"/datasets/{bench.datasets['generation']}")
    said = r"only datasets whose answers .*round suggested-2\)\. .*`--round suggested-2`"
    with pytest.raises(NotFoundError, match=said):
        export_csv(bench.client, bench.workspace, tmp_path / "out")


def test_several_workspaces_are_one_export_whatever_their_order(bench: Bench, other: Bench, tmp_path: Path) -> None:
    names = [bench.workspace, other.workspace]
    answered_by(bench, "anna")
    with pytest.raises(NotFoundError, match=rf"no submitted response in '{other.workspace}', .*in {bench.workspace}/"):
        export_csv(bench.client, names, tmp_path / "out")
    answered_by(other, "anna", "ben")
    for folder, order in (("one", names), ("two", [*reversed(names), names[0]])):
        export_csv(bench.client, order, tmp_path / folder)
    rows = read_csv(tmp_path / "one" / "generation.csv")
    assert pairs(rows) == [("r1", username(bench, "anna")), ("r1", username(bench, "ben"))]
    files = [(tmp_path / folder / "generation.csv").read_bytes() for folder in ("one", "two")]
    assert (files[0], manifest_of(tmp_path / "one")["workspaces"]) == (files[1], names)


def test_a_formula_is_text_in_a_spreadsheet_safe_export_only(bench: Bench, tmp_path: Path) -> None:
    starts = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
    texts = [f'{start}HYPERLINK("http://evil.example")' for start in starts]
    for number, text in enumerate(texts, start=10):
        response = bench.response("anna", **answers("generation"), notes=text)
        bench.put("generation", record("generation", f"r{number}", response, originals={"answer": text}))
    plain = bench.export(tmp_path / "plain")["generation"]
    bench.export(tmp_path / "safe", spreadsheet_safe=True, excel=True)
    assert (tmp_path / "safe" / "generation.csv").read_bytes().startswith(codecs.BOM_UTF8)
    with (tmp_path / "safe" / "generation.csv").open(encoding="utf-8-sig", newline="") as stream:
        safe = list(csv.DictReader(stream))
    assert [(row["answer"], row["notes"]) for row in plain] == [(text, text) for text in texts]
    marked = [{"answer": f"'{text}", "notes": f"'{text}"} for text in texts]
    assert safe == [row | each for row, each in zip(plain, marked, strict=True)]
    assert tuple(safe[0]) == COLUMNS["generation"]
    head, *cells = openpyxl.load_workbook(tmp_path / "safe" / "export.xlsx")["generation"].values
    shown = [dict(zip(head, map(str, row), strict=True)) for row in cells]
    # A carriage return is no character of a cell.
    assert [row["notes"] for row in shown] == [text.replace("\r", "\n") for text in texts]
    assert [[row[label] for label in LABELS["generation"]] for row in shown] == [
        [row[label] for label in LABELS["generation"]] for row in plain
    ]
    assert manifest_of(tmp_path / "safe")["files"][-1]["file"] == "export.xlsx"
    bench.export(tmp_path / "safe")
    assert not (tmp_path / "safe" / "export.xlsx").exists()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "so it is Argilla 1 or something else"),
        ({"version": "1.29.1"}, "is of version 1.29.1"),
        ({"version": None}, "is of version None"),
        ([], r"is of version \[\]"),
    ],
)
def test_an_old_server_is_refused_in_one_sentence(answer: object, said: str) -> None:
    class OldServer(Argilla):
        def request(self, *_: Any, **__: Any) -> Any:
            if answer is None:
                raise NotFoundError("there is no such path")
            return answer

    with OldServer("http://127.0.0.1:1", "key") as client, pytest.raises(ArgillaError, match=f"({said}).*2.0 or later"):
        check_server(client)


def test_the_command_takes_every_filter_and_says_where_the_key_is(
    bench: Bench, other: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (bench, other):
        answered_by(each, "anna", language="de")
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    out, key = tmp_path / "out", tmp_path / "keys" / "jury.json"
    words = ["--api-url", bench.server.url, "--workspace", bench.workspace, "--workspace", other.workspace]
    nothing = CliRunner().invoke(csv_command, [str(out), *words, "--language", "xx"])
    assert isinstance(nothing.exception, CitejuryError)
    assert not list(tmp_path.iterdir())
    words += ["--annotator", username(bench, "anna"), "--language", "de", "--round", "production"]
    words += ["--until", "2100-01-01", "--anonymize", "--key-file", str(key), "--spreadsheet-safe"]
    done = CliRunner().invoke(csv_command, [str(out), *words])
    assert done.exit_code == 0, done.output
    assert f"Who is who stands in {key}" in done.stderr
    wanted = {"until": "2100-01-01T00:00:00Z", "annotators": ["annotator-01"], "languages": ["de"]}
    wanted |= {"rounds": ["production"], "anonymized": True, "spreadsheet_safe": True}
    assert manifest_of(out)["filters"] == ExportFilters().model_dump(mode="json") | wanted
