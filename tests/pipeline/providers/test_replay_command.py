import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from tests.support.places import DATA

PAYLOADS = DATA / "payloads"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["pipeline", *map(str, arguments)])


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


@pytest.mark.parametrize(
    ("options", "exit_code", "words"),
    [
        (("--providers", "bard"), 2, "There is no provider 'bard'"),
        (("--providers", ","), 2, "names no provider"),
        (("--model", "gpt"), 2, "'gpt' is not PROVIDER=NAME"),
        (("--max-rows", "0"), 2, "--max-rows"),
        (("--providers", "grok"), 1, "Known cost: 0.00 USD.\n  grok  not_recorded  1  There is no payload"),
    ],
)
def test_ask_refuses_what_it_cannot_do(narratives: Path, options: tuple[str, ...], exit_code: int, words: str) -> None:
    result = ask(narratives, *options)
    assert result.exit_code == exit_code
    assert words in result.stderr


def test_ask_makes_nothing_without_a_key_and_reports_answers(narratives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ("--id-column", "id", "--text-column", "note")
    result = run("ask", narratives, "--out", narratives.parent / "run", *columns)
    assert result.exit_code == 1
    assert "--replay" in result.stderr
    assert not (narratives.parent / "run").exists()
    folder = narratives.parent
    monkeypatch.chdir(folder)
    (folder / "citejury.toml").write_text('[models]\nanthropic = "from-file"\n', encoding="utf-8")
    result = ask(narratives)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        "claude: 1 answers, 2 citations",
        "0 kept, 1 new, 0 failed, spent now 0.00 USD (0.00 in all)",
        f"Next: citejury pipeline sources {folder / 'run'} --out records.jsonl",
    ]
    manifest = json.loads((folder / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["providers"]["claude"]["model_asked"] == "from-file"
    result = ask(narratives, "--providers", "grok,claude", "--model", "xai=grok-9")
    assert result.exit_code == 1
    assert "not answered: 1 not_recorded (see errors.jsonl)" in result.stderr
    error = json.loads((folder / "run" / "errors.jsonl").read_text(encoding="utf-8"))
    assert (error["provider"], error["model"], error["row"]) == ("grok", "grok-9", 1)
