"""What `exports csv` leaves out, adds and hides on request; nothing found is an error that says what there is."""

import codecs
import csv
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from exports.cli.csv import csv_command
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

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server

PSEUDONYMS = ExportFilters(anonymized=True)


@pytest.fixture
def bench(generation: Bench) -> Bench:
    return generation


@pytest.fixture
def other(argilla_server: "ServerHandle", client: Argilla, users: dict[str, str]) -> Bench:
    return generation_bench(argilla_server, client, users)


def test_a_window_does_not_hold_its_end(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
    (row,) = bench.export(tmp_path / "out")["generation"]
    moment = datetime.fromisoformat(row["created_at"])
    later = moment + timedelta(microseconds=1)
    assert len(bench.export(tmp_path / "out", until=later)["generation"]) == 1
    assert manifest_of(tmp_path / "out")["filters"]["until"] == later.isoformat().replace("+00:00", "Z")
    with pytest.raises(NotFoundError, match=rf"no submitted response before \S+, .*from {moment.isoformat()[:19]}"):
        bench.export(tmp_path / "out", until=moment)


def test_a_moment_without_offset_is_utc() -> None:
    assert ExportFilters(until=datetime(2026, 3, 1)).until == datetime(2026, 3, 1, tzinfo=UTC)  # noqa: DTZ001


def test_only_the_named_annotators_are_exported_by_name_or_id(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna", "ben")
    for named in (username(bench, "ben"), bench.annotators["ben"]):
        rows = bench.export(tmp_path / "out", annotators=(named,))["generation"]
        assert pairs(rows) == [("r1", username(bench, "ben"))]


def test_a_mistyped_annotator_is_an_error_that_names_those_who_answered(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
    there = username(bench, "anna")
    with pytest.raises(NotFoundError, match=rf"no submitted response by 'nna', .*by the annotators {there},"):
        bench.export(tmp_path / "out", annotators=(there, "nna"))
    assert not list(tmp_path.iterdir())


def test_only_records_of_the_named_languages_are_exported(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna", language="ja")
    answered_by(bench, "anna", record_uuid="r2", language="de")
    rows = bench.export(tmp_path / "out", languages=("ja",))["generation"]
    assert [(row["record_uuid"], row["language"]) for row in rows] == [("r1", "ja")]
    with pytest.raises(NotFoundError, match=r"of the language 'fr', .*of the languages de, ja,"):
        bench.export(tmp_path / "out", languages=("de", "fr"))


def test_what_no_response_fits_together_is_an_error_that_says_so(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna", language="de")
    answered_by(bench, "ben", record_uuid="r2", language="ja")
    with pytest.raises(NotFoundError, match="that fits all the options"):
        bench.export(tmp_path / "out", languages=("de",), annotators=(username(bench, "ben"),))


def test_a_typo_is_named_whatever_else_was_asked_for(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna", language="de")
    for typo, said in ({"annotators": ("nna",)}, "by 'nna'"), ({"languages": ("fr",)}, "of the language 'fr'"):
        with pytest.raises(NotFoundError, match=f"no submitted response (to a record )?{said}"):
            bench.export(tmp_path / "out", tasks=["generation"], rounds=["production"], **typo)


def test_a_round_is_a_choice_and_a_column(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
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


def test_only_rounds_that_a_machine_filled_in_are_an_error_with_the_way_out(other: Bench, tmp_path: Path) -> None:
    other.client.request("DELETE", f"/datasets/{other.datasets['generation']}")
    make_dataset(other.client, other.workspace_id, "generation", "suggested")
    with pytest.raises(NotFoundError, match=r"only datasets whose answers .*round suggested\)\. .*`--round suggested`"):
        export_csv(other.client, other.workspace, tmp_path / "out")


def test_several_workspaces_are_one_export_whatever_their_order(bench: Bench, other: Bench, tmp_path: Path) -> None:
    answered_by(other, "anna", "ben")
    answered_by(bench, "anna")
    names = [bench.workspace, other.workspace]
    for folder, order in (("one", names), ("two", [*reversed(names), names[0]])):
        export_csv(bench.client, order, tmp_path / folder)
    rows = read_csv(tmp_path / "one" / "generation.csv")
    anna, ben = username(bench, "anna"), username(bench, "ben")
    assert pairs(rows) == [("r1", anna), ("r1", ben)]
    files = [(tmp_path / folder / "generation.csv").read_bytes() for folder in ("one", "two")]
    assert files[0] == files[1]
    assert manifest_of(tmp_path / "one")["workspaces"] == names


def test_a_named_workspace_without_a_response_is_an_error(bench: Bench, other: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
    with pytest.raises(NotFoundError, match=rf"no submitted response in '{other.workspace}', .*in {bench.workspace}/"):
        export_csv(bench.client, [bench.workspace, other.workspace], tmp_path / "out")


def test_more_responses_than_a_record_waits_for_are_all_rows(bench: Bench, tmp_path: Path) -> None:
    carl = make_user(bench.client, "carl")["id"]
    wide = bench._replace(annotators={**bench.annotators, "carl": carl})
    answered_by(wide, "anna", "ben", "carl")
    assert len(wide.export(tmp_path / "out")["generation"]) == 3


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_a_formula_is_text_in_a_spreadsheet_safe_export_only(bench: Bench, tmp_path: Path, start: str) -> None:
    text = f'{start}HYPERLINK("http://evil.example")'
    response = bench.response("anna", **answers("generation"), notes=text)
    bench.put("generation", record("generation", "r1", response, originals={"answer": text}))
    (plain,) = bench.export(tmp_path / "plain")["generation"]
    bench.export(tmp_path / "safe", spreadsheet_safe=True)
    content = (tmp_path / "safe" / "generation.csv").read_bytes()
    assert content.startswith(codecs.BOM_UTF8)
    with (tmp_path / "safe" / "generation.csv").open(encoding="utf-8-sig", newline="") as stream:
        (safe,) = csv.DictReader(stream)
    assert (plain["answer"], plain["notes"]) == (text, text)
    assert safe == {**plain, "answer": f"'{text}", "notes": f"'{text}"}
    assert tuple(safe) == COLUMNS["generation"]


class OldServer(BaseHTTPRequestHandler):
    """What a server of another kind answers to everything."""

    status, body = 404, b'{"detail": "Not Found"}'

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b'{"detail": "Not Found"}', "so it is Argilla 1 or something else"),
        (200, b'{"version": "1.29.1"}', "is of version 1.29.1"),
        (200, b'{"version": null}', "is of version None"),
        (200, b"[]", r"is of version \[\]"),
    ],
)
def test_an_old_server_is_refused_in_one_sentence(tmp_path: Path, status: int, body: bytes, said: str) -> None:
    handler = type("Answer", (OldServer,), {"status": status, "body": body})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with (
                Argilla(f"http://127.0.0.1:{server.server_port}", "key") as client,
                pytest.raises(ArgillaError, match=f"({said}).*Argilla 2.0 or later"),
            ):
                export_csv(client, "w", tmp_path / "out")
        finally:
            server.shutdown()
            thread.join()


def run(bench: Bench, monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    return CliRunner().invoke(csv_command, [*words, "--api-url", bench.server.url])


def test_the_command_takes_every_filter_and_says_where_the_key_is(
    bench: Bench, other: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (bench, other):
        answered_by(each, "anna", language="de")
    out, key = tmp_path / "out", tmp_path / "keys" / "jury.json"
    workspaces = ["--workspace", bench.workspace, "--workspace", other.workspace]
    people = ["--annotator", username(bench, "anna"), "--language", "de", "--round", "production"]
    window = ["--until", "2100-01-01"]
    hidden = ["--anonymize", "--key-file", str(key), "--spreadsheet-safe"]
    done = run(bench, monkeypatch, str(out), *workspaces, *people, *window, *hidden)
    assert done.exit_code == 0, done.output
    assert f"Who is who stands in {key}" in done.stderr
    assert manifest_of(out)["filters"] == {
        "tasks": [],
        "until": "2100-01-01T00:00:00Z",
        "as_of": None,
        "annotators": ["annotator-01"],
        "languages": ["de"],
        "rounds": ["production"],
        "suggested": False,
        "every_response": False,
        "with_controls": False,
        "whole_campaign": False,
        "text_pair": False,
        "extended": False,
        "discarded": False,
        "anonymized": True,
        "spreadsheet_safe": True,
    }


def test_the_command_ends_with_an_error_of_ours_where_nothing_is_found(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered_by(bench, "anna")
    done = run(bench, monkeypatch, str(tmp_path / "out"), "--workspace", bench.workspace, "--language", "xx")
    assert isinstance(done.exception, CitejuryError)
    assert not list(tmp_path.iterdir())
