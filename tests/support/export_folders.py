"""Export folders made by hand: answers of several models to several narratives, and the votes on them."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import LABELS, TaskName
from exports.csv.schema import COLUMNS

AT = "2026-03-01T12:00:00+00:00"
PROVENANCE = ("record_uuid", "narrative_id", "narrative_type", "model_name", "model_version", "run_id", "language")


class Answer(NamedTuple):
    """One record with the labels on which its annotators say yes, the same for all of them unless told otherwise."""

    record: str
    model: str = ""
    narrative: str = ""
    query: str = ""
    yes: Mapping[str, Sequence[str]] = {}  # Labels that are yes by annotator
    language: str = "en"


def vote_rows(task: TaskName, answers: Iterable[Answer]) -> list[dict[str, str]]:
    """A row of the task's file for each annotator of each answer; retrieval has one passage an answer."""
    rows = []
    for answer in answers:
        for annotator, yes in sorted(answer.yes.items()):
            row = dict.fromkeys(COLUMNS[task], "")
            row |= {label: str(label in yes) for label in LABELS[task]}
            row |= {"record_uuid": answer.record, "annotator_id": annotator, "task": task, "created_at": AT}
            row |= {"language": answer.language, "query": answer.query, "input_query": answer.query}
            row |= {"chunk_id": f"{answer.record}#0", "chunk_rank": "1", "answer": "An answer [1]."}
            rows.append({column: row[column] for column in COLUMNS[task]})
    return rows


def write_rows(path: Path, rows: Sequence[Mapping[str, str]], columns: Sequence[str] = ()) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns or list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def provenance_rows(answers: Iterable[Answer]) -> list[dict[str, str]]:
    return [
        dict.fromkeys(PROVENANCE, "")
        | {
            "record_uuid": answer.record,
            "narrative_id": answer.narrative,
            "model_name": answer.model,
            "language": answer.language,
        }
        for answer in answers
    ]


def write_export(
    folder: Path,
    answers: Sequence[Answer],
    tasks: Sequence[TaskName] = ("grounding", "generation"),
    provenance: bool = True,
) -> Path:
    """The folder with a file for each task, and `provenance.csv` unless told otherwise."""
    for task in tasks:
        write_rows(folder / f"{task}.csv", vote_rows(task, answers), COLUMNS[task])
    if provenance:
        write_rows(folder / "provenance.csv", provenance_rows(answers), PROVENANCE)
    return folder


def campaign(
    models: Sequence[str] = ("claude", "gemini", "perplexity"), narratives: int = 12, prefix: str = "r"
) -> list[Answer]:
    """An answer of each model to each narrative; the last model has a contradicted claim in two of three answers."""
    sound = ("support_present", "source_cited", "proper_action", "response_on_topic", "helpful")
    bad = ("contradicted_claim_present", "unsupported_claim_present")
    return [
        Answer(
            record=f"{prefix}-{model}-{number:02d}",
            model=model,
            narrative=f"n{number:02d}",
            query=f"Is statement {number} true?",
            yes=dict.fromkeys(("anna", "ben"), (*sound, *bad) if model == models[-1] and number % 3 else sound),
        )
        for number in range(narratives)
        for model in models
    ]
