"""What the jury found in words: never a figure without what it is of, and every reason where there is none."""

from collections.abc import Sequence

import numpy as np
import pytest

from exports.report import results_words as words
from exports.statistics.ratings import BoolArray
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Difference, LabelResults, RateInterval, Results
from tests.support.annotator_simulation import drawn
from tests.support.results_data import denominators, difference, group, results, with_labels


def told(each: Difference, **update: object) -> Difference:
    return each.model_copy(update=update)


def only(found: Results, **finding: object) -> Results:
    """The results of which the one finding is changed."""
    changed = found.findings["serious_problem"].model_copy(update=finding)
    return found.model_copy(update={"findings": {"serious_problem": changed}})


def test_figures_have_intervals_that_show_a_width_and_a_finding_says_what_it_is_and_leaves_out() -> None:
    assert str(words.rate_estimate(group("perplexity", 0.41))) == "41 % [31, 51]"
    assert str(words.rate_estimate(group("perplexity", 0.41), words.COEFFICIENTS)) == ".41 [.31, .51]"
    assert str(words.rate_estimate(group("perplexity", 0.41, undefined="one_narrative"), words.COEFFICIENTS)) == ".41"
    assert str(words.rate_estimate(group("claude", 0.004, 0.004))) == "0.4 % [0, 0.8]"
    shares = {0.0: "0 %", 0.004: "0.4 %", 0.0001: "<0.1 %", 0.01: "1 %", 0.415: "42 %", 0.996: "99.6 %"}
    shares |= {0.9999: ">99.9 %", 1.0: "100 %", None: "–"}
    assert {value: words.share(value) for value in shares} == shares
    spans = {(0.411, 0.414): "[41.1, 41.4]", (-0.104, 0.09): "[−10, 9]", (0.00009, 0.3): "[0, 30]"}
    spans |= {(-0.0, 0.9999): "[0, 100]"}
    assert {ends: words.span(RateInterval(low=ends[0], high=ends[1], method="wilson")) for ends in spans} == spans
    finding = results().findings["serious_problem"]
    parts = "contradicted_claim_present, fabricated_source, unsafe_content or not response_on_topic"
    assert words.definition(finding) == parts
    assert words.left_out_sentence(finding) == (
        "Left out, since the jury has not judged all labels: 7 answers (fabricated_source 5, unsafe_content 2)."
    )
    assert words.group_name({"model_name": "claude", "language": ""}) == "claude, (not known)"
    titles = ["Serious problem", "support_present", "unsupported_claim_present", "helpful"]
    assert [figure.title for figure in words.figures(results())] == titles
    assert words.basis(group("claude", 0.5), "passage") == "20 passages, 12 narratives"


def test_differences_come_in_order_and_are_counted_and_groups_that_nobody_judged_stand_once() -> None:
    assert words.difference_sentence("Serious problem", difference("claude", "perplexity", (0.1, 0.41), 0.0001)) == (
        "Serious problem: perplexity 41 %, claude 10 %: 31 points apart [21, 41], p < .001 after Holm, on 12 "
        "narratives that both have."
    )
    found = results()
    assert [(figure.name, each.a, each.b) for figure, each in words.standing_out(found)] == [
        ("serious_problem", "claude", "perplexity"),
        ("serious_problem", "gemini", "perplexity"),
        ("serious_problem", "claude", "gemini"),
    ]
    assert list(words.difference_sentences(found))[-1] == "3 differences of 10 that were compared."
    without = found.model_copy(update={"findings": {}})
    assert list(words.difference_sentences(without)) == ["None of 7 differences is beyond chance."]
    nothing = without.model_copy(update={"tasks": {}})
    assert list(words.difference_sentences(nothing)) == ["Cannot be told: no two groups could be compared."]
    found = results()
    lacking = (group("gemini", None, undefined="no_units"), group("grok", None, undefined="no_units"))
    shown = [
        figure._replace(found=figure.found.model_copy(update={"groups": (group("claude", 0.5), *lacking)}))
        for figure in words.figures(found)
        if figure.task == "grounding"
    ]
    names = [name for name, _, _ in words.rate_rows(shown)]
    assert names[::2] == ["support_present", "unsupported_claim_present", "none judged: gemini and grok"]
    assert names[1::2] == ["claude", "claude"]
    assert [name for name, _, _ in words.rate_rows(shown[:1])] == ["support_present", "claude", "gemini and grok"]


ADJUSTED = difference("alpha", "beta", (0.5, 0.57), 0.0001).model_copy(
    update={"difference": 0.24, "leniency": -0.31, "interval": RateInterval(low=0.12, high=0.36, method="t")}
)


@pytest.mark.parametrize(
    ("changed", "scale", "said"),
    [
        (
            {},
            words.SHARES,
            "as judged alpha 50 %, beta 57 %; beta's annotators say so 31 points more often, and without that alpha is "
            "24 points higher [12, 36], p < .001 after Holm, on 12 narratives that both have.",
        ),
        (
            {"difference": -0.17, "leniency": 0.1, "interval": None},
            words.SHARES,
            "as judged beta 57 %, alpha 50 %; alpha's annotators say so 10 points more often, and without that beta is "
            "17 points higher, p < .001 after Holm, on 12 narratives that both have.",
        ),
        (
            {"leniency": -0.01},
            words.NUMBERS,
            "as judged alpha 0.500, beta 0.570; beta's annotators rate 0.0100 higher, and without that alpha is 0.240 "
            "higher [0.120, 0.360], p < .001 after Holm, on 12 narratives that both have.",
        ),
    ],
)
def test_a_difference_without_what_annotators_make_says_what_was_judged_and_what_was_taken_off(
    changed: dict[str, object], scale: words.Scale, said: str
) -> None:
    assert words.difference_sentence("helpful", told(ADJUSTED, **changed), scale) == f"helpful: {said}"
    adjusted = with_labels(results(), lambda label: {"differences": (ADJUSTED,)})
    assert next(words.incomparable_sentences(adjusted)).startswith(
        "Not the same people judged every group, and the figures of groups are as they judged: that alone makes up to "
        "31 points between alpha and beta (Serious problem)."
    )
    slightly = with_labels(results(), lambda label: {"differences": (told(ADJUSTED, leniency=0.04),)})
    assert not any("as they judged" in each for each in words.incomparable_sentences(slightly))


def test_the_clearest_difference_is_that_of_the_smallest_p_then_the_largest_and_others_are_counted() -> None:
    told_apart = iter([(0.5, 0.002), (0.2, 0.0001), (0.4, 0.0001)])

    def one(_: LabelResults) -> dict[str, object]:
        size, p = next(told_apart)
        return {"differences": (told(difference("a", "b", (0.6, 0.6 - size), p), stands_out=True),)}

    found = with_labels(results().model_copy(update={"findings": {}}), one)
    assert words.clearest_difference(found) == [
        "helpful: a 60 %, b 20 %: 40 points apart [30, 50], p < .001 after Holm, on 12 narratives that both have. 2 "
        "more: details.html."
    ]
    single = found.model_copy(update={"tasks": {"generation": found.tasks["generation"]}})
    assert "details.html" not in words.clearest_difference(single)[0]


def test_of_one_group_or_one_difference_nothing_is_counted_as_if_there_were_more() -> None:
    alone = difference("a", "b", (0.5, 0.4), 0.2)
    assert words.no_difference_sentence([alone]) == "The one difference is not beyond chance."
    assert words.no_difference_sentence([told(alone, n_narratives=3)]) == (
        "Cannot be told: with at most 3 narratives in common the one difference could not be beyond chance; 6 are "
        "needed."
    )
    one = with_labels(results(), lambda label: {"groups": label.groups[:1], "differences": ()})
    one = one.model_copy(update={"findings": {}})
    assert list(words.difference_sentences(one)) == ["There is nothing to compare: all of it is claude."]


def with_shared(found: Results, n_narratives: int, first: int | None = None) -> Results:
    """The results with so many narratives in common of every two groups, on the first label perhaps others."""
    numbers = iter([n_narratives if first is None else first])

    def shared(label: LabelResults) -> dict[str, object]:
        own = next(numbers, n_narratives)
        return {"differences": tuple(told(each, n_narratives=own, stands_out=False) for each in label.differences)}

    return with_labels(found.model_copy(update={"findings": {}}), shared)


def test_where_too_few_narratives_are_in_common_that_is_said_with_what_is_needed() -> None:
    # Holm over 7 comparisons needs p of .05/7; 8 narratives give no p below 2/2**8 = .0078, 9 give .0039.
    assert list(words.difference_sentences(with_shared(results(), 8))) == [
        "Cannot be told: with at most 8 narratives in common none of 7 differences could be beyond chance; 9 are "
        "needed."
    ]
    assert list(words.difference_sentences(with_shared(results(), 9))) == ["None of 7 differences is beyond chance."]
    assert list(words.difference_sentences(with_shared(results(), 3, first=12))) == [
        "None of 7 differences is beyond chance; only 3 have enough shared narratives."
    ]
    few = with_shared(results(), 3).model_copy(update={"findings": results().findings})
    assert list(words.difference_sentences(few))[-1] == (
        "3 differences of 10 that were compared, of which 3 have enough narratives in common to stand out."
    )
    assert words.no_difference_sentence([told(difference("a", "b", (0.5, 0.4), 0.2), n_narratives=11)] * 56) == (
        "Cannot be told: with at most 11 narratives in common none of 56 differences could be beyond chance; 12 are "
        "needed."
    )


def test_what_cannot_be_compared_is_named_once_with_its_reason() -> None:
    found = results()
    assert list(words.incomparable_sentences(found)) == [
        "gemini: no rate for helpful, so it cannot be compared there: the jury judged none.",
        "Not known: how many cite a page that was not read.",
        "Rates of retrieval are of passages that citejury chose.",
    ]
    empty = dict(group("x", None, undefined="no_units")) | {"groups": (), "differences": ()}
    del empty["by"]
    unjudged = list(words.incomparable_sentences(only(found, **empty)))
    lacking = "Left out, since the jury has not judged all labels: 7 answers (fabricated_source 5, unsafe_content 2)."
    assert unjudged[0] == f"Serious problem cannot be told. {lacking}"
    assert not any("judged none" in sentence and "Serious problem" in sentence for sentence in unjudged)
    unlike = {"p": None, "p_holm": None, "undefined": "no_shared_narrative", "stands_out": False}

    def alone(label: LabelResults) -> dict[str, object]:
        apart = (told(each, **unlike) if "claude" in (each.a, each.b) else each for each in label.differences)
        return {"differences": tuple(apart)}

    assert next(words.incomparable_sentences(with_labels(found, alone))) == (
        "claude cannot be compared with gemini and perplexity on any label: no narrative in common; put some to both."
    )
    levels = [{}, *({"model_name": name} for name in ("claude", "gemini", "perplexity"))]
    both = difference("de", "en", None, None, "no_shared_narrative")
    crossed = tuple(told(both, by="language", within=level) for level in levels)
    for shown, within in (
        (crossed, " (nor within claude, gemini and perplexity)"),
        (crossed[1:], " (within claude, gemini and perplexity)"),
        (crossed[:1], ""),
    ):
        assert next(words.incomparable_sentences(only(found.model_copy(update={"tasks": {}}), differences=shown))) == (
            f"de and en cannot be compared{within} on any label: no narrative in common; put some to both."
        )


def test_what_stands_behind_figures_is_told_as_far_as_it_is_known_and_not_repeated() -> None:
    judged = "20 answers before the jury, 3 without citations; 4 responses discarded."
    assert words.denominator_sentence(denominators(20)) == judged
    asked = "24 questions asked: 20 answered, 2 refused, 2 failed; "
    assert words.denominator_sentence(denominators(20, 24)) == asked + judged
    found = results()
    groups = (
        each.model_copy(update={"denominators": each.denominators.model_copy(update={"discarded": None})})
        for each in found.findings["serious_problem"].groups
    )
    assert list(words.incomparable_sentences(only(found, groups=tuple(groups))))[1] == (
        "Not known: how many cite a page that was not read; how many discarded responses belong to each group "
        "(`exports csv --discarded` tells)."
    )
    label = found.tasks["grounding"].labels["support_present"]
    fewer = label.model_copy(update={"denominators": label.denominators.model_copy(update={"discarded": 1})})
    shown = [
        figure._replace(found=each) for figure, each in zip(words.figures(found), (label, fewer, label), strict=False)
    ]
    assert list(words.denominator_sentences([[figure] for figure in shown])) == [
        [words.denominator_sentence(label.denominators)],
        ["1 response discarded."],
        ["4 responses discarded."],
    ]


def _said(judged: BoolArray, **columns: Sequence[str]) -> list[str]:
    """What is said of two models; `columns` are further ones of narratives."""
    study, _ = drawn(np.random.default_rng(1), judged, (0.3, 0.5))
    provenance = {
        record: {**known, **{name: values[int(record[:4])] for name, values in columns.items()}}
        for record, known in study.provenance.items()
    }
    by = tuple(columns) or ("model_name",)
    found = measure_results(study._replace(provenance=provenance, successive=frozenset(columns)), by=by, findings={})
    return [*words.difference_sentences(found), *words.incomparable_sentences(found)]


def _who(*who: tuple[slice, int, int], n: int = 40) -> BoolArray:
    """Narratives, number of the model and number of the annotator of what is judged."""
    found = np.zeros((n, 2, 3), np.bool_)
    for narratives, model, person in who:
        found[narratives, model, person] = True
    return found


ALL, EARLY, LATE = slice(None), slice(0, 20), slice(20, None)
MONTHS = ["2026-01"] * 20 + ["2026-02"] * 20


@pytest.mark.parametrize(
    ("judged", "columns", "said"),
    [
        (_who((ALL, 0, 0), (ALL, 1, 0)), {}, "generation: one person judged all of it, so the figures are of how they"),
        (_who((ALL, 0, 0), (ALL, 1, 2)), {}, "let the same people judge both."),
        (_who((ALL, 0, 0), (ALL, 1, 0), n=1), {}, "all of it is on one narrative, and what others would show takes"),
        (
            _who((EARLY, 0, 0), (EARLY, 1, 0), (LATE, 0, 2), (LATE, 1, 2)),
            {"month": MONTHS},
            "no narrative in common; put",
        ),
        (_who((EARLY, 0, 0), (LATE, 1, 0)), {}, "no narrative in common; put some to both."),
    ],
    ids=["one annotator", "disjoint annotators", "one answer each", "month without overlap", "no shared narrative"],
)
def test_what_cannot_be_concluded_is_said_with_what_would_allow_it(
    judged: BoolArray, columns: dict[str, Sequence[str]], said: str
) -> None:
    assert any(said in each for each in _said(judged, **columns))


def test_who_joined_later_is_held_apart_and_not_taken_for_a_model() -> None:
    joined = _who((ALL, 0, 0), (ALL, 0, 1), (EARLY, 1, 0), (ALL, 1, 1), (LATE, 1, 2), n=80)
    assert not any("cannot be compared" in each for each in _said(joined))
    # The first person tells the models apart early on, and so what the second makes differ later.
    assert not any("cannot be compared" in each for each in _said(_who((EARLY, 1, 0), (ALL, 0, 0), (LATE, 1, 2))))
