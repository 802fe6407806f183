"""What answers cite, and what they say of their narrative."""

import math
import random
from collections import Counter, defaultdict

import pytest

from exports.statistics.results import measure_results
from exports.statistics.results_schema import CitationGroup, Landscape
from exports.statistics.study import Answers, RunCounts, Study
from tests.support.told_answers import Told, told_answers

# Two providers on three narratives. On n1 both cite a.example; on n2 nothing is shared; on n3 b cites nothing.
ROWS = [
    Told("a", "n1", ("a.example", "a.example", "b.example=gone")),
    Told("a", "n2", ("a.example=unread",)),
    Told("a", "n3", ("c.example=unfetched",)),
    Told("b", "n1", ("a.example=excerpt", "d.example=excerpt")),
    Told("b", "n2", ("=unreached", "d.example")),
    Told("b", "n3"),
]


def landscape(answers: Answers, by: tuple[str, ...] = ("model_name",)) -> Landscape:
    found = measure_results(Study((), {}, {}, answers=answers), by=by).landscape
    assert found is not None
    return found


def group(found: Landscape, **by: str) -> CitationGroup:
    return next(each for each in found.groups if each.by == by)


def test_citations_sites_and_states_of_each_group() -> None:
    found = landscape(told_answers(ROWS))
    a, b = group(found, model_name="a"), group(found, model_name="b")
    assert (a.n_answers, a.n_narratives, a.n_citations, a.citations_median) == (3, 3, 5, 1)
    assert a.citations_mean == pytest.approx(5 / 3)
    assert [each.model_dump() for each in a.top_sites] == [
        {"site": "a.example", "citations": 3, "answers": 2},
        {"site": "b.example", "citations": 1, "answers": 1},
        {"site": "c.example", "citations": 1, "answers": 1},
    ]
    assert a.top_site_share == pytest.approx(3 / 5)
    assert a.effective_sites == pytest.approx(math.exp(-(0.6 * math.log(0.6) + 0.4 * math.log(0.2))))
    # b: a.example once, d.example twice, one site that is not known
    assert (b.n_citations, b.n_sites, b.n_unknown_site, b.top_site_share) == (4, 2, 1, pytest.approx(2 / 3))
    whole = group(found)
    assert (whole.n_answers, whole.n_citations, whole.n_sites) == (6, 9, 4)
    found = landscape(told_answers(ROWS))
    rates = {state: {each.by["model_name"]: each.rate for each in rate.groups} for state, rate in found.states.items()}
    assert rates == {
        "read": {"a": pytest.approx(2 / 5), "b": pytest.approx(3 / 4)},
        "unread": {"a": pytest.approx(1 / 5), "b": 0},
        "gone": {"a": pytest.approx(1 / 5), "b": 0},
        "unreached": {"a": 0, "b": pytest.approx(1 / 4)},
        "no_such_site": {"a": 0, "b": 0},
        "no_address": {"a": 0, "b": 0},
        "unfetched": {"a": pytest.approx(1 / 5), "b": 0},
    }
    assert all(rate.n_units == 9 and not rate.differences for rate in found.states.values())
    assert {each.by["model_name"]: each.rate for each in found.excerpts_only.groups} == {"a": 0, "b": 0.5}


def test_only_what_never_was_may_be_fabricated() -> None:
    cited = ("a.example=unreached", "b.example=gone", "c.example=no_such_site", "=no_address")
    found = landscape(told_answers([Told("a", "n1", cited), Told("b", "n1", ("a.example",))])).may_be_fabricated
    assert (found.rate, found.n_units) == (pytest.approx(2 / 3), 3), "what is not known counts nowhere"
    assert {each.by["model_name"]: each.rate for each in found.groups} == {"a": 1, "b": 0}


def test_shares_have_their_denominators_and_intervals() -> None:
    runs = {"a": RunCounts(5, 1, 1), "b": RunCounts(3, 0, 0)}
    results = measure_results(Study((), {}, {}, answers=told_answers(ROWS), runs=runs))
    without = results.landscape.without_citations
    assert (without.rate, without.n_units, without.n_narratives) == (pytest.approx(1 / 6), 6, 3)
    assert without.interval is not None
    a, b = without.groups
    assert (a.rate, b.rate) == (0, pytest.approx(1 / 3))
    assert a.interval.high > a.interval.low
    assert a.denominators.model_dump() == {
        **{"asked": 5, "answered": 3, "refused": 1, "failed": 1, "answers": 3},
        **{"without_citations": 0, "with_unread_sources": 3, "discarded": None},
    }
    assert (without.denominators.asked, [each.n_narratives for each in without.differences]) == (8, [3])
    assert [each.model_dump() for each in results.runs] == [
        {"model_name": "a", "asked": 5, "answered": 3, "refused": 1, "failed": 1, "before_the_jury": 0},
        {"model_name": "b", "asked": 3, "answered": 3, "refused": 0, "failed": 0, "before_the_jury": 0},
    ]


def test_cited_shown_and_seen_are_counted_apart_with_their_denominators() -> None:
    rows = [
        Told("a", "n1", ("a.example", "b.example=read=seen", "c.example=gone=seen")),
        Told("a", "n2", ("a.example=read=shown", "d.example=read=unknown")),
        Told("b", "n1", ("a.example", "b.example", "c.example")),
        Told("b", "n2"),
    ]
    results = measure_results(Study((), {}, {}, answers=told_answers(rows)))
    assert results.landscape is not None
    a, b = (group(results.landscape, model_name=name) for name in "ab")
    assert (a.n_citations, a.n_cited, a.n_shown, a.n_seen, a.n_cited_unknown) == (5, 1, 1, 2, 1)
    assert (b.n_citations, b.n_cited, b.n_shown, b.n_seen, b.n_cited_unknown) == (3, 3, 0, 0, 0)
    rates = {way: [(each.rate, each.n_units) for each in rate.groups] for way, rate in results.landscape.cited.items()}
    assert rates == {"cited": [(0.25, 4), (1, 3)], "shown": [(0.25, 4), (0, 3)], "seen": [(0.5, 4), (0, 3)]}
    assert results.landscape.cited["seen"].n_units == 7
    assert not any(rate.differences for rate in results.landscape.cited.values())
    assert any(
        each.startswith("Whether the answer's text refers to a source is not known of 1 of 8")
        for each in results.remarks
    )


def test_what_cannot_be_compared_is_told() -> None:
    found = measure_results(Study((), {}, {}, answers=told_answers(ROWS)), by=("model_name", "reviewer"))
    assert "Figures from runs are not grouped by `reviewer`, which runs do not tell." in found.remarks
    for beginning in ("Nobody tried to fetch 1 of 9 cited sources", "Of 2 of 9 cited sources only an excerpt"):
        assert any(remark.startswith(beginning) for remark in found.remarks)
    nothing = measure_results(Study((), {}, {}))
    assert (nothing.runs, nothing.landscape, nothing.passages) == ((), None, ())


def test_no_citations_give_no_sites() -> None:
    found = landscape(told_answers([Told("a", "n1"), Told("b", "n1")]))
    whole = group(found)
    assert (whole.citations_mean, whole.effective_sites, whole.top_site_share) == (0, None, None)
    assert (found.states["gone"].rate, found.states["gone"].undefined) == (None, "no_units")
    nothing = landscape(told_answers([]))
    assert (nothing.groups[0].citations_mean, nothing.without_citations.undefined) == (None, "no_units")


def test_figures_are_those_of_plain_loops() -> None:
    chance = random.Random(7)
    rows = [
        Told(
            f"m{chance.randrange(3)}",
            f"n{chance.randrange(12)}",
            tuple(f"s{min(chance.randrange(9), chance.randrange(9))}.example" for _ in range(chance.randrange(6))),
        )
        for _ in range(200)
    ]
    found = landscape(told_answers(rows))
    sites: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        sites[row.model].update(row.cited)
    for model, counts in sites.items():
        own, total = group(found, model_name=model), sum(counts.values())
        effective = math.exp(-sum(n / total * math.log(n / total) for n in counts.values()))
        assert (own.n_citations, own.effective_sites) == pytest.approx((total, effective))
