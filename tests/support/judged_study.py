"""A study on disk of which people labelled a part and a judge judged all: export, judgements, records."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TaskName
from tests.support.export_folders import Answer, write_export
from tests.support.planned_records import planned_record, write_planned

MODELS = ("claude", "gemini")
LABEL = "helpful"


class JudgedAnswer(NamedTuple):
    """An answer with what it is worth on `helpful`, and what the judge says."""

    record: str
    narrative: str
    model: str
    language: str
    value: bool
    p_yes: float


def judged_answers(
    narratives: int,
    models: Sequence[str] = MODELS,
    languages: Sequence[str] = ("de", "en"),
    seed: int = 0,
    rate: float = 0.4,
) -> list[JudgedAnswer]:
    """An answer of each model to each narrative; the judge's probability goes along with what it is worth."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(narratives):
        difficulty = generator.normal()
        for model in models:
            score = difficulty + generator.normal()
            p_yes = 1 / (1 + np.exp(-2 * (score + 0.7 * generator.normal())))
            name = f"N{number:04d}"
            value = bool(score > 2**0.5 * (0.5 - rate) * 2.5)
            language = languages[number % len(languages)]
            found.append(JudgedAnswer(f"{name}-{model}", name, model, language, value, round(float(p_yes), 6)))
    return found


def judgement(answer: JudgedAnswer, task: TaskName = "generation", **changes: Any) -> dict[str, Any]:
    labels = {label: {"value": answer.p_yes > 0.5, "p_yes": answer.p_yes} for label in LABELS[task]}
    line = {"record_uuid": answer.record, "task": task, "labels": labels, "status": "ok", "model": "judy"}
    return line | changes


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_judged_study(
    folder: Path, answers: Sequence[JudgedAnswer], labelled: Collection[str], known: Collection[str] | None = None
) -> tuple[Path, Path, Path]:
    """Export, judgements and records; people labelled the records of some narratives or records, `known` by name."""
    voted = [
        Answer(
            answer.record,
            answer.model,
            answer.narrative,
            f"Is {answer.narrative} true?",
            {"anna": (LABEL,) if answer.value else ()},
            answer.language,
        )
        for answer in answers
        if answer.narrative in labelled or answer.record in labelled
    ]
    export = write_export(folder / "export", voted, tasks=("generation",))
    judgements = write_lines(folder / "judgements.jsonl", [judgement(answer) for answer in answers])
    records = [
        planned_record(answer.narrative, answer.model, answer.language)
        for answer in answers
        if known is None or answer.record in known
    ]
    return export, judgements, write_planned(folder / "records.jsonl", records)


def first_narratives(answers: Sequence[JudgedAnswer], number: int, seed: int = 1) -> set[str]:
    names = sorted({answer.narrative for answer in answers})
    return set(np.random.default_rng(seed).permutation(names)[:number].tolist())
