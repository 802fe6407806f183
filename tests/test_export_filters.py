"""What `exports csv` leaves out, adds and hides on request; nothing found is an error that says what there is."""

import codecs
import csv
import json
import os
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from annotation.client import Argilla
from exports.anonymize import Pseudonyms
from exports.cli_csv import csv_command
from exports.csv_export import export_csv
from exports.folder import MANIFEST_FILE
from exports.schema import COLUMNS, ExportFilters
from pipeline.errors import ArgillaError, CitejuryError, InputError, NotFoundError, OutputError
from tests.export_bench import Bench, answers, generation_bench, make_dataset, make_user, read_csv, record, username

if TYPE_CHECKING:
    from annotation.embedded.launch import ServerHandle

pytestmark = pytest.mark.server

PSEUDONYMS = ExportFilters(anonymized=True)


@pytest.fixture(scope="module")
def client(argilla_server: "ServerHandle") -> Iterator[Argilla]:
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as connection:
        yield connection


@pytest.fixture(scope="module")
def users(client: Argilla) -> dict[str, str]:
    return {who: make_user(client, who)["id"] for who in ("anna", "ben")}


@pytest.fixture
def bench(argilla_server: "ServerHandle", client: Argilla, users: dict[str, str]) -> Bench:
    return generation_bench(argilla_server, client, users)


@pytest.fixture
def other(argilla_server: "ServerHandle", client: Argilla, users: dict[str, str]) -> Bench:
    return generation_bench(argilla_server, client, users)


def answered_by(bench: Bench, *people: str, record_uuid: str = "r1", **known: Any) -> None:
    responses = [bench.response(who, **answers("generation")) for who in people]
    bench.put("generation", record("generation", record_uuid, *responses, **known))


def pairs(rows: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(row["record_uuid"], row["annotator_id"]) for row in rows]


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    return found


def test_a_window_holds_its_beginning_and_not_its_end(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
    (row,) = bench.export(tmp_path / "out")["generation"]
    moment = datetime.fromisoformat(row["created_at"])
    later = moment + timedelta(microseconds=1)
    assert len(bench.export(tmp_path / "out", since=moment, until=later)["generation"]) == 1
    assert manifest_of(tmp_path / "out")["filters"]["until"] == later.isoformat().replace("+00:00", "Z")
    with pytest.raises(NotFoundError, match=rf"no submitted response before \S+, .*from {moment.isoformat()[:19]}"):
        bench.export(tmp_path / "out", until=moment)
    with pytest.raises(InputError, match="later moment than `--since`"):
        bench.export(tmp_path / "out", since=moment, until=moment)


def test_a_moment_without_offset_is_utc() -> None:
    assert ExportFilters(since=datetime(2026, 3, 1)).since == datetime(2026, 3, 1, tzinfo=UTC)  # noqa: DTZ001


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


def test_several_workspaces_are_one_export_whatever_their_order(bench: Bench, other: Bench, tmp_path: Path) -> None:
    answered_by(other, "anna", "ben")
    answered_by(bench, "anna")
    names = [bench.workspace, other.workspace]
    for folder, order in (("one", names), ("two", [*reversed(names), names[0]])):
        export_csv(bench.client, order, tmp_path / folder)
    rows = read_csv(tmp_path / "one" / "generation.csv")
    anna, ben = username(bench, "anna"), username(bench, "ben")
    assert pairs(rows) == [("r1", anna), ("r1", anna), ("r1", ben)]
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


def test_a_person_keeps_her_pseudonym_when_others_come(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "ben")
    (first,) = bench.export(tmp_path / "one", anonymized=True)["generation"]
    key = tmp_path / "one.annotators.json"
    answered_by(bench, "anna", record_uuid="r0")
    export = export_csv(bench.client, bench.workspace, tmp_path / "two", PSEUDONYMS, key_file=key)
    assert pairs(read_csv(tmp_path / "two" / "generation.csv")) == [("r0", "annotator-02"), ("r1", "annotator-01")]
    assert (first["annotator_id"], export.key_file) == ("annotator-01", key)
    assert json.loads(key.read_text(encoding="utf-8"))["annotators"] == {
        "annotator-01": {"user_id": bench.annotators["ben"], "username": username(bench, "ben")},
        "annotator-02": {"user_id": bench.annotators["anna"], "username": username(bench, "anna")},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "one.annotators.json", "two"]


def test_no_file_of_an_anonymous_export_names_or_numbers_an_annotator(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna", "ben")
    anna = username(bench, "anna")
    found = bench.export(tmp_path / "out", anonymized=True, extended=True, annotators=(anna,))
    (row,) = found["generation"]
    assert row["response_id"] == ""
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir())
    assert not [secret for secret in (anna, bench.annotators["anna"]) if secret in text]
    assert manifest_of(tmp_path / "out")["filters"]["annotators"] == [row["annotator_id"]]


def test_an_anonymous_export_is_sorted_by_pseudonym(bench: Bench, tmp_path: Path) -> None:
    key = Pseudonyms(tmp_path / "key.json")
    for who in ("ben", "anna"):  # names would sort the other way round
        key.pseudonym(bench.annotators[who], who)
    key.save()
    answered_by(bench, "anna", "ben")
    export_csv(bench.client, bench.workspace, tmp_path / "out", PSEUDONYMS, key_file=tmp_path / "key.json")
    rows = read_csv(tmp_path / "out" / "generation.csv")
    assert [row["annotator_id"] for row in rows] == ["annotator-01", "annotator-02"]


@pytest.mark.skipif(os.name != "posix", reason="no file modes")
def test_a_key_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    before = os.umask(0)
    try:
        for name in ("ann", "ben"):
            key = Pseudonyms(path)
            key.pseudonym(name, name)
            key.save()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            path.chmod(0o644)
    finally:
        os.umask(before)


@pytest.mark.parametrize("place", ["out/key.json", "out", "out/below/key.json"])
def test_a_key_file_in_the_export_is_refused(bench: Bench, tmp_path: Path, place: str) -> None:
    with pytest.raises(OutputError, match="would be inside the export"):
        export_csv(bench.client, bench.workspace, tmp_path / "out", PSEUDONYMS, key_file=tmp_path / place)


@pytest.mark.parametrize("content", ["", "[]", '{"annotators": {}}', '{"citejury_annotator_key": 2, "annotators": {}}'])
def test_a_file_that_is_no_key_is_refused_and_untouched(bench: Bench, tmp_path: Path, content: str) -> None:
    answered_by(bench, "anna")
    (tmp_path / "mine.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="no key file"):
        export_csv(bench.client, bench.workspace, tmp_path / "out", PSEUDONYMS, key_file=tmp_path / "mine.json")
    assert (tmp_path / "mine.json").read_text(encoding="utf-8") == content


def test_a_key_changed_by_another_export_meanwhile_is_not_overwritten(bench: Bench, tmp_path: Path) -> None:
    answered_by(bench, "anna")
    path = tmp_path / "key.json"

    def other_export(name: str, read: int, total: int) -> None:
        key = Pseudonyms(path)
        key.pseudonym("another", "another")
        key.save()

    with pytest.raises(OutputError, match="changed by another export"):
        export_csv(bench.client, bench.workspace, tmp_path / "out", PSEUDONYMS, key_file=path, progress=other_export)
    assert [path.name for path in tmp_path.iterdir()] == ["key.json"]
    assert "another" in path.read_text(encoding="utf-8")


def test_an_export_of_nothing_leaves_no_key_and_a_key_file_alone_is_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        bench.export(tmp_path / "out", anonymized=True)
    with pytest.raises(InputError, match="Give `--anonymize` too"):
        export_csv(bench.client, bench.workspace, tmp_path / "out", key_file=tmp_path / "key.json")
    assert not list(tmp_path.iterdir())


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
    window = ["--since", "2020-01-01", "--until", "2100-01-01"]
    hidden = ["--anonymize", "--key-file", str(key), "--spreadsheet-safe"]
    done = run(bench, monkeypatch, str(out), *workspaces, *people, *window, *hidden)
    assert done.exit_code == 0, done.output
    assert f"Who is who stands in {key}" in done.stderr
    assert manifest_of(out)["filters"] == {
        "tasks": [],
        "since": "2020-01-01T00:00:00Z",
        "until": "2100-01-01T00:00:00Z",
        "annotators": ["annotator-01"],
        "languages": ["de"],
        "rounds": ["production"],
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
