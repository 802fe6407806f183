"""Files of judgements: lines of `citejury annotation judge`, or of anything that answers the labels by unit."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.labels import TaskName
from annotation.push.suggestions import GOOD, Judgement, external_id, read_judgement
from exports.agreement.judge import JudgedUnits, UnitKey
from exports.agreement.schema import JudgeFile
from pipeline.errors import BadRowsError, InputError
from pipeline.recording.files import numbered_lines
from pipeline.terminal import printable

BAD_LINES_TOLD = 20
"""So many bad lines of a file are told one by one; how many there are is told of all."""


class _JudgeTable(NamedTuple):
    """What one judge says of one task, while its lines are read."""

    labels: dict[UnitKey, dict[str, tuple[bool, float]]]
    """Value and probability of yes, by unit and label."""
    statuses: Counter[str]
    """Judgements that cannot be used, by status."""
    quotes: dict[UnitKey, tuple[str, ...]]
    """The quotes that its judgements rest on, by unit."""


class ReadJudgements(NamedTuple):
    """What files of judgements hold."""

    judges: dict[str, dict[TaskName, JudgedUnits]]
    """By the judge's name and task."""
    files: list[JudgeFile]
    """The files in the order they were given."""
    remarks: list[str]
    """Plain sentences about lines that were left out; empty where all count."""


def read_judges(paths: Sequence[Path]) -> ReadJudgements:
    """The judgements of all files; one judge may be in several of them, and several in one.

    A bad line is left out and told in the remarks; so is a second judgement of a unit by the same judge.

    Raises:
        InputError: a file is missing, not UTF-8 or empty.
        BadRowsError: no line of a file is a judgement.
    """
    tables: dict[str, dict[TaskName, _JudgeTable]] = {}
    files, remarks = [], []
    for path in {path.resolve(): path for path in paths}.values():
        bad, lines = _read_into(tables, path)
        if not lines:
            raise InputError(f"`{path.name}` holds no judgement: it is empty.")
        if len(bad) == lines:
            raise BadRowsError(f"`{path.name}` holds no judgement; none of its {lines} lines is one:", bad)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files.append(JudgeFile(file=path.name, sha256=digest, lines=lines, bad_lines=len(bad)))
        remarks += _bad_line_remarks(path.name, bad)
    judges: dict[str, dict[TaskName, JudgedUnits]] = {
        name: {task: JudgedUnits(*table) for task, table in by_task.items()} for name, by_task in tables.items()
    }
    return ReadJudgements(judges, files, remarks)


def _read_into(tables: dict[str, dict[TaskName, _JudgeTable]], path: Path) -> tuple[list[str], int]:
    """Add the file's judgements to the tables; what is wrong with its bad lines, and how many lines it has."""
    bad: list[str] = []
    lines = 0
    for number, line in numbered_lines(path):
        lines += 1
        try:
            judgement = read_judgement(line)
            external_id(judgement)
            _add(tables.setdefault(_judge_name(line) or path.name, {}), judgement, _quotes(line))
        except InputError as error:
            bad.append(printable(f"line {number}: {error}"))
    return bad, lines


def _judge_name(line: str) -> str:
    """The `model` of a line that is a JSON object; empty where it states none.

    Raises:
        InputError: it is no text.
    """
    name = json.loads(line).get("model", "")
    if not isinstance(name, str):
        raise InputError("`model` is no text")
    return name


def _quotes(line: str) -> tuple[str, ...]:
    """The snippets of a line's evidence; what is none, as in files of other programs, is let be."""
    evidence = json.loads(line).get("evidence")
    given = evidence if isinstance(evidence, list) else []
    snippets = (each.get("snippet") for each in given if isinstance(each, dict))
    return tuple(each for each in snippets if isinstance(each, str) and each.strip())


def _add(by_task: dict[TaskName, _JudgeTable], judgement: Judgement, quotes: tuple[str, ...]) -> None:
    """Add a judgement to those of its judge.

    Raises:
        InputError: the unit has one already.
    """
    chunk_id = judgement.chunk_id if judgement.task == "retrieval" else None
    unit = (judgement.record_uuid, chunk_id or "")
    table = by_task.setdefault(judgement.task, _JudgeTable({}, Counter(), {}))
    if judgement.status != GOOD:
        table.statuses[judgement.status] += 1
    elif unit in table.labels:
        raise InputError(f"a second judgement of {judgement.task} {external_id(judgement)!r}")
    else:
        table.labels[unit] = {name: (label.value, label.p_yes) for name, label in judgement.labels.items()}
        if quotes:
            table.quotes[unit] = quotes


def _bad_line_remarks(name: str, bad: Sequence[str]) -> list[str]:
    """A sentence with the number of bad lines, then the first of them one by one."""
    if not bad:
        return []
    noun = "line is no judgement that counts and is" if len(bad) == 1 else "lines are no judgements that count and are"
    told = [f"{name}, {line}" for line in bad[:BAD_LINES_TOLD]]
    more = [f"{name}: {len(bad) - BAD_LINES_TOLD:,} more such lines."] if len(bad) > BAD_LINES_TOLD else []
    return [f"{name}: {len(bad):,} {noun} left out.", *told, *more]
