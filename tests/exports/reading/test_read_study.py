"""Exports, and what lies beside them, as one study: narratives, provenance, weights, decisions, discards."""

import json
from pathlib import Path

import pytest

from exports.csv.schema import COLUMNS
from exports.reading.study import read_study
from exports.report.results_page import short_section
from exports.report.results_words import incomparable_sentences
from exports.report.sections import terminal_text
from exports.statistics.results import measure_results
from pipeline.core.errors import InputError
from tests.support.export_folders import AT, Answer, campaign, provenance_rows, vote_rows, write_export, write_rows


def test_provenance_narratives_and_votes_come_from_a_folder_and_contradictions_are_counted(tmp_path: Path) -> None:
    folder = write_export(tmp_path / "export", campaign())
    read = read_study([folder])
    assert [table.task for table in read.study.tables] == ["grounding", "generation"]
    assert read.study.provenance["r-claude-00"] == {"narrative_id": "n00", "model_name": "claude", "language": "en"}
    assert len(set(read.study.narratives.values())) == 12
    assert [file.file for file in read.inputs] == ["grounding.csv", "generation.csv", "provenance.csv"]
    assert (read.study.discarded, read.remarks) == (None, [])
    assert read_study([folder / "grounding.csv"]).study.provenance["r-gemini-01"]["model_name"] == "gemini"
    answers = campaign(narratives=1)
    one = write_export(tmp_path / "one", answers)
    other = write_export(tmp_path / "other", answers)
    rows = [row | {"model_name": "grok"} for row in provenance_rows(answers)]
    write_rows(other / "provenance.csv", rows)
    read = read_study([one, other])
    assert read.study.provenance["r-claude-00"]["model_name"] == "claude"
    assert any("say different things of 3 cells" in remark for remark in read.remarks)


def test_columns_of_extended_tell_provenance_and_a_record_without_id_joins_by_query(tmp_path: Path) -> None:
    rows = [
        row | {"model_name": row["record_uuid"].split("-")[1], "narrative_id": row["record_uuid"][-2:]}
        for row in vote_rows("generation", campaign())
    ]
    read = read_study([write_rows(tmp_path / "generation.csv", rows)])
    assert read.study.provenance["r-claude-03"] == {"language": "en", "model_name": "claude", "narrative_id": "03"}
    assert read.study.narratives["r-claude-03"] == read.study.narratives["r-gemini-03"] == "03"
    assert read.remarks == []
    answers = campaign(narratives=2)
    lost = Answer("lost", "grok", "", answers[0].query, {"anna": ()})
    assert read_study([write_export(tmp_path, [*answers, lost])]).study.narratives["lost"] == "n00"


def test_without_any_provenance_the_same_query_is_the_same_narrative_and_both_are_said(tmp_path: Path) -> None:
    read = read_study([write_export(tmp_path / "export", campaign(), provenance=False)])
    assert len(set(read.study.narratives.values())) == 12
    assert read.study.narratives["r-claude-03"] == read.study.narratives["r-gemini-03"]
    assert read.remarks == [
        "Which model answered is known of no record. Export again with `citejury exports csv`, which writes "
        "provenance.csv beside the three files.",
        "The narrative of 36 records of 36 has no id: those with the same query count as one narrative (different "
        "queries: 12).",
    ]
    # Without query too each record is a narrative of its own.
    read = read_study([write_export(tmp_path / "bare", campaign(), tasks=("grounding",), provenance=False)])
    assert len(set(read.study.narratives.values())) == 36
    assert "neither narrative nor query is known: each counts as a narrative of its own" in read.remarks[-1]


def test_ids_of_two_campaigns_that_mean_different_queries_are_kept_apart(tmp_path: Path) -> None:
    first = write_export(tmp_path / "spring", campaign(("claude",), 3))
    for same, joined in (("Is statement 1 true?", True), ("", False)):
        second = [
            answer._replace(query=same if answer.narrative == "n01" else f"Other {answer.query}")
            for answer in campaign(("gemini",), 3, prefix="s")
        ]
        read = read_study([first, write_export(tmp_path / "autumn", second)])
        told = read.study.narratives
        assert (told["r-claude-00"], told["s-gemini-00"]) == ("n00 (spring)", "n00 (autumn)")
        # An id whose query is not known stays apart where the campaigns differ elsewhere.
        assert (told["r-claude-01"] == told["s-gemini-01"] == "n01") == joined
        apart = "2 ('n00', 'n02')" if joined else "3 ('n00', 'n01', 'n02')"
        assert read.remarks == [
            f"Narrative ids that mean different queries in `autumn` and `spring`: {apart}. They are kept apart, and no "
            "group is compared across them."
        ]


def test_two_files_of_one_folder_may_be_of_two_campaigns_and_translations_under_one_id_are_one(tmp_path: Path) -> None:
    for name, query in (("spring", "Is it so?"), ("autumn", "Is it otherwise?")):
        answers = [Answer(f"{name}-1", "claude", "n1", query, {"anna": ()})]
        rows = [row | {"narrative_id": "n1", "model_name": name} for row in vote_rows("generation", answers)]
        write_rows(tmp_path / f"{name}.csv", rows)
    read = read_study([tmp_path / "spring.csv", tmp_path / "autumn.csv"])
    assert set(read.study.narratives.values()) == {"n1 (spring.csv)", "n1 (autumn.csv)"}
    asked = {"a": ("Is it so?", "en"), "b": ("Ist das so?", "de")}
    answers = [Answer(name, "claude", "n1", query, {"anna": ()}, code) for name, (query, code) in asked.items()]
    read = read_study([write_export(tmp_path / "one", answers)])
    assert set(read.study.narratives.values()) == {"n1"}
    assert read.remarks == [
        "Narrative ids with several queries in one export: 1 ('n1'). All records of an id count as one narrative."
    ]


def test_answers_in_another_language_than_asked_are_a_finding_of_their_own_with_their_groups(tmp_path: Path) -> None:
    query = "Die Stadt Bielefeld gibt es gar nicht."
    languages = {"claude": "de", "gemini": "und", "perplexity": "en"}
    answers = [each._replace(query=query, language=languages[each.model]) for each in campaign()]
    answers = [each if int(each.narrative[1:]) % 2 else each._replace(query="Why 42?") for each in answers]
    results = measure_results(read_study([write_export(tmp_path / "export", answers)]).study)
    found = results.findings["other_language"]
    groups = {each.by["model_name"]: (each.rate, each.n_units) for each in found.groups}
    assert (found.rate, found.n_units, found.n_incomplete) == (pytest.approx(6 / 36), 36, 0)
    assert groups == {"claude": (0, 12), "gemini": (0, 12), "perplexity": (0.5, 12)}
    (line,) = (each for each in terminal_text([short_section(results, 2)]).splitlines() if "another language" in each)
    assert line.split()[-7:] == ["17", "%", "[8,", "32]", "of", "36", "answers"]
    answers = [each._replace(query="") for each in answers]
    bare = write_export(tmp_path / "bare", answers, tasks=("grounding",), provenance=False)
    assert set(measure_results(read_study([bare]).study).findings) == {"serious_problem"}


def test_weights_and_decisions_come_along_and_those_of_unknown_records_are_told(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign(narratives=1))
    names = ("r-claude-00", "r-gemini-00", "r-perplexity-00")
    rows = [{"record_uuid": name, "stratum": "x", "inclusion_probability": "0.25"} for name in (*names, "unknown")]
    read = read_study([export], weights=write_rows(tmp_path / "sample.csv", rows))
    assert read.study.probabilities == dict.fromkeys(names, 0.25)
    assert read.remarks == ["`sample.csv` has 1 record without votes in these exports; they do not count."]
    assert read.inputs[-1].file == "sample.csv"
    row = {"task": "generation", "record_uuid": "r-claude-00", "chunk_id": "", "label": "helpful", "decision": "True"}
    row |= {"adjudicator": "dora", "created_at": AT}
    decisions = write_rows(tmp_path / "decisions.csv", [row, row | {"record_uuid": "elsewhere", "decision": "False"}])
    read = read_study([export], decisions=decisions)
    decided = {("r-claude-00", "", "helpful"): True, ("elsewhere", "", "helpful"): False}
    assert read.study.decisions == {"generation": decided}
    assert read.remarks == ["`decisions.csv` decides on units or labels without votes in these exports: 1."]


BAD = r"w\.csv, line 2, `inclusion_probability`: found '"


@pytest.mark.parametrize(
    ("probabilities", "column", "message"),
    [
        (["1"], "inclusion_probability", "no probability for 2 records of 3 with votes, such as 'r-gemini-00'"),
        (["1", "1"], "inclusion_probability", "line 3: a row above has the record 'r-claude-00' too"),
        (["1"], "p", "needs the column `inclusion_probability` once, found it 0 times"),
        *(([text], "inclusion_probability", BAD) for text in ("0", "1.01", "-0.5", "nan", "inf", "half", "")),
    ],
)
def test_bad_weights_are_refused(tmp_path: Path, probabilities: list[str], column: str, message: str) -> None:
    export = write_export(tmp_path / "export", campaign(narratives=1))
    rows = [{"record_uuid": "r-claude-00", column: text} for text in probabilities]
    with pytest.raises(InputError, match=message):
        read_study([export], weights=write_rows(tmp_path / "w.csv", rows))


def write_discards(folder: Path, task: str, answers: list[Answer], created_at: str = AT) -> None:
    rows = [row | {"response_status": "discarded", "created_at": created_at} for row in vote_rows(task, answers)]  # type: ignore[arg-type]
    write_rows(folder / f"{task}_discarded.csv", rows, [*COLUMNS[task], "response_status"])  # type: ignore[index]


def test_discards_are_counted_by_record_where_the_files_of_every_task_tell(tmp_path: Path) -> None:
    answers = campaign(narratives=1)
    folder = write_export(tmp_path, answers)
    thrown = answers[0]._replace(yes={"carla": (), "dora": ()})
    write_discards(folder, "grounding", [thrown, Answer("judged by nobody", yes={"carla": ()})])
    some = read_study([folder])
    assert some.study.discarded is None
    assert some.study.all_discarded == {"grounding": 3}
    write_discards(folder, "generation", [])
    read = read_study([folder])
    assert read.study.discarded == {("grounding", "r-claude-00"): 2, ("grounding", "judged by nobody"): 1}
    assert "judged by nobody" in read.study.narratives


def test_a_manifest_tells_that_nobody_discarded_or_how_many_did(tmp_path: Path) -> None:
    folder = write_export(tmp_path, campaign(narratives=1))
    assert read_study([folder]).study.discarded is None
    datasets = [{"task": task, "discarded": 0} for task in ("grounding", "generation", "generation")]
    (folder / "manifest.json").write_text(json.dumps({"datasets": datasets}), encoding="utf-8")
    assert read_study([folder]).study.discarded == {}
    datasets[2]["discarded"] = 3
    (folder / "manifest.json").write_text(json.dumps({"datasets": datasets}), encoding="utf-8")
    read = read_study([folder])
    assert read.study.discarded is None
    assert read.study.all_discarded == {"grounding": 0, "generation": 3}
    found = measure_results(read.study)
    assert found.tasks["generation"].labels["helpful"].denominators.discarded == 3
    assert found.tasks["grounding"].labels["support_present"].denominators.discarded == 0
    assert found.findings["serious_problem"].denominators.discarded == 3
    assert {group.denominators.discarded for group in found.findings["serious_problem"].groups} == {None}
    (told,) = [sentence for sentence in incomparable_sentences(found) if "discard" in sentence]
    assert "how many discarded responses belong to each group" in told
    assert read_study([folder / "grounding.csv"]).study.discarded == {}
    only = measure_results(read_study([folder / "generation.csv"]).study)
    assert only.findings["serious_problem"].denominators.discarded == 3
    assert not any("responses were discarded" in sentence for sentence in incomparable_sentences(only))


def test_a_discard_submitted_later_is_none_and_a_folder_without_submissions_is_refused(
    tmp_path: Path,
) -> None:
    answers = campaign(narratives=1)
    folder = write_export(tmp_path / "some", answers, tasks=("generation",))
    write_discards(folder, "generation", [answers[0]], "2026-02-01T12:00:00+00:00")
    assert read_study([folder]).study.discarded == {}
    with pytest.raises(InputError, match=r"There is no submitted response in `generation\.csv`"):
        read_study([write_export(tmp_path / "none", [], tasks=("generation",))])
