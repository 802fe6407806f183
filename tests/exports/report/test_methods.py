"""Paragraphs on methods from what was done, and the same pages in LaTeX, whatever names hold."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from exports.report.agreement_page import agreement_sections
from exports.report.methods import agreement_methods, results_methods
from exports.report.results_page import results_sections
from exports.report.sections import Section, latex, latex_text
from exports.statistics.ratings import InputFile
from pipeline.core.tables import Table
from tests.support.figures_data import HOSTILE, RICH, against_rest, agreement, label, task
from tests.support.results_data import HOSTILE_MODEL, results

FILE = InputFile(file="grounding.csv", sha256="0" * 64, rows=9, guidelines=("3f2a",))


def test_a_paragraph_says_who_judged_what_by_which_statistic_interval_test_and_correction() -> None:
    bounded = label(0.9, None, refused_intervals={"krippendorff_alpha": "single_record"})
    people = (against_rest("anna", 0.0, 0.0, 0.0),)
    figures = task({"helpful": label(), "incomplete": bounded}, annotators_vs_rest=people, discards=RICH.discards)
    told = agreement_methods(agreement(generation=figures).model_copy(update={"inputs": (FILE,)}))
    for part in (
        "Generation: 3 annotators judged 377 units of 90 records (208 by 1 annotator, 169 by 2 annotators).",
        "Guidelines: version 3f2a (grounding.csv).",
        "Discarded, and not counted: 4 responses.",
        "No responses to controls are known.",
        "Krippendorff's α (nominal)",
        "whole records with all their units and labels, jointly for all figures, with 2,000 resamples and seed 0.",
        "BCa bootstrap (1); refused: all shared units belong to one record (1).",
        "with Holm's correction for the annotators and labels of a task, at .05 ÷ 1; named are those",
    ):
        assert part in told, part
    assert "Whether responses were discarded is not known." in agreement_methods(agreement(generation=task({})))
    found = results()
    told = results_methods(found)
    tested = [each for part in (*found.findings.values(),) for each in part.differences if each.p is not None]
    assert len(tested) == 3
    for part in (
        "These are 60 answers to 12 narratives.",
        "No responses to controls are known.",
        "An answer or passage counts by the share",
        "Holm's correction",
    ):
        assert part in told, part
    assert re.search(r"\d+ of \d+ differences were tested, two-sided, by exchanging whole answers", told)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("α −.17 P⁺", r"$\alpha$ $-$.17 P$^{+}$"),
        (r"\input{x}%$&#_^~", r"\textbackslash{}input\{x\}\%\$\&\#\_\textasciicircum{}\textasciitilde{}"),
        ("a\nb\x00\u202e", r"a\unset{}b\unset{}\unset{}"),
        ("日本 é", r"\script{65E5}{日本} é"),
        ("שלום", r"\rtl{\script{05E9}{שלום}}"),
        ("καλά", r"\script{03BA}{καλά}"),
    ],
)
def test_latex_keeps_any_script_and_runs_no_command(text: str, written: str) -> None:
    assert latex(text) == written


NAMES = (
    "日本",
    "中国",
    "한국어",
    "Привет",
    "العربية",
    "} \\end{document}",
    r"\write18{touch ran}",
    "a--b ``x''",
    HOSTILE,
)


def test_a_name_that_cannot_be_set_is_told_where_there_is_one() -> None:
    assert "cannot be set" not in latex_text("exports results", [Section("日本")])
    assert "cannot be set" in latex_text("exports results", [Section("a\nb")])


@pytest.mark.rare
@pytest.mark.parametrize("engine", ["lualatex", "xelatex"])
def test_it_compiles_with_hostile_names_and_every_script(engine: str, tmp_path: Path) -> None:
    found = shutil.which("kpsewhich")
    needed = ["fontspec.sty", "longtable.sty", *(["luaotfload.sty"] if engine == "lualatex" else ["xetex.def"])]
    if not (found and shutil.which(engine)):
        pytest.skip(f"{engine} is not installed")
    for name in needed:
        if subprocess.run([found, name], capture_output=True, check=False).returncode:
            pytest.skip(f"{engine} lacks {name}")
    names = Table([("name", "n"), *((name, "−1") for name in NAMES)], left=1)
    sections = [*agreement_sections(agreement(retrieval=RICH), results((HOSTILE_MODEL, "日本", "中国")))]
    text = latex_text("exports agreement", [Section("Names", tables=(names,)), *sections, *results_sections(results())])
    (tmp_path / "page.tex").write_text(text, encoding="utf-8")
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
