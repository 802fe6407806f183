import inspect
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from types import FrameType

import pytest
from click.testing import CliRunner

from exports.cli import main
from tests.support.made_before import unpacked
from tests.support.places import ROOT

PACKAGES = tuple(str(ROOT / package) for package in ("pipeline", "annotation", "exports"))
DEMO = ROOT / "exports" / "demo_data"
NARRATIVE = "N001"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A folder with one narrative of the demo, its five payloads, and an export of an earlier commit."""
    head, *rows = (DEMO / "narratives.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (row,) = (row for row in rows if row.startswith(NARRATIVE))
    (tmp_path / "narratives.csv").write_text(head + row, encoding="utf-8")
    for payload in (DEMO / "payloads").glob(f"*/{NARRATIVE}.json"):
        (tmp_path / "payloads" / payload.parent.name).mkdir(parents=True)
        shutil.copy(payload, tmp_path / "payloads" / payload.parent.name)
    shutil.copytree(unpacked("9c300d48", tmp_path / "made") / "export", tmp_path / "export")
    return tmp_path


def is_import(frame: FrameType | None) -> bool:
    """Whether a module of ours is only being loaded: no datum goes through it then.

    What is a function of its own there differs between Pythons (PEP 709).
    """
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGES):
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def files_of(folder: Path, *words: str) -> list[str]:
    """The product's files in which a function ran for the command, its threads included."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED and not is_import(frame):
            found.add(frame.f_code.co_filename)

    with chdir(folder):
        profiled: Callable[..., object] | None = sys.getprofile()
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            result = CliRunner().invoke(main, words)
        finally:
            sys.setprofile(profiled)
            threading.setprofile(None)
    assert result.exit_code == 0, result.output
    return sorted(name.removeprefix(f"{ROOT}/") for name in found if name.startswith(PACKAGES))


def test_a_narrative_goes_through_few_files_to_its_records_and_an_export_to_its_agreement(campaign: Path) -> None:
    asked = files_of(campaign, "pipeline", "ask", "narratives.csv", "--replay", "payloads", "--out", "run")
    assert len(list((campaign / "run").glob("*.csv"))) == 5
    sources = files_of(campaign, "pipeline", "sources", "run", "--out", "records.jsonl", "--offline")
    assert len((campaign / "records.jsonl").read_text(encoding="utf-8").splitlines()) == 5
    assert len(asked) <= 30, asked
    assert len(sources) <= 30, sources
    files = files_of(campaign, "exports", "results", "export", "--out", "figures", "--resamples", "200")
    assert len(files) <= 60, files  # agreement and results in one command
