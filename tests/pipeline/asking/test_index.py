import csv
import json
import os
import shutil
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner, Result

from annotation.push.record_sources import read_source
from exports.cli import main
from exports.reading.runs import read_runs
from pipeline.asking.index import IndexLine, cited_urls, index_file
from pipeline.asking.run_folder import RunManifest, read_manifest
from pipeline.asking.summary import reparse_run
from pipeline.core.errors import InputError
from pipeline.csv.file import read_answers, rows_as_bytes, write_answers
from pipeline.records.run import read_records
from tests.support.places import DATA
from tests.support.told_runs import replay_narratives

STORED = {
    "openai": ("openai_responses_ja.json", "openai_chat_artefacts_de.json"),
    "claude": ("claude_messages_de.json", "claude_pause_turn_ja.json"),
    "perplexity": ("perplexity_agent_ja.json", "perplexity_sonar_think_de.json"),
}
ROWS = 6


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with narratives, payloads and a finished run of them."""
    folder = tmp_path_factory.mktemp("asked")
    with open(folder / "narratives.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("narrative_id", "prompt"), *((f"N{row}", f"Text {row}") for row in range(ROWS))])
    for provider, names in STORED.items():
        (folder / "replay" / provider).mkdir(parents=True)
        for row in range(ROWS):
            shutil.copy(DATA / "payloads" / names[row % 2], folder / "replay" / provider / f"N{row}.json")
    replay_narratives(folder / "narratives.csv", folder / "run", folder / "replay")
    return folder


@pytest.fixture
def folder(asked: Path, tmp_path: Path) -> Path:
    """A copy of it, times included."""
    return shutil.copytree(asked, tmp_path / "asked")


def again(folder: Path, **more: object) -> RunManifest:
    return replay_narratives(folder / "narratives.csv", folder / "run", folder / "replay", **more)  # type: ignore[arg-type]


def ask(folder: Path, *options: str) -> Result:
    command = ["pipeline", "ask", str(folder / "narratives.csv"), "--out", str(folder / "run")]
    return CliRunner().invoke(main, [*command, "--replay", str(folder / "replay"), *options])


def held(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir() if path.name != "manifest.json"}


def unchanged(manifest: RunManifest) -> object:
    return manifest.model_copy(update={"finished": None, "last": None})


def test_a_finished_run_started_again_reads_its_indexes_and_not_its_answers(folder: Path) -> None:
    before, manifest, path = held(folder / "run"), read_manifest(folder / "run"), folder / "run" / "claude.csv"
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"', b"x", 1))  # whoever parses it refuses it now
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    told = again(folder)
    assert told.last is not None
    assert (told.last.kept, told.last.new, told.answers, unchanged(told)) == (18, 0, 18, unchanged(manifest))
    assert held(folder / "run") == before | {"claude.csv": path.read_bytes()}


def bytes_read() -> int:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="utf-8").splitlines())
    return int(lines["rchar"])


@pytest.mark.skipif(not Path("/proc/self/io").is_file(), reason="/proc tells what a process has read")
def test_starting_again_reads_hardly_anything_and_sources_reads_each_answer_once(folder: Path) -> None:
    for path in (folder / "replay" / "claude").iterdir():
        body = json.loads(path.read_bytes())
        (body[0] if isinstance(body, list) else body)["padding"] = "x" * 1_000_000
        path.write_text(json.dumps(body), encoding="utf-8")
    shutil.rmtree(folder / "run")
    again(folder, providers=["claude"])
    size = (folder / "run" / "claude.csv").stat().st_size
    words = ["pipeline", "sources", str(folder / "run"), "--offline", "--out", str(folder / "records.jsonl")]
    assert CliRunner().invoke(main, words).exit_code == 0  # what it imports is read now
    before = bytes_read()
    again(folder, providers=["claude"])
    between = bytes_read()
    assert CliRunner().invoke(main, words).exit_code == 0
    assert between - before < size / 10
    assert bytes_read() - between < size * 1.2


def test_an_answer_that_was_edited_is_read_again_and_counts_as_it_is_now(folder: Path) -> None:
    path, cited = folder / "run" / "claude.csv", folder / "run" / "citations.jsonl"
    answers, length, before = list(read_answers(path)), path.stat().st_size, cited.read_bytes()
    first, url, *others = answers[2].model_version, *answers[2].citations
    changes = {"model_version": first.swapcase(), "citations": (f"{url[:-1]}#", *others)}
    shorter = {"citations": answers[2].citations[:1], "domains": answers[2].domains[:1]}
    for edited in (answers[2].model_copy(update=changes), answers[2].model_copy(update=shorter)):
        write_answers(path, [*answers[:2], edited, *answers[3:]])
        if edited.model_version != first:
            os.utime(path, ns=(0, index_file(path).stat().st_mtime_ns + 1))
            assert path.stat().st_size == length
        told = again(folder)
        assert told.last is not None
        assert (told.last.kept, told.last.new) == (18, 0)
        assert edited.model_version in told.providers["claude"].models_answered
        lines = [IndexLine.model_validate_json(line) for line in index_file(path).read_bytes().splitlines()[1:]]
        wanted = [(each.answer_id, each.citations) for each in (*answers[:2], edited, *answers[3:])]
        assert [(line.answer_id, line.urls) for line in lines] == wanted
        assert cited.read_bytes() != before
        found = {
            json.loads(line)["url"] for line in cited.read_bytes().splitlines() if edited.answer_id.encode() in line
        }
        assert found <= {*edited.citations}


@pytest.mark.parametrize("what", ["missing", "torn", "of another file", "no index", "numbers without URL", "stretched"])
def test_an_index_that_does_not_fit_is_made_anew(folder: Path, what: str) -> None:
    before, manifest = held(folder / "run"), read_manifest(folder / "run")
    path = index_file(folder / "run" / "claude.csv")
    raw = path.read_bytes()
    spoiled = {
        "torn": raw[: len(raw) // 2],
        "of another file": index_file(folder / "run" / "openai.csv").read_bytes(),
        "no index": b"\0" * 4000,
        "numbers without URL": raw.replace(b'"places":[[1,', b'"places":[[9,', 1),
        "stretched": raw + raw.splitlines(keepends=True)[1],
    }
    if what == "missing":
        path.unlink()
    else:
        path.write_bytes(spoiled[what])
    assert (unchanged(again(folder)), held(folder / "run")) == (unchanged(manifest), before)


def test_a_copied_folder_keeps_its_indexes_which_say_where_each_answer_stands(folder: Path, tmp_path: Path) -> None:
    for path in (folder / "run").iterdir():
        os.utime(path)
    before = held(folder / "run")
    assert (ask(folder).exit_code, held(folder / "run")) == (0, before)
    assert cited_urls(folder / "run" / "openai.csv")
    path = folder / "run" / "perplexity.csv"
    lines = [IndexLine.model_validate_json(line) for line in index_file(path).read_bytes().splitlines()[1:]]
    raw, answers = path.read_bytes(), list(read_answers(path))
    starts = [raw.index(rows_as_bytes(answer)) for answer in answers]
    assert [line.end for line in lines] == [*starts[1:], len(raw)]
    assert [(line.answer_id, line.urls) for line in lines] == [(each.answer_id, each.citations) for each in answers]


def test_compressed_answers_are_the_same_to_every_command(folder: Path, tmp_path: Path) -> None:
    plain = shutil.copytree(folder / "run", tmp_path / "plain")
    done = ask(folder, "--compress")
    assert done.exit_code == 0, done.output
    assert "openai.csv: 6 answers are put under zstd.\n" in done.stderr
    assert "18 kept, 0 new" in done.stderr
    run = folder / "run"
    assert sorted(path.name for path in run.glob("*.csv*")) == [f"{name}.csv.zst" for name in sorted(STORED)]
    for name in STORED:
        with zstandard.open(run / f"{name}.csv.zst", "rb") as file:
            assert file.read() == (plain / f"{name}.csv").read_bytes()
    assert (run / "citations.jsonl").read_bytes() == (plain / "citations.jsonl").read_bytes()
    assert list(read_source(run, [])) == list(read_source(plain, [])) == list(read_records(run))
    assert list(read_source(run / "openai.csv.zst", [])) == list(read_source(plain / "openai.csv", []))
    told, wanted = read_runs([run]), read_runs([plain])
    assert (told.counts, told.answers.record_uuids) == (wanted.counts, wanted.answers.record_uuids)
    assert reparse_run(run, {}) == (18, 0, 0, False)
    for words in (["check", str(run)], ["sources", str(run), "--offline", "--out", str(tmp_path / "r.jsonl")]):
        found = CliRunner().invoke(main, ["pipeline", *words])
        assert found.exit_code == 0, found.output
    verified = CliRunner().invoke(main, ["pipeline", "verify", str(run / "claude.csv.zst"), "--no-fetch"])
    assert (verified.exit_code, verified.stdout.count("\n")) == (0, ROWS)


def test_a_compressed_run_goes_on_compressed_and_in_order(folder: Path) -> None:
    shutil.rmtree(folder / "run")
    (folder / "replay" / "claude").rename(folder / "kept")
    (folder / "replay" / "claude").mkdir()
    first = ask(folder, "--compress", "--max-rows", "2", "--providers", "openai,claude", "--allow-missing", "2")
    assert first.exit_code == 0, first.output
    assert list((folder / "run").glob("claude*")) == []  # who answers nothing has no file
    (folder / "replay" / "claude").rmdir()
    (folder / "kept").rename(folder / "replay" / "claude")
    os.truncate(folder / "run" / "openai.csv.zst", (folder / "run" / "openai.csv.zst").stat().st_size - 9)
    assert "1 kept, 17 new, 0 failed" in ask(folder).stderr
    for name in STORED:
        answers = read_answers(folder / "run" / f"{name}.csv.zst")
        assert [each.narrative_id for each in answers] == [f"N{row}" for row in range(ROWS)]
    assert not list((folder / "run").glob("*.csv"))


def test_killed_while_it_is_compressed_a_run_goes_on_and_a_reparse_moves_only_what_changed(folder: Path) -> None:
    before = held(folder / "run")
    (folder / "run" / "claude.csv.zst").write_bytes(b"half a file")
    again(folder)
    assert held(folder / "run") == before
    assert ask(folder, "--compress").exit_code == 0
    path = folder / "run" / "claude.csv.zst"
    answers, before = list(read_answers(path)), held(folder / "run")
    write_answers(path, [*answers[:3], answers[3].model_copy(update={"answer_text": "old"}), *answers[4:]])
    index_file(path).unlink()
    assert (reparse_run(folder / "run", {}), held(folder / "run")) == ((18, 1, 0, False), before)


def test_answers_that_stand_there_twice_are_refused_in_one_line(folder: Path) -> None:
    assert ask(folder, "--compress").exit_code == 0
    with zstandard.open(folder / "run" / "claude.csv.zst", "rb") as packed:
        (folder / "run" / "claude.csv").write_bytes(packed.read())
    before = held(folder / "run")
    done = ask(folder)
    assert done.exit_code == 1
    assert "has both `claude.csv` and `claude.csv.zst`" in done.stderr
    with pytest.raises(InputError, match="Remove the one that is a copy"):
        list(read_source(folder / "run", []))
    assert held(folder / "run") == before
