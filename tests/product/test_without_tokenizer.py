"""Where bpe-openai cannot be installed, only what counts tokens refuses, in one line and before it does anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.made_before import files_of, unpacked
from tests.support.places import ROOT

SITECUSTOMIZE = 'import sys\n\nsys.modules["bpe_openai"] = None  # an import of it, and a search for it, find nothing\n'
REPLAY = ("--replay", str(ROOT / "exports" / "demo_data" / "payloads"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an earlier commit made with the tokenizer, for those who only read it."""
    return unpacked("9c300d48", tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Python does not find bpe-openai."""
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "OPENAI_API_KEY": "no-key-of-anybody"}


def run(environment: dict[str, str], within: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the command said, in a process of its own."""
    command = [sys.executable, "-c", "from exports.cli import main; main()", *words]
    return subprocess.run(command, cwd=within, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ("pipeline", "ask", "narratives.csv", "--out", "OUT", *REPLAY),
        ("pipeline", "check", "answers/claude.csv"),
        ("pipeline", "verify", "report.md", "--offline", "--out", "OUT"),
        ("pipeline", "runs", "list"),
        ("pipeline", "sources", "--help"),
        ("annotation", "setup", "--help"),
        ("annotation", "serve", "--help"),
        ("annotation", "judge", "records.jsonl", "--out", "OUT"),
        ("annotation", "plan", "records.jsonl", "--out", "OUT"),
        ("exports", "agreement", "export", "--out", "OUT", "--resamples", "100"),
        ("exports", "results", "export", "--out", "OUT"),
        ("exports", "adjudicate", "list", "export_extended", "--out", "OUT"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_what_counts_no_tokens_works(
    blocked: dict[str, str], made: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = run(blocked, made, *(str(tmp_path / "out.csv") if word == "OUT" else word for word in words))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("pipeline", "sources", "answers", "--out", "again.jsonl", "--offline"),
        ("pipeline", "sources", "answers", "--out", "again.jsonl"),
        ("pipeline", "research", "What do burns need?", "--documents", "library", "--offline", "--run-id", "new"),
        ("pipeline", "verify", "report.md", "--offline", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"),
        ("demo", "--home", "demo", "--exit"),
    ],
    ids=" ".join,
)
def test_what_counts_tokens_refuses_in_one_line_and_leaves_nothing_behind(
    blocked: dict[str, str], made: Path, words: tuple[str, ...]
) -> None:
    before = files_of(made)
    refused = run(blocked, made, *words)
    assert refused.returncode == 1
    *told, line = refused.stderr.splitlines()
    assert told in ([], ["Asking m at http://127.0.0.1:9/v1."])
    assert line.startswith("Error: Counting tokens needs the library bpe-openai")
    assert "pip install bpe-openai" in line
    assert refused.stdout == ""
    assert files_of(made) == before
