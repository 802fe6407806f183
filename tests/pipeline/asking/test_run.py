import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.run import recorded_providers
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import locked_folder
from pipeline.core.schema import StoredAnswer
from pipeline.csv.file import read_answers
from pipeline.csv.rows import identify_call
from tests.support.csv_check import check_file
from tests.support.places import DATA, NO_SHARED, ROOT, SHARED
from tests.support.told_runs import replay_narratives

RECORDINGS = SHARED / "recordings"
TWO, REPLAY, RUN = Path("narratives.csv"), Path("replay"), Path("run")
RUN_ID = "00000000-0000-4000-8000-000000000001"


def write_narratives(*rows: tuple[str, str]) -> Path:
    with open(TWO, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("narrative_id", "prompt"), *rows])
    return TWO


def store(folder: Path, name: str, payload: str, meta: str = "") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(payload, encoding="utf-8")
    if meta:
        path.with_name(path.name.rsplit(".", 1)[0] + ".meta.json").write_text(meta, encoding="utf-8")


def saved(name: str) -> str:
    return ((DATA / "payloads") / name).read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two narratives and payloads of three providers, some under the vendors' names."""
    monkeypatch.chdir(tmp_path)
    write_narratives(("N1", "ワクチンは危険だ"), ("N2", "Der Rhein ist kurz."))
    store(REPLAY, "openai/N1.json", saved("openai_responses_ja.json"), '{"status": "200*"}')
    store(REPLAY, "openrouter/N2.json", saved("openai_chat_artefacts_de.json"))
    store(REPLAY, "anthropic/N1.json", saved("claude_messages_de.json"))
    store(REPLAY, "anthropic/N2.json", saved("claude_pause_turn_ja.json"))
    store(REPLAY, "perplexity/N1.json", saved("perplexity_agent_ja.json"))


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(out: Path) -> dict[str, list[StoredAnswer]]:
    return {path.stem: list(read_answers(path)) for path in sorted(out.glob("*.csv"))}


def without_times(out: Path) -> object:
    rows = {
        name: [each.model_copy(update={"answer_timestamp": ""}) for each in all_] for name, all_ in answers(out).items()
    }
    return rows, lines(out / "citations.jsonl"), [line | {"timestamp": ""} for line in lines(out / "errors.jsonl")]


def test_a_run_holds_a_csv_for_each_provider_and_what_could_not_be_answered() -> None:
    manifest = replay_narratives(TWO.resolve(), RUN.resolve(), REPLAY.resolve())
    found = answers(RUN)
    ids = {name: [each.narrative_id for each in all_] for name, all_ in found.items()}
    assert ids == {"claude": ["N1", "N2"], "openai": ["N1", "N2"], "perplexity": ["N1"]}
    assert found["openai"][0].answer_raw_json == saved("openai_responses_ja.json")
    assert found["openai"][0].answer_prompt.startswith("ワクチンは危険だ")
    assert (manifest.answers, manifest.errors) == (5, {"not_recorded": 1})
    assert manifest.providers["openai"].cut_short == {"length": 1}
    assert manifest.providers["claude"].models_answered == {"claude-test-1": 1, "claude-test-2": 1}
    assert [each for name in found for each in check_file(RUN / f"{name}.csv")] == []
    text = (RUN / "manifest.json").read_text(encoding="utf-8")
    assert str(Path.cwd()) not in text  # a path may name a person
    assert json.loads(text) == manifest.model_dump()
    assert (UUID(manifest.run_id).version, manifest.narratives.file) == (4, "narratives.csv")


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_a_run_over_all_recordings_answers_every_one_that_is_an_answer() -> None:
    sidecars = {path: json.loads(path.read_text(encoding="utf-8")) for path in RECORDINGS.glob("*/*.meta.json")}
    ids = sorted({path.name.removesuffix(".meta.json") for path in sidecars})
    narratives = write_narratives(*((each, f"About {each}") for each in ids))
    manifest = replay_narratives(narratives, RUN, RECORDINGS)
    failures = [each for each in sidecars.values() if each["api_shape"] in ("error", "non-json")]
    assert manifest.answers == len(sidecars) - len(failures)
    assert sum(manifest.errors.values()) - manifest.errors["not_recorded"] == len(failures)
    assert [each for file in RUN.glob("*.csv") for each in check_file(file)] == []


def test_a_missing_payload_and_a_stored_error_are_lines_of_errors() -> None:
    error = '{"error": {"message": "No such key: sk-abcdef123456", "code": "invalid_api_key"}}'
    store(Path("r"), "openai/N1.json", error, '{"status": 401, "request_body": {"model": "gpt-asked"}}')
    store(Path("r"), "gemini/N1.json", saved("gemini_generate_ja.json"))
    replay_narratives(TWO, RUN, Path("r"), models={"gemini": "gemini-asked"})
    missing = "There is no payload `{}/N2.json` in the replay folder."
    message = "The provider answered with an error: No such key: [redacted]"
    assert [list(line.values())[:8] for line in lines(RUN / "errors.jsonl")] == [
        ["N1", 1, "openai", "gpt-asked", "auth", 401, message, 1],
        ["N2", 2, "openai", "", "not_recorded", None, missing.format("openai"), 0],
        ["N2", 2, "gemini", "gemini-asked", "not_recorded", None, missing.format("gemini"), 0],
    ]


@pytest.mark.parametrize(
    ("name", "payload", "meta", "kind"),
    [
        ("N1.txt", "upstream connect error", '{"status": 503}', "server"),
        ("N1.html", "<html><title>401 Authorization Required</title>", '{"status": "401"}', "auth"),
        ("N1.html", "<html>", "", "bad_response"),
        ("N1.json", "{}", '{"status": 429}', "rate_limit"),
        ("N1.json", '{"choices": []}', '{"status": "HTTP 429"}', "rate_limit"),
        ("N1.json", "{}", "[1]", "bad_response"),
        ("N1.json", "{}", "{", "bad_response"),
    ],
)
def test_a_body_that_is_no_answer_is_an_error_of_its_kind(name: str, payload: str, meta: str, kind: str) -> None:
    store(REPLAY, f"grok/{name}", payload, meta)
    replay_narratives(TWO, RUN, REPLAY, max_rows=1)
    assert [(line["provider"], line["kind"]) for line in lines(RUN / "errors.jsonl")] == [("grok", kind)]


@pytest.mark.parametrize("narrative_id", ["../N1", "/etc/passwd", "..", "a\\b", "N1\n", "x" * 300])
def test_an_id_that_is_no_file_name_is_never_looked_for(narrative_id: str) -> None:
    store(REPLAY, "N1.json", saved("claude_messages_de.json"))
    narratives = write_narratives((narrative_id, "Where?"), ("N2", "Da."))
    manifest = replay_narratives(narratives, RUN, REPLAY, providers=["claude"])
    assert (manifest.answers, manifest.errors) == (1, {"not_recorded": 1})
    assert "no plain file name" in str(lines(RUN / "errors.jsonl")[0]["message"])


def test_rows_that_share_an_id_have_answers_of_their_own() -> None:
    store(REPLAY, "anthropic/N1.2.json", saved("claude_pause_turn_ja.json"))
    narratives = write_narratives(("N1", "Same."), ("N1", "Same."), ("N1", "Third."))
    replay_narratives(narratives, RUN, REPLAY, providers=["claude"])
    first, second = answers(RUN)["claude"]
    assert first.answer_id != second.answer_id
    assert (first.model_version, second.model_version) == ("claude-test-1", "claude-test-2")
    assert lines(RUN / "errors.jsonl")[0]["row"] == 3


def test_model_version_falls_back_from_the_body_to_what_was_asked() -> None:
    body = '{"choices": [{"message": {"content": "Yes."}}]}'
    store(Path("r"), "openai/N1.json", body, '{"request_body": {"model": "recorded"}}')
    store(Path("r"), "openai/N2.json", body)
    replay_narratives(TWO, Path("one"), Path("r"))
    replay_narratives(TWO, Path("two"), Path("r"), models={"openai": "asked"})
    assert [each.model_version for each in answers(Path("one"))["openai"]] == ["recorded", "unknown"]
    assert [each.model_version for each in answers(Path("two"))["openai"]] == ["asked", "asked"]


def test_started_again_a_run_keeps_answers_and_errors_and_puts_what_is_found_later_in_its_place() -> None:
    narratives = write_narratives(("N0", "Zero."), ("N1", "One."), ("N2", "Two."))
    replay_narratives(narratives, RUN, REPLAY, providers=["claude", "openai"], max_rows=2)
    before = answers(RUN)
    store(REPLAY, "anthropic/N1.json", "not JSON any more")
    store(REPLAY, "anthropic/N0.json", saved("claude_messages_de.json"))
    replay_narratives(narratives, RUN, REPLAY, providers=["claude"])
    after = answers(RUN)
    assert (after["claude"][1], after["openai"]) == (before["claude"][0], before["openai"])
    assert [each.narrative_id for each in after["claude"]] == ["N0", "N1", "N2"]
    assert [(line["provider"], line["row"]) for line in lines(RUN / "errors.jsonl")] == [("openai", 1)]


def test_payloads_that_changed_since_their_answers_were_kept_are_named() -> None:
    def ask(*options: str) -> Result:
        command = ["pipeline", "ask", str(TWO), "--out", str(RUN), "--replay", str(REPLAY), *options]
        return CliRunner().invoke(main, command)

    assert "Stored payloads" not in ask("--providers", "openai,claude,perplexity").stderr
    kept = (RUN / "openai.csv").read_bytes()
    unchanged = ask("--providers", "openai,claude", "--strict")
    assert (unchanged.exit_code, "Stored payloads" in unchanged.stderr) == (0, False)
    store(REPLAY, "openai/N1.json", saved("openai_responses_ja.json").replace("ワクチン", "水"))
    (REPLAY / "anthropic" / "N2.json").unlink()
    again = ask("--providers", "openai,claude")
    assert again.exit_code == 0
    assert "Stored payloads that have changed since their answers were kept: 1 (openai/N1)." in again.stderr
    assert "4 kept, 0 new, 0 failed, spent now 0.00 USD (0.00 in all)\n" in again.stderr
    assert (RUN / "openai.csv").read_bytes() == kept
    assert ask("--providers", "openai,claude", "--strict").exit_code == 1


def test_appended_narratives_are_asked_and_changed_ones_refused() -> None:
    replay_narratives(write_narratives(("N1", "One.")), RUN, REPLAY, providers=["claude"])
    longer = write_narratives(("N1", "One."), ("N2", "Two."))
    assert replay_narratives(longer, RUN, REPLAY, providers=["claude"]).answers == 2
    before = {path.name: path.read_bytes() for path in RUN.iterdir()}
    changed = write_narratives(("N1", "One."), ("N2", "Other."))
    with pytest.raises(InputError, match=r"'N2' has another text now \(line 3\), it was asked as 'Two.'"):
        replay_narratives(changed, RUN, REPLAY)
    with pytest.raises(InputError, match="'N2' is no longer among the narratives"):
        replay_narratives(write_narratives(("N1", "One.")), RUN, REPLAY)
    assert {path.name: path.read_bytes() for path in RUN.iterdir()} == before


def test_a_folder_that_holds_something_else_is_refused_and_untouched() -> None:
    RUN.mkdir()
    for content in ("notes", '{"kind": "other"}', '{"run_id": "../../x"}'):
        (RUN / "manifest.json").write_text(content, encoding="utf-8")
        with pytest.raises(OutputError, match="name another folder"):
            replay_narratives(TWO, RUN, REPLAY)
    assert [path.name for path in RUN.iterdir()] == ["manifest.json"]
    with pytest.raises(OutputError, match=r"holds no `manifest\.json`"):
        replay_narratives(TWO, REPLAY, REPLAY)
    with pytest.raises(OutputError, match="not a folder"):
        replay_narratives(TWO, TWO, REPLAY)
    with locked_folder(RUN), pytest.raises(OutputError, match="Another `pipeline ask`"):
        replay_narratives(TWO, RUN, REPLAY)
    (RUN / "manifest.json").unlink()
    (RUN / ".manifest.json.0.part").write_bytes(b"{")  # what a kill leaves
    assert replay_narratives(TWO, RUN, REPLAY).answers == 5


def test_a_provider_without_answers_is_in_the_manifest_with_the_model_asked() -> None:
    replay_narratives(TWO, RUN, REPLAY, providers=["claude", "grok"], models={"grok": "g", "openai": "o"})
    manifest = replay_narratives(TWO, RUN, REPLAY, providers=["claude"])
    asked = {name: (counts.model_asked, counts.answers) for name, counts in manifest.providers.items()}
    assert asked == {"claude": ("", 2), "grok": ("g", 0)}


def test_nothing_answered_or_no_payloads_are_refused() -> None:
    (Path("r") / "claude").mkdir(parents=True)
    with pytest.raises(InputError, match=r"Nothing was answered \(2 not_recorded\)"):
        replay_narratives(TWO, RUN, Path("r"))
    assert len(lines(RUN / "errors.jsonl")) == 2
    with pytest.raises(InputError, match="has no folder of a provider"):
        recorded_providers(RUN)
    with pytest.raises(InputError, match="There is no folder"):
        replay_narratives(TWO, Path("another"), Path("missing"))
    assert not Path("another").exists()


def test_the_identity_of_a_call_depends_on_every_part() -> None:
    parts = [("claude", "N1", "text", 1), ("grok", "N1", "text", 1), ("claude", "N11", "text", 1)]
    parts += [("claude", "N1", "text", 2), ("claude", "N1", "other", 1), ("claude", "N", "1text", 1)]
    ids = [identify_call(RUN_ID, *each) for each in parts]
    assert len(set(ids)) == len(ids)
    assert identify_call(RUN_ID, *parts[0]) == ids[0] != identify_call(RUN_ID, *parts[0], repeat=2)


KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from tests.support.told_runs import replay_narratives
narratives, out, folder, calls = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
settled = []
def report(call, total):
    settled.append(call)
    if len(settled) == calls:
        os.kill(os.getpid(), signal.SIGKILL)
replay_narratives(narratives, out, folder, report=report)
"""


@pytest.mark.parametrize("calls", [1, *(pytest.param(calls, marks=pytest.mark.rare) for calls in (2, 4)), 6])
def test_killed_after_any_call_and_started_again_the_run_is_the_same(calls: int) -> None:
    command = [sys.executable, "-c", KILLED_RUN, *(str(path.resolve()) for path in (TWO, RUN, REPLAY)), str(calls)]
    assert subprocess.run(command, check=False, cwd=ROOT).returncode == -signal.SIGKILL
    kept = {each.answer_id: each.answer_timestamp for all_ in answers(RUN).values() for each in all_}
    replay_narratives(TWO, RUN, REPLAY)
    again = {each.answer_id: each.answer_timestamp for all_ in answers(RUN).values() for each in all_}
    assert kept.items() <= again.items()
    assert (len(again), len(lines(RUN / "errors.jsonl"))) == (5, 1)
    assert not [path for path in RUN.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.9, 0.999])
def test_torn_in_the_middle_of_a_write_the_run_is_made_whole(share: float) -> None:
    replay_narratives(TWO, RUN, REPLAY)
    whole = without_times(RUN)
    for name in ("claude.csv", "perplexity.csv", "errors.jsonl", "citations.jsonl"):
        os.truncate(RUN / name, int((RUN / name).stat().st_size * share))
    (RUN / ".claude.csv.0.part").write_bytes(b"left by a kill")
    replay_narratives(TWO, RUN, REPLAY)
    assert without_times(RUN) == whole
    assert not (RUN / ".claude.csv.0.part").exists()
