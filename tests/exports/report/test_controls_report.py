"""What the report of agreement says of each annotator's answers to controls and repeats."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from exports.csv.schema import CONTROL_COLUMNS
from tests.support.export_folders import campaign, write_export, write_rows

SLY = "<b>ben</b>"


def row(who: str, kind: str, given: bool, **cells: str) -> dict[str, str]:
    told = {"annotator_id": who, "task": "generation", "kind": kind, "label": "helpful", "given": str(given)}
    return dict.fromkeys(CONTROL_COLUMNS, "") | told | cells


def rows(who: str, given: list[bool]) -> list[dict[str, str]]:
    """Answers to ten controls, every other with the known answer yes."""
    return [
        row(who, "known", said, record_uuid=f"c{number}", known=str(number % 2 == 0))
        for number, said in enumerate(given)
    ]


def measured(folder: Path, controls: list[dict[str, str]]) -> Result:
    write_export(folder / "export", campaign())
    if controls:
        write_rows(folder / "export" / "controls.csv", controls, CONTROL_COLUMNS)
    words = ["exports", "results", str(folder / "export"), "--out", str(folder / "out"), "--resamples", "100"]
    return CliRunner().invoke(main, words)


@pytest.fixture
def told(tmp_path: Path) -> Path:
    right = [number % 2 == 0 for number in range(10)]
    # In the files anna says yes to `helpful` for every answer: of her three repeats the last has no first answer.
    said = {"r-claude-01": True, "r-claude-02": False, "nobody": True}
    again = [row("anna", "repeat", yes, record_uuid=f"again-{of}", repeats=of) for of, yes in said.items()]
    done = measured(tmp_path, [*rows("anna", right), *rows(SLY, [True] * 10), *again])
    assert done.exit_code == 0, done.output
    assert f"{SLY} gives the same answer to `helpful` (generation) whatever is shown: 0 of 10" in done.output
    assert "anna gives" not in done.output
    return tmp_path / "out"


def test_reports_show_each_annotators_controls_and_agreement_is_the_same(told: Path, tmp_path: Path) -> None:
    page = (told / "details.html").read_text(encoding="utf-8")
    part = page.partition('id="controls"')[2].partition("<section")[0]
    assert 'href="#controls"' in page
    assert SLY not in page
    for there in ("gives the same answer to <code>helpful</code>", "100 %", "50 %"):  # self-consistency: one of two
        assert there in part
    text = (told / "agreement.md").read_text(encoding="utf-8").partition("## Controls")[2]
    (line,) = [line for line in text.splitlines() if line.startswith("| anna")]
    cells = [cell.split()[0] for cell in line.strip("|").split("|")]
    assert cells[1:6] == ["10", "100", "100", "2", "50"]
    (tmp_path / "bare").mkdir()
    assert measured(tmp_path / "bare", []).exit_code == 0
    bare = tmp_path / "bare" / "out"
    assert (bare / "agreement.json").read_bytes() == (told / "agreement.json").read_bytes()
    assert "Controls" not in (bare / "details.html").read_text(encoding="utf-8")
    files = [str(path) for path in sorted((told.parent / "export").glob("*.csv"))]  # as a shell names them
    done = CliRunner().invoke(main, ["exports", "results", *files, "--out", str(told), "--resamples", "100"])
    assert done.exit_code == 0, done.output
    assert "Controls" in (told / "details.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"given": "perhaps"}, "controls.csv, line 2: `known` and `given` are 'True' and 'perhaps'"),
        ({"label": "nice"}, "controls.csv, line 2: no answer to a label of a task"),
    ],
)
def test_bad_cells_are_listed(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    done = measured(tmp_path, [rows("anna", [True])[0] | change])
    assert done.exit_code == 1
    assert reason in done.output
    assert not (tmp_path / "out").exists()
