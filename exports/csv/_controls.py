"""An annotator's answers to a control or a repeat as rows of `controls.csv` (exports/contracts/csv.md#controls)."""

from collections.abc import Mapping
from typing import Any

from annotation.campaign.datasets import JuryDataset
from annotation.display import hidden_metadata
from annotation.labels import LABELS
from annotation.units import Assignment, labels_and_question
from exports.csv.tables import utc
from exports.schema import ControlRow


def control_rows(
    dataset: JuryDataset,
    record: Mapping[str, Any],
    assignment: Assignment,
    response: Mapping[str, Any],
    annotator_id: str,
) -> list[ControlRow]:
    """A row for each label that she answered, in their order; of a control only those whose answer is known.

    Raises:
        ArgillaError: the record is not one of ours.
    """
    hidden = hidden_metadata(record)
    given, _ = labels_and_question(response["values"])
    is_repeat = assignment.purpose == "repeat"
    return [
        ControlRow(
            record_uuid=hidden["record_uuid"],
            task=dataset.task,
            chunk_id=hidden.get("chunk_id") or "",
            annotator_id=annotator_id,
            kind="repeat" if is_repeat else assignment.kind,
            label=label,
            known="" if is_repeat else str(assignment.answers[label]),
            given=str(given[label] == "yes"),
            repeats=assignment.repeats if is_repeat else "",
            language=hidden.get("language") or "und",
            round=dataset.round,
            workspace=dataset.workspace,
            created_at=utc(response["updated_at"]).isoformat(),
        )
        for label in LABELS[dataset.task]
        if label in given and (is_repeat or label in assignment.answers)
    ]
