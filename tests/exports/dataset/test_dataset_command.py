"""The folder that `exports dataset` writes, and its options."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS
from annotation.argilla.tasks import task_of
from annotation.server.launch import ServerHandle
from exports.cli.dataset import dataset
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.core.errors import InputError, OutputError
from tests.support.dataset_export import make, row, rows_of, write_export
from tests.support.export_bench import answers, full_bench, make_user, record, username

pytest.importorskip("datasets", reason="needs the extra data")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(dataset, list(map(str, words)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_export(tmp_path / "in", "generation", [row("generation", "r1")])


def test_an_earlier_dataset_is_replaced_other_files_and_exports_refused(tmp_path: Path, source: Path) -> None:
    make(tmp_path / "out", source)
    make(tmp_path / "out", write_export(source, "generation", [row("generation", "r2")]))
    assert [found["record_uuid"] for found in rows_of(tmp_path / "out", "generation")] == ["r2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    for place in ("thesis.txt", "parquet/thesis.txt", "parquet/generation/thesis.txt"):
        (tmp_path / "out" / place).write_text("my thesis", encoding="utf-8")
        with pytest.raises(OutputError, match=r"thesis\.txt', which is no part of a dataset"):
            make(tmp_path / "out", source)
        assert (tmp_path / "out" / place).read_text(encoding="utf-8") == "my thesis"
        (tmp_path / "out" / place).unlink()
    (source / "manifest.json").write_text('{"citejury": "0.1.0", "workspace": "w", "files": []}', encoding="utf-8")
    with pytest.raises(OutputError, match=r"generation\.csv"):
        make(source, source)
    assert (source / "generation.csv").is_file()
    manifest = {"citejury": "0.1.0", "files": [], "filters": {"spreadsheet_safe": True}}
    (source / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InputError, match="`--spreadsheet-safe`, which changes texts"):
        make(tmp_path / "out", source)
    (source / "manifest.json").unlink()
    lines = (source / "generation.csv").read_text(encoding="utf-8").replace("query,answer,", "query,reply,", 1)
    (source / "generation.csv").write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match="`answer`"):
        make(tmp_path / "out", source)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("generation", "r1", helpful="perhaps")], "`helpful`: found 'perhaps'"),
        ([row("generation", "r1", inserted_at="soon")], r"generation\.csv, line 2, `inserted_at`: found 'soon'"),
        ([], "no submitted response"),
    ],
)
def test_bad_input_leaves_the_earlier(tmp_path: Path, source: Path, rows: list[dict[str, object]], said: str) -> None:
    make(tmp_path / "out", source)
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    write_export(source, "generation", rows, ("inserted_at",))
    with pytest.raises(InputError, match=said):
        make(tmp_path / "out", source)
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_the_command_shows_a_table_names_what_comes_next_and_refuses_bad_options(tmp_path: Path) -> None:
    source = write_export(tmp_path / "in", "generation", [row("generation", f"r{n}") for n in range(30)])
    result = run(tmp_path / "out", "--from", source, "--split", "50,25,25", "--seed", "3")
    assert (result.exit_code, result.stdout) == (0, "")
    lines = [line.split() for line in result.stderr.splitlines()]
    (counts,) = [line for line in lines if line[:1] == ["generation"]]
    assert (counts[1:4], sum(map(int, counts[4:]))) == (["30", "30", "30"], 30)
    assert f"datasets.load_dataset('{tmp_path / 'out'}', 'generation')" in result.stderr
    options = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["options"]
    assert options == {"rule": "majority", "shares": {"train": 0.5, "validation": 0.25, "test": 0.25}, "seed": 3}
    for words, said in (
        (("--split", "80,20"), "'80,20' is not three shares"),
        (("--seed", "-1"), "Invalid value for '--seed'"),
    ):
        result = run(tmp_path / "out", "--from", tmp_path, *words)
        assert (result.exit_code, said in result.stderr) == (2, True), result.output


@pytest.mark.server
def test_a_dataset_has_guidelines_discards_and_pseudonyms_of_its_export(
    argilla_server: ServerHandle, tmp_path: Path
) -> None:
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as client:
        bench = full_bench(argilla_server, client, {who: make_user(client, who)["id"] for who in ("anna", "ben")})
        for task in TASKS:
            both = [bench.response(who, **answers(task)) for who in ("anna", "ben")]
            bench.put(task, *(record(task, f"r{n}", *both, provenance={"narrative_id": "n1"}) for n in range(3)))
            bench.put(task, record(task, "r3", bench.response("ben", "discarded", notes="wrong language")))
        versions = {
            task_of(found): found["metadata"]["guideline_version"] for found in client.datasets(bench.workspace_id)
        }
        names = {username(bench, who) for who in ("anna", "ben")}
        filters = ExportFilters(extended=True, discarded=True, anonymized=True)
        export_csv(client, bench.workspace, tmp_path / "export", filters)
    result = run(tmp_path / "out", "--from", tmp_path / "export")
    assert result.exit_code == 0, result.output
    people = {found["annotator_id"] for found in rows_of(tmp_path / "out", "grounding")}
    assert people == {"annotator-01", "annotator-02"}
    (place,) = {(found["split"], found["group"]) for task in TASKS for found in rows_of(tmp_path / "out", task)}
    assert len(place) == 2
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert all(f"- {task}: {versions[task]}" in card for task in TASKS)
    assert card.count("1 answer discarded, 14.3 %") == 3
    assert not any(name in card for name in (*names, "wrong language"))


@pytest.mark.server
def test_a_plain_export_gives_the_dataset_of_an_extended_one_less_its_columns(
    argilla_server: ServerHandle, tmp_path: Path
) -> None:
    told = {"model_name": "openai", "model_version": "gpt-5", "answer_id": "a", "run_id": "run", "contexts": "selected"}
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as client:
        bench = full_bench(argilla_server, client, {who: make_user(client, who)["id"] for who in ("anna", "ben")})
        for task in TASKS:
            both = [bench.response(who, **answers(task)) for who in ("anna", "ben")]
            records = [record(task, f"r{n}", *both, provenance={**told, "narrative_id": f"n{n}"}) for n in range(3)]
            bench.put(task, *records)
        export_csv(client, bench.workspace, tmp_path / "export")
        export_csv(client, bench.workspace, tmp_path / "extended", ExportFilters(extended=True, discarded=True))
    plain = run(tmp_path / "plain", "--from", tmp_path / "export")
    whole = run(tmp_path / "whole", "--from", tmp_path / "extended")
    assert (plain.exit_code, whole.exit_code) == (0, 0), plain.output + whole.output
    units = rows_of(tmp_path / "plain", "grounding_consensus")
    assert [(found["narrative_id"], found["model_name"], found["answer_id"]) for found in units] == [
        (f"n{n}", "openai", "a") for n in range(3)
    ]
    assert "come from" not in plain.stderr
    assert units == rows_of(tmp_path / "whole", "grounding_consensus")
    for task in TASKS:
        there = rows_of(tmp_path / "plain", task)
        same = [{name: found[name] for name in there[0]} for found in rows_of(tmp_path / "whole", task)]
        assert there == same
