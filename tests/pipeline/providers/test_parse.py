import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from tests.support.places import DATA, NO_SHARED, ROOT, SHARED

PAYLOADS = DATA / "payloads"
RECORDINGS = SHARED / "recordings"


def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(main, ["pipeline", *map(str, arguments)], input=stdin)


def test_parse_prints_one_object_with_text_citations_and_results() -> None:
    result = run("parse", "--provider", "perplexity", PAYLOADS / "perplexity_agent_ja.json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "text": "そうです[9][4]。違います[77]。はい[9]。",
        "citations": ["https://d.example/9", "https://b.example/4"],
        "search_results": [
            {"url": "https://a.example/1", "title": "甲", "snippet": "甲の抜粋"},
            {"url": "https://b.example/4", "title": "乙", "snippet": "乙の抜粋"},
            {"url": "https://c.example/other", "title": "丙", "snippet": ""},
            {"url": "https://d.example/9", "title": "", "snippet": "丁の抜粋"},
        ],
    }
    assert "そうです" in result.stdout
    assert result.stdout.count("\n") == 1


def test_parse_reads_stdin_and_takes_the_vendors_name() -> None:
    result = run("parse", "--provider", "anthropic", "-", stdin=(PAYLOADS / "claude_pause_turn_ja.json").read_bytes())
    assert json.loads(result.stdout)["citations"] == ["https://a.example/", "https://b.example/"]


@pytest.mark.parametrize("name", ["responses_queued.json", "gemini_sdk_blocked.json"])
def test_a_body_without_an_answer_is_read_with_what_is_there(name: str) -> None:
    result = run("parse", "--provider", "openai", PAYLOADS / name)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"text": "", "citations": [], "search_results": []}


def test_a_number_that_python_does_not_read_counts_as_absent() -> None:
    body = '{"choices": [{"message": {"content": "Yes."}}], "created": ' + "9" * 5000 + "}"
    result = run("parse", "--provider", "openai", "-", stdin=body.encode())
    assert json.loads(result.stdout)["text"] == "Yes."


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"upstream connect error", "not JSON"),
        (b"\x83\x8f\x83N", "not UTF-8"),
        (b"", "empty"),
        (b'{"hello": 1}', "no known shape"),
        (b'{"error": {"message": "Invalid API key: sk-abcdef1234567"}}', "Invalid API key: [redacted]"),
        ((PAYLOADS / "responses_failed.json").read_bytes(), "The model failed"),
    ],
)
def test_what_is_no_answer_is_one_line_and_exit_1(body: bytes, words: str) -> None:
    result = run("parse", "--provider", "openai", "-", stdin=body)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "sk-" not in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("openai", "missing.json"), "There is no file 'missing.json'"), (("opnai", "-"), "Did you mean 'openai'?")],
)
def test_a_wrong_argument_is_told(arguments: tuple[str, str], words: str) -> None:
    result = run("parse", "--provider", *arguments)
    assert result.exit_code == 1
    assert words in result.stderr


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_every_recording_is_parsed_or_refused_in_one_line() -> None:
    for path in sorted(RECORDINGS.glob("*/*")):
        if path.name.endswith(".meta.json"):
            continue
        result = run("parse", "--provider", path.parent.name, path)
        assert result.exit_code == (1 if path.name.startswith("error_") else 0), path.name
        assert result.exit_code or json.loads(result.stdout)
        assert not result.exit_code or (result.stdout, result.stderr.count("\n")) == ("", 1)


@pytest.fixture
def narratives(tmp_path: Path) -> Path:
    path = tmp_path / "narratives.csv"
    path.write_text("id,note\nN1,Die Zugspitze ist 3000 m hoch.\n", encoding="utf-8")
    (tmp_path / "replay" / "anthropic").mkdir(parents=True)
    payload = (PAYLOADS / "claude_messages_de.json").read_bytes()
    (tmp_path / "replay" / "anthropic" / "N1.json").write_bytes(payload)
    return path


def ask(narratives: Path, *options: str) -> Result:
    folder = narratives.parent
    columns = ("--id-column", "id", "--text-column", "note")
    return run("ask", narratives, "--out", folder / "run", "--replay", folder / "replay", *columns, *options)


def test_ask_tells_what_was_answered_and_names_the_next_command(narratives: Path) -> None:
    result = ask(narratives)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        "claude: 1 answers, 2 citations",
        "0 kept, 1 new, 0 failed, spent now 0.00 USD (0.00 in all)",
        f"Next: citejury pipeline sources {narratives.parent / 'run'} --out records.jsonl",
    ]


def test_ask_counts_what_was_not_answered(narratives: Path) -> None:
    result = ask(narratives, "--providers", "grok,claude", "--model", "xai=grok-9")
    assert result.exit_code == 0
    assert "not answered: 1 not_recorded (see errors.jsonl)" in result.stderr
    error = json.loads((narratives.parent / "run" / "errors.jsonl").read_text(encoding="utf-8"))
    assert (error["provider"], error["model"], error["row"]) == ("grok", "grok-9", 1)


@pytest.mark.parametrize(
    ("options", "exit_code", "words"),
    [
        (("--providers", "bard"), 2, "There is no provider 'bard'"),
        (("--providers", ","), 2, "names no provider"),
        (("--model", "gpt"), 2, "'gpt' is not PROVIDER=NAME"),
        (("--max-rows", "0"), 2, "--max-rows"),
        (("--providers", "grok"), 1, "Nothing was answered (1 not_recorded)"),
    ],
)
def test_ask_refuses_what_it_cannot_do(narratives: Path, options: tuple[str, ...], exit_code: int, words: str) -> None:
    result = ask(narratives, *options)
    assert result.exit_code == exit_code
    assert words in result.stderr


def test_ask_without_a_key_names_replay_and_makes_nothing(narratives: Path) -> None:
    columns = ("--id-column", "id", "--text-column", "note")
    result = run("ask", narratives, "--out", narratives.parent / "run", *columns)
    assert result.exit_code == 1
    assert "--replay" in result.stderr
    assert not (narratives.parent / "run").exists()


def test_models_of_the_settings_hold_until_an_option_names_another(
    narratives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(narratives.parent)
    (narratives.parent / "citejury.toml").write_text('[models]\nanthropic = "from-file"\n', encoding="utf-8")
    ask(narratives)
    manifest = json.loads((narratives.parent / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["providers"]["claude"]["model_asked"] == "from-file"


def test_the_module_of_the_commands_imports_nothing_heavy() -> None:
    code = "import sys, pipeline.cli.ask; print({'pydantic', 'rich', 'idna'} & set(sys.modules))"
    root = ROOT
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert found.strip() == "set()"
