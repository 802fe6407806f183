"""Studies made for tests: votes of a jury on answers whose provenance is known."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.statistics.ratings import MISSING
from exports.statistics.study import Study
from tests.support.agreement_data import Row, ratings_of


class Answer(NamedTuple):
    """An answer of a provider to a narrative, and what each annotator said: labels by annotator, a passage each."""

    narrative: str
    model: str
    votes: Mapping[str, Sequence[Mapping[str, int]]]
    """By label's task: one mapping of labels to votes for each annotator."""
    language: str = "en"
    passages: Sequence[Sequence[Mapping[str, int]]] = ()  # The same for each passage, in retrieval

    @property
    def record(self) -> str:
        return f"{self.narrative}/{self.model}/{self.language}"


def study_of(answers: Sequence[Answer]) -> Study:
    """The study of these answers, as it is read from an export with its provenance."""
    rows: dict[TaskName, list[Row]] = {task: [] for task in TASKS}
    for answer in answers:
        for task, votes in answer.votes.items():
            rows[task] += _rows(answer.record, task, votes, "")
        for number, votes in enumerate(answer.passages):
            rows["retrieval"] += _rows(answer.record, "retrieval", votes, f"c{number}")
    return Study(
        tables=tuple(ratings_of(found, task) for task, found in rows.items() if found),
        provenance={
            answer.record: {
                "narrative_id": answer.narrative,
                "model_name": answer.model,
                "language": answer.language,
            }
            for answer in answers
        },
        narratives={answer.record: answer.narrative for answer in answers},
    )


def _rows(record: str, task: TaskName, votes: Sequence[Mapping[str, int]], chunk: str) -> list[Row]:
    return [
        Row(record, f"anna{number}", tuple(vote.get(label, MISSING) for label in LABELS[task]), chunk)
        for number, vote in enumerate(votes)
    ]
