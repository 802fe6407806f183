import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.sources.chunk import _tokenizer
from tests.support.judge_bench import judging_model
from tests.support.made_before import files_of, unpacked
from tests.support.places import ROOT

SITECUSTOMIZE = 'import sys\n\nsys.modules["bpe_openai"] = None  # an import of it, and a search for it, find nothing\n'
REPLAY = ("--replay", str(ROOT / "exports" / "demo_data" / "payloads"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an earlier commit made with the tokenizer, for those who only read it."""
    return unpacked("9c300d48", tmp_path_factory.mktemp("made"))


@pytest.fixture(autouse=True)
def _without_tokenizer(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither this process nor one that it starts finds bpe-openai."""
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    monkeypatch.setenv("OPENAI_API_KEY", "no-key-of-anybody")
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    monkeypatch.chdir(made)
    _tokenizer.cache_clear()
    yield
    _tokenizer.cache_clear()


@pytest.mark.parametrize(
    "words",
    [
        ("pipeline", "ask", "narratives.csv", "--out", "OUT", *REPLAY),
        ("pipeline", "check", "answers/claude.csv"),
        ("pipeline", "verify", "report.md", "--offline", "--out", "OUT"),
        ("pipeline", "research", "--list"),
        ("pipeline", "sources", "--help"),
        ("annotation", "setup", "--help"),
        ("annotation", "serve", "--help"),
        ("annotation", "judge", "records.jsonl", "--out", "OUT"),
        ("study", "plan", "records.jsonl", "--out", "OUT"),
        ("exports", "results", "export", "--out", "OUT", "--resamples", "100"),
        ("exports", "results", "export", "--out", "OUT"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_what_counts_no_tokens_works(tmp_path: Path, words: tuple[str, ...]) -> None:
    with judging_model() as environment:
        words = tuple(str(tmp_path / "out.csv") if word == "OUT" else word for word in words)
        done = CliRunner(env=environment).invoke(main, words)
    assert done.exit_code == 0, done.output


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
def test_what_counts_tokens_refuses_in_one_line_and_leaves_nothing_behind(made: Path, words: tuple[str, ...]) -> None:
    before = files_of(made)
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 1
    *told, line = refused.stderr.splitlines()
    assert told in ([], ["Asking m at http://127.0.0.1:9/v1."])
    assert line.startswith("Error: Counting tokens needs the library bpe-openai")
    assert "pip install bpe-openai" in line
    assert (refused.stdout, files_of(made)) == ("", before)
