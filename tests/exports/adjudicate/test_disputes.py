"""Disputes of a judge with the jury: which they are, and what is shown of them."""

from pathlib import Path

from annotation.argilla.wording import read_wording
from exports.adjudicate.adjudication import (
    Asked,
    UnitId,
    decide,
    dispute_text,
    find_disputes,
    standing_quotes,
    votes_text,
)
from exports.reading.read import export_files, read_tables
from exports.statistics.consensus import ControlVotes
from exports.statistics.judge import JudgedUnits
from tests.support.agreement_data import Row, ratings_of
from tests.support.claims_task import claims_known, write_claims

LATE = "2027-01-01T00:00:00+00:00"
YES, NO = (True, 0.9), (False, 0.1)


def jury(**votes: tuple[int, ...]) -> list[Row]:
    """Votes on support_present by record: annotators a, b, c in order."""
    return [
        Row(record, name, (value, 0, 0))
        for record, values in votes.items()
        for name, value in zip("abc", values, strict=False)
    ]


def judged(quoted: tuple[str, ...], **answers: tuple[bool, float]) -> JudgedUnits:
    labels = {(record, ""): {"support_present": answer} for record, answer in answers.items()}
    return JudgedUnits(labels, {}, {(record, ""): ("some words",) for record in quoted})


def test_a_dispute_is_a_quoted_answer_against_the_majority_also_of_controls_in_an_order_that_tells_nothing() -> None:
    ratings = ratings_of(jury(r1=(1, 1, 0), r2=(0, 0, 0), r3=(0, 0, 1), r4=(1, 0)), "grounding")
    said = judged(("r1", "r3", "r4", "r9"), r1=NO, r2=YES, r3=NO, r4=YES, r9=YES)
    found = find_disputes([ratings], {}, {"grounding": said})
    assert found.units == {UnitId("grounding", "r1", ""): ("support_present",)}
    assert found.quotes == {UnitId("grounding", "r1", ""): ("some words",)}
    assert (found.n_without_quote, found.n_unknown) == (1, 1)
    for chosen in ({"labels": ["helpful"]}, {"tasks": ["retrieval"]}):
        assert find_disputes([ratings], {}, {"grounding": said}, **chosen).units == {}
    rows = jury(**{f"r{number}": (number % 2,) * 3 for number in range(12)})
    judges = {f"r{number}": NO if number % 2 else YES for number in range(12)} | {"k1": YES}
    said = judged(tuple(judges), **judges)
    controls = {("grounding", "k1", "", "support_present"): ControlVotes(known=True, n_yes=1, n_no=2)}
    units = list(find_disputes([ratings_of(rows, "grounding")], controls, {"grounding": said}).units)  # type: ignore[arg-type]
    assert UnitId("grounding", "k1", "") in units
    records = [unit.record_uuid for unit in units]
    assert records not in (sorted(records), sorted(records, reverse=True))
    assert records.index("k1") not in (0, len(records) - 1)


def test_a_quote_stands_where_only_marks_differ_and_answers_are_shown_alike_with_quotes_escaped() -> None:
    text = "Honey “eases”  the cough – of children."
    assert standing_quotes(text, ['honey "eases" the cough', "Honey cures", "", "honey “eases” the cough"]) == (
        'honey "eases" the cough',
        "honey “eases” the cough",
    )
    quotes = ["<b>zeal</b>\nof bees", "Apples"]
    for wording in map(read_wording, ("en", "de", "ja")):
        shown = dispute_text(quotes, "grounding", wording, ["support_present"])
        assert shown == dispute_text(quotes[::-1], "grounding", wording, ["support_present"])
        assert f"{wording.answers['yes']} · {wording.answers['no']}" in shown
        assert "<b>" not in shown
        assert shown.index("zeal") < shown.index("Apples")
        assert wording.adjudication["look"] in shown


def test_votes_on_scales_are_shown_by_the_titles_of_values_in_their_order_and_decisions_are_the_values(
    tmp_path: Path,
) -> None:
    said = [("right", "=advice", 1), ("partly", "fact", 1), ("right", "=advice", 0)]
    with claims_known(tmp_path):
        responses = [
            {
                "status": "submitted",
                "values": {label: {"value": value} for label, value in zip(names, each, strict=True)},
            }
            for names in [("accuracy", "kind", "sureness")]
            for each in said
        ]
        shown = votes_text(responses, "claims", read_wording("en"), ("accuracy", "kind", "sureness"))
    assert shown.split("\n\n") == [
        "How accurate is it?\nPartly right: 1 · Right: 2",
        "What is it?\nA fact: 1 · Advice: 2",
        "How sure are you?\n0: 1 · 1: 2",
    ]
    rows = [
        {"record_uuid": "r1", "annotator_id": "dora", "accuracy": "partly", "sureness": "0.5", "created_at": LATE},
        {"record_uuid": "r1", "annotator_id": "emil", "accuracy": "partly", "sureness": "2"},
    ]
    tables = read_tables(export_files([write_claims(tmp_path / "export", rows)])).tables
    unit = UnitId("claims", "r1", "")
    found = decide(tables, {unit: Asked(frozenset({"accuracy", "sureness"}), frozenset({"emil"}))})
    assert [(row.label, row.decision, row.adjudicator, row.created_at, row.own) for row in found.decisions.rows] == [
        ("accuracy", "partly", "dora; emil", LATE, True)
    ]
    assert [(each.label, each.votes) for each in found.undecided] == [("sureness", {"dora": "0.5", "emil": "2"})]
