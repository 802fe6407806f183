"""What the jury found: rates, groups, differences and composite findings, by hand and at the edges."""

import numpy as np
import pytest

from exports.statistics.results import measure_results
from exports.statistics.results_schema import Difference, LabelResults, Results
from exports.statistics.study import SERIOUS_PROBLEM, FindingDefinition, RunCounts, Study
from pipeline.core.errors import InputError
from tests.support.study_data import Answer, study_of


def helpful(narrative: str, model: str, *votes: int, language: str = "en") -> Answer:
    return Answer(narrative, model, {"generation": [{"helpful": vote} for vote in votes]}, language)


def label_of(found: Results, label: str = "helpful") -> LabelResults:
    return next(task.labels[label] for task in found.tasks.values() if label in task.labels)


def only(differences: tuple[Difference, ...]) -> Difference:
    (found,) = differences
    return found


SMALL = study_of(
    [
        helpful("n1", "a", 1, 1),
        helpful("n1", "b", 1, 0),
        helpful("n2", "a", 1, 1, 0),
        helpful("n2", "b", 0, 0),
        helpful("n3", "a", 0),
    ]
)


def test_rates_and_paired_differences_of_shares_majorities_decisions_and_weights() -> None:
    found = label_of(measure_results(SMALL))
    assert found.rate == pytest.approx((1 + 1 / 2 + 2 / 3 + 0 + 0) / 5)
    assert (found.n_units, found.n_narratives, found.n_undecided) == (5, 3, 0)
    rates = {group.by["model_name"]: group.rate for group in found.groups}
    assert rates == {"a": pytest.approx(5 / 9), "b": pytest.approx(1 / 4)}
    assert 0 <= found.interval.low < found.rate < found.interval.high <= 1
    difference = only(found.differences)
    assert (difference.a, difference.b, difference.n_narratives, difference.stands_out) == ("a", "b", 2, False)
    measured = (difference.rate_a, difference.rate_b, difference.difference)
    assert measured == pytest.approx(((1 + 2 / 3) / 2, 1 / 4, (1 / 2 + 2 / 3) / 2))
    assert difference.p == difference.p_holm == 0.5  # of the four exchanges two are as large
    found = label_of(measure_results(SMALL, consensus="majority"))
    assert found.rate == pytest.approx((1 + 1 + 0 + 0) / 4)
    assert (found.n_units, found.n_undecided) == (4, 1)
    assert (only(found.differences).n_narratives, only(found.differences).undefined) == (1, "one_narrative")
    told = {("n1/b/en", "", "helpful"): True, ("nowhere", "", "helpful"): True}
    decided = SMALL._replace(decisions={"generation": told})
    found = label_of(measure_results(decided, consensus="adjudicated"))
    assert found.rate == pytest.approx((1 + 1 + 0 + 0) / 4)  # n2/a is disputed, and nobody decided
    assert (found.n_units, found.n_undecided) == (4, 1)
    odds = {record: 0.5 if record.startswith("n1") else 1.0 for record in SMALL.narratives}
    measured = measure_results(SMALL._replace(probabilities=odds))
    found = label_of(measured)
    assert measured.weighted
    assert found.rate == pytest.approx((2 * 1 + 2 * 1 / 2 + 2 / 3) / (2 + 2 + 1 + 1 + 1))
    assert only(found.differences).difference == pytest.approx((2 * 1 / 2 + 2 / 3) / 3)


def test_crossed_groups_are_compared_within_a_level_and_the_unknown_and_the_too_many_are_not() -> None:
    study = study_of(
        [helpful(n, m, 1, language=lang) for n in ("n1", "n2") for m in ("a", "b") for lang in ("de", "en")]
    )
    found = label_of(measure_results(study, by=("model_name", "language")))
    assert [group.by for group in found.groups[4:]] == [
        {"model_name": m, "language": lang} for m in ("a", "b") for lang in ("de", "en")
    ]
    assert [(each.by, each.within, each.a, each.b) for each in found.differences] == [
        ("model_name", {}, "a", "b"),
        ("language", {}, "de", "en"),
        ("model_name", {"language": "de"}, "a", "b"),
        ("model_name", {"language": "en"}, "a", "b"),
        ("language", {"model_name": "a"}, "de", "en"),
        ("language", {"model_name": "b"}, "de", "en"),
    ]
    assert all(each.p == 1 and each.interval is not None for each in found.differences)
    measured = measure_results(study_of([helpful("n1", model, 1) for model in ("", "a", "b")]))
    found = label_of(measured)
    assert [group.by["model_name"] for group in found.groups] == ["a", "b", ""]
    assert (only(found.differences).a, only(found.differences).undefined) == ("a", "one_narrative")
    assert measured.remarks[0] == "The `model_name` of 1 record is not known; it is compared with none."
    assert "one person judged all of it" in measured.remarks[1]
    answers = [helpful(n, f"model {m:02d}", 1, language=lang) for n in "xy" for m in range(26) for lang in ("de", "en")]
    measured = measure_results(study_of(answers), by=("model_name", "language"))
    found = label_of(measured)
    assert len(found.groups) == 26 + 2 + 52
    assert {(each.by, len(each.within)) for each in found.differences} == {("language", 0), ("language", 1)}
    assert measured.remarks[0].startswith("Groups by `model_name` that differ in `model_name` make 325 pairs; they are")
    assert len(measured.remarks) == 3


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([helpful("n1", "a", 1), helpful("n2", "b", 1)], "no_shared_narrative"),
        ([helpful("n1", "a", 1), helpful("n1", "b", 0)], "one_narrative"),
        ([helpful("n1", "a", 1), Answer("n1", "b", {"generation": [{"incomplete": 1}]})], "no_units"),
    ],
)
def test_a_difference_that_cannot_be_told_says_why(answers: list[Answer], reason: str) -> None:
    found = only(label_of(measure_results(study_of(answers))).differences)
    assert (found.p, found.p_holm, found.interval, found.undefined) == (None, None, None, reason)
    assert not found.stands_out


def test_a_group_without_votes_and_a_single_narrative_have_no_interval() -> None:
    found = label_of(measure_results(study_of([helpful("n1", "a", 1)])), "helpful")
    assert (found.rate, found.interval, found.undefined) == (1, None, "one_narrative")
    nothing = label_of(measure_results(study_of([helpful("n1", "a", 1)])), "incomplete")
    assert (nothing.rate, nothing.interval, nothing.undefined, nothing.n_units) == (None, None, "no_units", 0)
    assert measure_results(Study((), {}, {})).tasks == {}


def full(narrative: str, contradicted: int, on_topic: int) -> Answer:
    votes = {"generation": [{"response_on_topic": on_topic, "unsafe_content": 0}]}
    return Answer(
        narrative, "a", votes | {"grounding": [{"contradicted_claim_present": contradicted, "fabricated_source": 0}]}
    )


def test_a_finding_joins_tasks_takes_the_worst_passage_and_needs_its_tasks_and_a_label() -> None:
    study = study_of([full("n1", 1, 1), full("n2", 0, 0), full("n3", 0, 1), helpful("n4", "a", 1)])
    found = measure_results(study).findings["serious_problem"]
    assert (found.title, found.rate) == ("Serious problem", pytest.approx(2 / 3))
    assert (found.n_units, found.n_incomplete) == (3, 1)
    assert found.missing == dict.fromkeys((label.removeprefix("not ") for label in SERIOUS_PROBLEM.any), 1)
    passages = [[{"misleading": 0}], [{"misleading": 1}], [{"topically_relevant": 1}]]
    study = study_of([Answer("n1", "a", {}, passages=passages)])
    definitions = {
        "misled": FindingDefinition(title="Misled", any=("misleading",)),
        "lost": FindingDefinition(title="Lost", any=("not misleading",)),
    }
    found = measure_results(study, findings=definitions).findings
    assert (found["misled"].rate, found["lost"].rate) == (1, 1)
    found = measure_results(SMALL).findings["serious_problem"]
    assert (found.rate, found.undefined, found.n_incomplete) == (None, "no_units", 5)
    for names, message in ((("unsafe_contents",), "'unsafe_contents', which no task has"), ((), "names no label")):
        with pytest.raises(InputError, match=message):
            measure_results(SMALL, findings={"bad": FindingDefinition(title="Bad", any=names)})


def test_one_vote_among_several_makes_no_finding_and_a_tie_half_of_one() -> None:
    said = {
        "slips": ((1, 0, 0), (0, 1, 0)),
        "most": ((1, 1, 0), (0, 0, 0)),
        "tie": ((1, 0), (0, 0)),
        "settled": ((1, 0), (1, 1)),
    }
    answers = [
        Answer(
            narrative,
            "a",
            {
                "grounding": [{"contradicted_claim_present": vote} for vote in contradicted],
                "generation": [{"unsafe_content": vote} for vote in unsafe],
            },
        )
        for narrative, (contradicted, unsafe) in said.items()
    ]
    parts = {"bad": FindingDefinition(title="Bad", any=("contradicted_claim_present", "unsafe_content"))}
    by_share = measure_results(study_of(answers), findings=parts).findings["bad"]
    assert (by_share.rate, by_share.n_units) == (pytest.approx((0 + 1 + 0.5 + 1) / 4), 4)
    by_majority = measure_results(study_of(answers), findings=parts, consensus="majority").findings["bad"]
    assert (by_majority.rate, by_majority.n_units, by_majority.n_undecided) == (pytest.approx(2 / 3), 3, 1)
    assert by_majority.missing == {"contradicted_claim_present": 1, "unsafe_content": 0}


def test_a_jury_that_slips_finds_hardly_anything_in_flawless_answers() -> None:
    votes = np.random.default_rng(0).random((400, 3, 4)) < 0.05
    labels = SERIOUS_PROBLEM.any
    answers = [
        Answer(
            f"n{number}",
            "a",
            {
                "grounding": [dict(zip(labels[:2], row[:2].tolist(), strict=True)) for row in own],
                "generation": [{"unsafe_content": int(row[2]), "response_on_topic": 1 - int(row[3])} for row in own],
            },
        )
        for number, own in enumerate(votes.astype(int))
    ]
    rate = measure_results(study_of(answers)).findings["serious_problem"].rate
    assert rate is not None
    assert rate < 0.06  # the largest share of votes would be .16


def test_denominators_come_from_runs_provenance_and_discards() -> None:
    provenance = {
        record: {**columns, "n_sources": "0" if "n1" in record else "3", "n_read": "0" if "n1" in record else "2"}
        for record, columns in SMALL.provenance.items()
    }
    study = SMALL._replace(
        provenance=provenance,
        runs={"a": RunCounts(4, 1, 0), "b": RunCounts(4, 0, 2)},
        discarded={("generation", "n1/a/en"): 2, ("grounding", "n1/a/en"): 5},
    )
    found = label_of(measure_results(study))
    unknown = label_of(measure_results(SMALL)).denominators.model_dump()
    names = (
        "asked",
        "answered",
        "refused",
        "failed",
        "answers",
        "without_citations",
        "with_unread_sources",
        "discarded",
    )
    assert found.denominators.model_dump() == dict(zip(names, (8, 5, 1, 2, 5, 2, 3, 2), strict=True))
    assert found.groups[1].denominators.model_dump() == dict(zip(names, (4, 2, 0, 2, 2, 1, 1, 0), strict=True))
    assert unknown == dict.fromkeys(names) | {"answers": 5}


def test_providers_are_not_compared_by_passages_that_citejury_chose() -> None:
    answers = [
        Answer(f"n{number}", model, {"generation": [{"helpful": 1}]}, passages=[[{"misleading": model == "a"}]])
        for number in range(3)
        for model in ("a", "b")
    ]
    study = study_of(answers)
    assert len(label_of(measure_results(study), "misleading").differences) == 1
    chosen = study._replace(
        provenance={record: {**told, "contexts": "selected"} for record, told in study.provenance.items()}
    )
    found = measure_results(chosen)
    assert label_of(found, "misleading").differences == ()
    assert [group.rate for group in label_of(found, "misleading").groups] == [1.0, 0.0]
    assert len(label_of(found).differences) == 1
    assert any("providers are not compared by them" in remark for remark in found.remarks)
    assert label_of(measure_results(chosen, by=("language",)), "misleading").groups[0].by == {"language": "en"}
