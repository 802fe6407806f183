"""Agreement and disagreements for the tests of the report: ratings drawn at random, and texts that mean harm."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.statistics.agreement import measure_agreement
from exports.statistics.agreement_schema import Agreement
from exports.statistics.disagreements import Disagreement, find_disagreements
from exports.statistics.ratings import InputFile, Ratings
from exports.statistics.results_schema import Results
from tests.support.agreement_data import START, Row, ratings_of
from tests.support.results_data import results

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "</title><svg onload=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "<iframe src=https://evil.example></iframe>",
    "]]><!-- --!><plaintext>",
    "&lt;b&gt; &amp; {{7*7}} ${7*7}",
)
"""Texts that would do something on a page that forgets to escape; each must be seen as it was typed."""
BIDI = "left\u202eright\u2066\u0000\x07\ud800 end"
"""Text that turns the writing around and holds what no page may hold."""


def drawn_ratings(
    task: TaskName = "generation",
    annotators: Sequence[str] = ("anna", "ben", "carla"),
    n_records: int = 40,
    n_rounds: int = 2,
    seed: int = 0,
) -> Ratings:
    """Ratings of a task whose annotators err one time in seven; a week passes every eight records."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for number in range(n_records):
        truth = random.random(len(LABELS[task])) < 0.5
        for name in annotators:
            said = np.where(random.random(len(truth)) < 1 / 7, ~truth, truth)
            rows.append(
                Row(
                    record=f"r{number:03d}",
                    annotator=name,
                    labels=tuple(int(value) for value in said),
                    chunk="c1" if task == "retrieval" else "",
                    at=START + timedelta(weeks=number // 8),
                    round=f"round-{number * n_rounds // n_records + 1}",
                    language=("en", "de")[number % 2],
                )
            )
    return ratings_of(rows, task)


def drawn_agreement(tables: Sequence[Ratings], names: Sequence[str] = ("generation.csv",)) -> Agreement:
    inputs = [InputFile(file=name, sha256="ab" * 32, rows=len(tables[0].units)) for name in names]
    return measure_agreement(tables, inputs, resamples=200)


def with_texts(disagreements: Sequence[Disagreement], texts: Sequence[str], link: str = "") -> list[Disagreement]:
    """The disagreements with one text each in every place that holds one."""
    return [
        item.model_copy(
            update={
                "text": (text := texts[place % len(texts)]),
                "text_pair": f"pair {text}",
                "notes": {name: f"note {text}" for name in item.votes},
                "record_uuid": f"{item.record_uuid} {text}",
                "record_id": text,
                "link": link,
            }
        )
        for place, item in enumerate(disagreements)
    ]


def hostile_report_parts() -> tuple[Agreement, list[Disagreement], list[str]]:
    """A report's figures, disagreements and remarks with hostile text wherever one can come in from outside."""
    ratings = drawn_ratings(annotators=HOSTILE[:4])
    ratings = ratings._replace(rounds=(HOSTILE[4], HOSTILE[7]), unit_languages=(HOSTILE[5],) * 20 + (HOSTILE[6],) * 20)
    found = with_texts(find_disagreements(ratings), HOSTILE, "javascript:document.title='owned'")
    return drawn_agreement([ratings], HOSTILE), found, list(HOSTILE)


def hostile_results() -> Results:
    """Results whose models, definition of a finding, reasons and columns are hostile text."""
    found = results(HOSTILE[:3])
    finding = found.findings["serious_problem"]
    return found.model_copy(
        update={
            "findings": {"bad": finding.model_copy(update={"title": HOSTILE[5], "any": (HOSTILE[6],)})},
            "remarks": (HOSTILE[7],),
        }
    )


def whole_report_parts() -> tuple[Agreement, list[Disagreement]]:
    """A report's figures on all three tasks, and all disagreements without texts."""
    tables = [drawn_ratings(task, seed=number) for number, task in enumerate(TASKS)]
    found = [item for table in tables for item in find_disagreements(table)]
    return drawn_agreement(tables, [f"{task}.csv" for task in TASKS]), found
