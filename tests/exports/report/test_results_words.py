"""What the jury found in words: never a figure without what it is of, and every reason where there is none."""

import pytest

from exports.report.results_words import (
    COEFFICIENTS,
    basis,
    definition,
    denominator_sentence,
    denominator_sentences,
    difference_sentence,
    difference_sentences,
    figures,
    group_name,
    incomparable_sentences,
    left_out_sentence,
    no_difference_sentence,
    rate_estimate,
    rate_rows,
    share,
    span,
    standing_out,
)
from exports.statistics.results_schema import Finding, LabelResults, NoFigure, RateInterval, Results
from tests.support.results_data import denominators, difference, group, results


def test_a_rate_is_told_with_its_interval_and_what_is_no_share_without_per_cent() -> None:
    assert rate_estimate(group("perplexity", 0.41)) == "41 % [31, 51]"
    assert rate_estimate(group("perplexity", 0.41), COEFFICIENTS) == ".41 [.31, .51]"
    assert rate_estimate(group("perplexity", 0.41, undefined="one_narrative"), COEFFICIENTS) == ".41"


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
    assert span(RateInterval(low=0.00009, high=0.3, method="test")) == "[0.0, 30]"
    assert span(RateInterval(low=-0.0, high=0.9999, method="test")) == "[0, 100.0]"


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


def with_shared(found: Results, n_narratives: int, first: int | None = None) -> Results:
    """The results with so many narratives in common of every two groups, on the first label perhaps others."""
    numbers = iter([n_narratives if first is None else first])

    def shared(label: LabelResults) -> LabelResults:
        own = next(numbers, n_narratives)
        told = (each.model_copy(update={"n_narratives": own, "stands_out": False}) for each in label.differences)
        return label.model_copy(update={"differences": tuple(told)})

    tasks = {
        task: part.model_copy(update={"labels": {name: shared(label) for name, label in part.labels.items()}})
        for task, part in found.tasks.items()
    }
    return found.model_copy(update={"findings": {}, "tasks": tasks})


def test_where_no_difference_could_be_beyond_chance_that_is_said_with_what_is_needed() -> None:
    # Holm over 7 comparisons needs p of .05/7; 8 narratives give no p below 2/2**8 = .0078, 9 give .0039.
    assert list(difference_sentences(with_shared(results(), 8))) == [
        "Cannot be told: with at most 8 narratives in common none of 7 differences could be beyond chance; 9 are "
        "needed."
    ]
    assert list(difference_sentences(with_shared(results(), 9))) == ["None of 7 differences is beyond chance."]


def test_where_only_some_differences_could_be_beyond_chance_their_number_is_said() -> None:
    assert list(difference_sentences(with_shared(results(), 3, first=12))) == [
        "None of 7 differences is beyond chance; only 3 of them have enough narratives in common to be."
    ]
    found = results()
    few = with_shared(found, 3).model_copy(update={"findings": found.findings})
    assert list(difference_sentences(few))[-1] == (
        "3 differences of 10 that were compared, of which 3 have enough narratives in common to stand out."
    )


def test_eleven_common_narratives_are_one_too_few_for_56_differences() -> None:
    many = [difference("a", "b", (0.5, 0.4), 0.2).model_copy(update={"n_narratives": 11})] * 56
    assert no_difference_sentence(many) == (
        "Cannot be told: with at most 11 narratives in common none of 56 differences could be beyond chance; 12 are "
        "needed."
    )


def test_a_composite_finding_without_a_rate_was_not_judged_in_every_part() -> None:
    found = results()
    finding = found.findings["serious_problem"]
    empty = group("x", None, undefined="no_units").model_dump(exclude={"by"})
    without = Finding.model_validate(finding.model_dump() | empty | {"groups": (), "differences": ()})
    told = list(incomparable_sentences(found.model_copy(update={"findings": {"serious_problem": without}})))
    assert told[0] == "all: no rate for Serious problem: not judged in every part."
    assert not any("judged none" in sentence and "Serious problem" in sentence for sentence in told)


def test_crossed_groups_that_cannot_be_compared_for_one_reason_are_named_once() -> None:
    found = results()
    reason: NoFigure = "no_shared_narrative"
    levels = [{}, *({"model_name": name} for name in ("claude", "gemini", "perplexity"))]
    unlike = tuple(
        difference("de", "en", None, None, reason).model_copy(update={"by": "language", "within": level})
        for level in levels
    )

    def crossed(differences: tuple[object, ...]) -> Results:
        finding = found.findings["serious_problem"].model_copy(update={"differences": differences})
        return found.model_copy(update={"findings": {"serious_problem": finding}, "tasks": {}})

    end = "on any label: they have no narrative in common."
    assert next(incomparable_sentences(crossed(unlike))) == (
        f"de and en cannot be compared (nor within claude, gemini and perplexity) {end}"
    )
    assert next(incomparable_sentences(crossed(unlike[1:]))) == (
        f"de and en cannot be compared (within claude, gemini and perplexity) {end}"
    )
    assert next(incomparable_sentences(crossed(unlike[:1]))) == f"de and en cannot be compared {end}"


def test_where_only_the_discards_of_groups_are_not_known_it_says_so() -> None:
    found = results()

    def without(label: LabelResults) -> LabelResults:
        groups = (
            each.model_copy(update={"denominators": each.denominators.model_copy(update={"discarded": None})})
            for each in label.groups
        )
        return label.model_copy(update={"groups": tuple(groups)})

    finding = without(found.findings["serious_problem"])
    told = list(incomparable_sentences(found.model_copy(update={"findings": {"serious_problem": finding}})))
    assert told[1] == (
        "Not known: how many cite a page that was not read; how many discarded responses belong to each group "
        "(`exports csv --discarded` tells)."
    )


def test_what_stands_behind_a_block_is_not_repeated_below_the_next() -> None:
    found = results()
    label = found.tasks["grounding"].labels["support_present"]
    discards = label.denominators.model_copy(update={"discarded": 1})
    fewer = label.model_copy(update={"denominators": discards})
    shown = [figure._replace(found=each) for figure, each in zip(figures(found), (label, fewer, label), strict=False)]
    assert list(denominator_sentences([[figure] for figure in shown])) == [
        [denominator_sentence(label.denominators)],
        ["1 response discarded."],
        ["4 responses discarded."],
    ]


def test_groups_that_nobody_judged_on_any_label_stand_once_beneath_all() -> None:
    found = results()
    lacking = (group("gemini", None, undefined="no_units"), group("grok", None, undefined="no_units"))
    shown = [
        figure._replace(found=figure.found.model_copy(update={"groups": (group("claude", 0.5), *lacking)}))
        for figure in figures(found)
        if figure.task == "grounding"
    ]
    assert [name for name, _, _ in rate_rows(shown)] == [
        "support_present",
        "claude",
        "unsupported_claim_present",
        "claude",
        "none judged: gemini and grok",
    ]
    assert [name for name, _, _ in rate_rows(shown[:1])] == ["support_present", "claude", "gemini and grok"]


def test_what_cannot_be_compared_is_named_with_its_reason() -> None:
    assert list(incomparable_sentences(results())) == [
        "gemini: no rate for helpful, so it cannot be compared there: the jury judged none.",
        "Not known: how many cite a page that was not read.",
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
