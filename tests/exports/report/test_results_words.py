"""What the jury found in words: never a figure without what it is of, and every reason where there is none."""

import pytest

from exports.report.results_words import (
    basis,
    definition,
    denominator_sentence,
    difference_sentence,
    difference_sentences,
    figures,
    group_name,
    incomparable_sentences,
    left_out_sentence,
    rate_estimate,
    rate_sentence,
    share,
    span,
    standing_out,
)
from exports.results.schema import LabelResults, RateInterval
from tests.support.results_data import denominators, difference, group, results


def test_a_rate_is_told_with_its_interval_and_what_it_is_of() -> None:
    assert rate_sentence("perplexity", group("perplexity", 0.41), "answer") == (
        "perplexity 41 % [31, 51] of 20 answers, 12 narratives"
    )


def test_a_rate_that_cannot_be_told_says_why() -> None:
    assert rate_sentence("grok", group("grok", None, undefined="no_units"), "answer") == (
        "grok: cannot be told, the jury judged none"
    )
    assert rate_sentence("grok", group("grok", 0.5, undefined="one_narrative"), "passage") == (
        "grok 50 % of 20 passages, 12 narratives, no interval: all of it is on one narrative"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 %"),
        (0.004, "0.4 %"),
        (0.0001, "<0.1 %"),
        (0.01, "1 %"),
        (0.415, "42 %"),
        (0.996, "99.6 %"),
        (0.9999, ">99.9 %"),
        (1.0, "100 %"),
        (None, "–"),
    ],
)
def test_a_share_is_whole_unless_it_would_be_0_and_is_not(value: float | None, text: str) -> None:
    assert share(value) == text


def test_an_interval_never_looks_as_if_it_had_no_width() -> None:
    assert span(RateInterval(low=0.411, high=0.414, method="test")) == "[41.1, 41.4]"
    assert span(RateInterval(low=-0.104, high=0.09, method="test")) == "[-10, 9]"


def test_a_difference_begins_with_the_higher_rate_and_turns_its_interval() -> None:
    found = difference("claude", "perplexity", (0.1, 0.41), 0.0001)
    assert difference_sentence("Serious problem", found) == (
        "Serious problem: perplexity 41 %, claude 10 %: 31 points apart [21, 41], p < .001 after Holm, on 12 "
        "narratives that both have."
    )


def test_where_nothing_is_beyond_chance_it_says_of_how_many_comparisons() -> None:
    found = results()
    assert list(difference_sentences(found))[-1] == "3 differences of 10 that were compared."
    without = found.model_copy(update={"findings": {}})
    assert list(difference_sentences(without)) == ["None of 7 differences is beyond chance."]
    nothing = without.model_copy(update={"tasks": {}})
    assert list(difference_sentences(nothing)) == ["Cannot be told: no two groups could be compared."]


def test_what_cannot_be_compared_is_named_with_its_reason() -> None:
    assert list(incomparable_sentences(results())) == [
        "gemini: no rate for helpful, so it cannot be compared there: the jury judged none.",
        "Not known: how many cite a source without text.",
        "Rates of retrieval are of passages that citejury chose.",
    ]


def test_a_group_that_cannot_be_compared_with_several_is_named_once_with_them() -> None:
    found = results()
    unlike = {"p": None, "p_holm": None, "undefined": "no_shared_narrative", "stands_out": False}

    def alone(label: LabelResults) -> LabelResults:
        told = (each.model_copy(update=unlike if "claude" in (each.a, each.b) else {}) for each in label.differences)
        return label.model_copy(update={"differences": tuple(told)})

    finding = found.findings["serious_problem"]
    findings = {"serious_problem": finding.model_copy(update={"differences": alone(finding).differences})}
    tasks = {
        task: part.model_copy(update={"labels": {name: alone(label) for name, label in part.labels.items()}})
        for task, part in found.tasks.items()
    }
    assert next(incomparable_sentences(found.model_copy(update={"findings": findings, "tasks": tasks}))) == (
        "claude cannot be compared with gemini and perplexity on any label: they have no narrative in common."
    )


def test_a_composite_finding_says_what_it_is_and_what_it_leaves_out() -> None:
    finding = results().findings["serious_problem"]
    assert definition(finding) == (
        "contradicted_claim_present, fabricated_source, unsafe_content or not response_on_topic"
    )
    assert left_out_sentence(finding) == (
        "Left out, since the jury has not judged every part: 7 answers (fabricated_source 5, unsafe_content 2)."
    )


def test_denominators_say_what_is_known_and_what_is_not_is_said_once() -> None:
    assert denominator_sentence(denominators(20, 24)) == (
        "24 questions asked: 20 answered, 2 refused, 2 failed; 20 answers before the jury, 3 without citations; 4 "
        "responses discarded."
    )
    assert denominator_sentence(denominators(20)) == (
        "20 answers before the jury, 3 without citations; 4 responses discarded."
    )


def test_groups_are_called_by_their_values_and_figures_come_in_reading_order() -> None:
    assert group_name({"model_name": "claude", "language": ""}) == "claude, (not known)"
    assert [figure.title for figure in figures(results())] == [
        "Serious problem",
        "support_present",
        "unsupported_claim_present",
        "helpful",
    ]
    assert rate_estimate(group("claude", 0.004, 0.004)) == "0.4 % [0, 0.8]"


def test_what_stands_out_comes_with_the_finding_first_and_the_greatest_difference_first() -> None:
    assert [(figure.name, found.a, found.b) for figure, found in standing_out(results())] == [
        ("serious_problem", "claude", "perplexity"),
        ("serious_problem", "gemini", "perplexity"),
        ("serious_problem", "claude", "gemini"),
    ]
    assert basis(group("claude", 0.5), "passage") == "20 passages, 12 narratives"
