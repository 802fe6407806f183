"""Results made by hand: three providers, one composite finding, two tasks, and what cannot be told."""

from collections.abc import Callable

from exports.statistics.groups import Denominators
from exports.statistics.ratings import InputFile
from exports.statistics.results_schema import (
    Difference,
    Finding,
    GroupRate,
    LabelResults,
    NoFigure,
    RateInterval,
    Results,
    TaskResults,
)
from exports.statistics.study import SERIOUS_PROBLEM

PROVIDERS = ("claude", "gemini", "perplexity")
HOSTILE_MODEL = "=1+1|<img src=x onerror=alert(1)>\x1b[31m\u202e$x$ \\input{/etc/passwd} & `code`"


def denominators(answers: int, asked: int | None = None) -> Denominators:
    return Denominators(
        asked=asked,
        answered=None if asked is None else answers,
        refused=None if asked is None else 2,
        failed=None if asked is None else asked - answers - 2,
        answers=answers,
        without_citations=3,
        with_unread_sources=None,
        discarded=4,
    )


def group(name: str, rate: float | None, half: float = 0.1, undefined: NoFigure | None = None) -> GroupRate:
    interval = None if rate is None or undefined else RateInterval(low=rate - half, high=rate + half, method="wilson")
    answers = 0 if rate is None else 20
    return GroupRate(
        by={"model_name": name},
        rate=rate,
        interval=interval,
        undefined=undefined,
        n_units=answers,
        n_undecided=0,
        n_narratives=min(answers, 12),
        denominators=denominators(answers, 24 if answers else None),
    )


def difference(
    a: str, b: str, rates: tuple[float, float] | None, p: float | None, undefined: NoFigure | None = None
) -> Difference:
    between = None if rates is None else rates[0] - rates[1]
    return Difference(
        by="model_name",
        within={},
        a=a,
        b=b,
        n_narratives=0 if rates is None else 12,
        rate_a=None if rates is None else rates[0],
        rate_b=None if rates is None else rates[1],
        difference=between,
        interval=None if between is None else RateInterval(low=between - 0.1, high=between + 0.1, method="wilson"),
        p=p,
        p_holm=None if p is None else min(1.0, p * 3),
        p_all=None if p is None else min(1.0, p * 6),
        stands_out=p is not None and p < 0.001,
        undefined=undefined,
    )


def label(rates: dict[str, float | None], p: float = 0.5) -> LabelResults:
    known = {name: rate for name, rate in rates.items() if rate is not None}
    names = sorted(rates)
    mean = sum(known.values()) / len(known) if known else None
    return LabelResults(
        rate=mean,
        interval=None if mean is None else RateInterval(low=mean - 0.08, high=mean + 0.08, method="wilson"),
        undefined="no_units" if mean is None else None,
        n_units=20 * len(known),
        n_undecided=0,
        n_narratives=12 if known else 0,
        denominators=denominators(20 * len(known), 24 * len(known) if known else None),
        groups=tuple(group(name, rates[name], undefined="no_units" if rates[name] is None else None) for name in names),
        differences=tuple(
            difference(a, b, (known[a], known[b]), p)
            if a in known and b in known
            else difference(a, b, None, None, "no_units")
            for at, a in enumerate(names)
            for b in names[at + 1 :]
        ),
    )


def results(names: tuple[str, ...] = PROVIDERS) -> Results:
    """Of three names: the third has the most serious problems, beyond chance; nobody judged the second on one task."""
    first, second, third = names
    whole = label({first: 0.1, second: 0.2, third: 0.41}, p=0.0001)
    grounding = {
        "support_present": label({first: 0.9, second: 0.8, third: 0.7}),
        "unsupported_claim_present": label({first: 0.004, second: 0.0, third: 0.02}),
    }
    generation = {"helpful": label({first: 1.0, second: None, third: 0.5})}
    return Results(
        latest_response="2026-03-01T12:00:00+00:00",
        seed=0,
        flips=10_000,
        by=("model_name",),
        consensus="share",
        weighted=False,
        inputs=(InputFile(file="grounding.csv", sha256="0" * 64, rows=120),),
        n_records=60,
        n_narratives=12,
        findings={
            "serious_problem": Finding.model_validate(
                {
                    **whole.model_dump(),
                    "title": SERIOUS_PROBLEM.title,
                    "any": SERIOUS_PROBLEM.any,
                    "n_incomplete": 7,
                    "missing": {"fabricated_source": 5, "unsafe_content": 2, "response_on_topic": 0},
                }
            )
        },
        tasks={"grounding": TaskResults(labels=grounding), "generation": TaskResults(labels=generation)},
        remarks=("Rates of retrieval are of passages that citejury chose.",),
    )


def with_labels(found: Results, change: Callable[[LabelResults], dict[str, object]]) -> Results:
    """The same results in which every label and finding has what the function changes of it."""

    def changed(part: LabelResults) -> LabelResults:
        return part.model_copy(update=change(part))

    findings = {name: changed(finding) for name, finding in found.findings.items()}
    tasks = {
        task: part.model_copy(update={"labels": {name: changed(each) for name, each in part.labels.items()}})
        for task, part in found.tasks.items()
    }
    return found.model_copy(update={"findings": findings, "tasks": tasks})
