"""What runs tell, for people, where no text of others has power."""

import csv
import io

from exports.report.results_page import landscape_blocks, more_figures
from exports.report.tables import results_tables
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Passages
from exports.statistics.study import Study
from pipeline.core.tables import Table
from tests.support.printed import results_markdown
from tests.support.results_data import HOSTILE_MODEL, results
from tests.support.told_answers import surveyed


def test_what_runs_tell_says_what_stands_out_and_hostile_names_stay_text() -> None:
    shown = results_markdown(surveyed(("a", "b", "c")))
    for told in (
        "Questions, as the runs tell",
        "What the answers cite",
        "Answers without citations: c 50 %, a 0 %: 50 points apart",
        "on 40 narratives that both have.",
    ):
        assert told in shown
    assert "beyond chance, after" not in results_markdown(surveyed(("a",)))
    found = surveyed((HOSTILE_MODEL, "plain"))
    assert not {"\x1b", "\u202e"} & {*results_markdown(found)}
    assert "<img" not in results_markdown(found)
    safe = results_tables(found)["runs.csv"].csv().decode()
    assert [row["model_name"][:4] for row in csv.DictReader(io.StringIO(safe))] == ["'=1+", "plai"]


def dict_rows(table: Table) -> list[dict[object, object]]:
    names, *rows = table.rows
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_tables_for_programs_hold_every_figure_and_mrr_and_ndcg_have_no_per_cent() -> None:
    found = surveyed(("a", "b"))
    for block in landscape_blocks(found):
        assert all(len({len(row) for row in table.rows}) == 1 for table in block.tables)
    nothing = measure_results(Study((), {}, {}))
    assert list(landscape_blocks(nothing)) == []
    assert sorted(results_tables(nothing)) == ["differences.csv", "findings.csv", "results.csv"]
    tables = results_tables(found)
    assert {"runs.csv", "citations.csv", "sites.csv"} <= tables.keys()
    rates = {(row["label"], row["by_model_name"]): row["rate"] for row in dict_rows(tables["results.csv"])}
    assert rates["without_citations", "b"] == 0.5
    assert rates["source_gone", None] is not None
    assert {row["label"] for row in dict_rows(tables["differences.csv"])} == {"without_citations"}
    assert next((row["site"], row["citations"]) for row in dict_rows(tables["sites.csv"])) == ("a.example", 60)
    assert len({figure.name for figure in more_figures(found)}) == len(list(more_figures(found)))
    label = results().tasks["grounding"].labels["support_present"]
    measured = {"topically_relevant": label}
    sizes = {"n_records": 60, "n_passages": 180, "n_gaps": 0}
    parts = {"precision": measured, "hit_rate": measured, "reciprocal_rank": measured, "ndcg": label}
    passages = Passages(contexts="supplied", **sizes, **parts)
    (block,) = landscape_blocks(results().model_copy(update={"passages": (passages,)}))
    told = {str(row[0]): str(row[1]) for row in block.tables[0].rows if not str(row[0]).startswith("–")}
    assert told["Precision, topically_relevant"] == told["Records with a hit, topically_relevant"] == "80 % [72, 88]"
    assert told["MRR, topically_relevant"] == told["nDCG"] == ".80 [.72, .88]"
