"""Answers of runs as arrays, made from short rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exports.statistics.results import measure_results
from exports.statistics.results_schema import Results
from exports.statistics.study import (
    STATES,
    UNKNOWN_CITED,
    Answers,
    Column,
    RunCounts,
    Study,
)
from pipeline.records.causes import may_be_fabricated
from pipeline.records.schema import CITED


class Told(NamedTuple):
    """One answer: who gave it, to which narrative, and its sources: each `site`, `site=state` or `site=state=seen`."""

    model: str
    narrative: str
    cited: tuple[str, ...] = ()
    language: str = "en"


def column(texts: Sequence[str]) -> Column:
    names = sorted(set(texts))
    return Column(tuple(names), np.array([names.index(text) for text in texts], np.int64))


def never_was(state: str) -> bool | None:
    return may_be_fabricated("read" if state == "excerpt" else state)  # type: ignore[arg-type]


def told_answers(rows: Sequence[Told]) -> Answers:
    """The answers in the order of the rows; their ids are `r0`, `r1` …; `site=excerpt` is read from an excerpt."""
    given = [(at, text.split("=")) for at, row in enumerate(rows) for text in row.cited]
    cited = [(at, *parts, *("", "read", "cited")[len(parts) :]) for at, parts in given]
    return Answers(
        record_uuids=tuple(f"r{at:06d}" for at in range(len(rows))),
        columns={
            "model_name": column([row.model for row in rows]),
            "language": column([row.language for row in rows]),
        },
        narratives=column([row.narrative for row in rows]),
        n_passages=np.zeros(len(rows), np.int64),
        cited_by=np.array([at for at, *_ in cited], np.int64),
        sites=column([site for _, site, *_ in cited]),
        states=np.array([STATES.index("read" if s == "excerpt" else s) for _, _, s, _ in cited], np.int64),
        cited=np.array([CITED.index(way) if way in CITED else UNKNOWN_CITED for *_, way in cited], np.int64),
        excerpts=np.array([s == "excerpt" for _, _, s, _ in cited], np.bool_),
        never_were=np.array([np.nan if (it := never_was(s)) is None else it for _, _, s, _ in cited], np.float64),
    )


def _sites(model: str, at: int) -> tuple[str, ...]:
    own = f"{model.lower().encode().hex()[:40]}.example=gone"
    return ("a.example", own) if at % 3 else ("a.example=excerpt",)


def surveyed(models: tuple[str, ...], by: tuple[str, ...] = ("model_name",)) -> Results:
    """Results of these models: the last cites nothing for every second narrative, and has a site of its own."""
    rows = [
        Told(
            model,
            f"n{at}",
            _sites(model, at) if model != models[-1] or at % 2 else (),
            "en" if at % 5 else "und",
        )
        for at in range(40)
        for model in models
    ]
    runs = {model: RunCounts(123_456, 3, 123_413) for model in models}
    return measure_results(Study((), {}, {}, answers=told_answers(rows), runs=runs), by=by)
