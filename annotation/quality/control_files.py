"""Files of controls: which units have known answers, and whether a person has confirmed them.

Source: annotation/contracts/controls.md#files-of-controls.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import LABELS, OWN_TASKS, RULES, TaskName, broken_rules
from annotation.argilla.tasks import lot
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.lines import table_rows
from pipeline.core.sentences import sentences
from pipeline.core.tables import unescaped
from pipeline.core.terminal import counted
from pipeline.records.schema import QueryResponse

_say = sentences(__file__)

_ALL_LABELS = tuple(label for task in OWN_TASKS for label in LABELS[task])
_YES = frozenset(["yes", "y", "true", "1", "x", "ja", "wahr", "はい"])
_FEW = 5  # with fewer controls of either answer nobody is noticed who always gives the same to that label


class Known(NamedTuple):
    line: int
    task: TaskName
    record: QueryResponse
    chunk_id: str
    kind: str
    answers: Mapping[str, bool]
    made_from: str = ""  # empty where that is the record itself


class KnownUnits(NamedTuple):
    units: tuple[Known, ...]  # the units that a person has confirmed, in the file's order
    unconfirmed: int


def records_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.records.jsonl")


def read_controls(path: Path, records: Mapping[str, QueryResponse]) -> KnownUnits:
    """The confirmed controls of the file.

    In a file without the column `confirmed` every row counts as confirmed. `records` are by `record_uuid`.
    """
    rows = _read_rows(path)
    header = next(rows)[1].keys()
    labels = [label for label in _ALL_LABELS if label in header]
    if "record_uuid" not in header or not labels:
        raise InputError(
            _say("no_controls", name=path.name, label=LABELS["generation"][0], header=", ".join(map(repr, header)))
        )
    bad: list[str] = []
    units: dict[tuple[TaskName, str, str], Known] = {}
    unconfirmed = 0
    for line, row in rows:
        try:
            if "confirmed" in header and not _value(row["confirmed"], "confirmed"):
                unconfirmed += 1
                continue
            unit = _known_unit(line, row, records)
            key = (unit.task, unit.record.record_uuid, unit.chunk_id)
            if key in units:
                raise InputError(f"the same unit stands in line {units[key].line}")
            units[key] = unit
        except InputError as error:
            bad.append(f"line {line}: {error}")
    if bad:
        rows_told = counted(len(bad), "row")
        raise BadRowsError(f"{path.name!r} has {rows_told} that cannot be used; nothing was pushed:", bad)
    if not units:
        raise InputError(_say("none_confirmed", name=path.name) if unconfirmed else f"{path.name!r} holds no control.")
    return KnownUnits(tuple(units.values()), unconfirmed)


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """First the header, each name with itself."""
    rows = table_rows(path, "record_uuid")
    header = [cell.strip() for cell in next(rows, (1, [""]))[1]]
    yield 1, dict(zip(header, header, strict=True))
    for line, cells in rows:
        padded = [*cells, *[""] * (len(header) - len(cells))]
        yield line, {name: unescaped(cell.strip()) for name, cell in zip(header, padded, strict=False)}


def _value(cell: str, column: str) -> bool | None:
    said = cell.casefold()
    if said not in _YES | frozenset(["no", "n", "false", "0", "nein", "falsch", "いいえ"]) | {""}:
        raise InputError(f"`{column}` is {cell!r}; write yes or no, or leave it empty")
    return said in _YES if said else None


def _known_unit(line: int, row: Mapping[str, str], records: Mapping[str, QueryResponse]) -> Known:
    told = {label: value for label in _ALL_LABELS if (value := _value(row.get(label, ""), label)) is not None}
    task = _task_of(row.get("task", ""), told)
    record, chunk_id = records.get(row["record_uuid"]), row.get("chunk_id", "")
    if record is None:
        raise InputError(f"there is no record {row['record_uuid']!r}")
    if task == "retrieval" and chunk_id not in {each.chunk_id for each in record.chunks}:
        raise InputError(f"the record {record.record_uuid!r} has no passage with the `chunk_id` {chunk_id!r}")
    if task == "grounding" and not record.chunks:
        raise InputError(f"the record {record.record_uuid!r} has no passages, so there is nothing to ground it on")
    answers = {label: told[label] for label in LABELS[task] if label in told}
    if rule := next((each for each in RULES[task] if each.name in broken_rules(task, answers)), None):
        raise InputError(f"its answers contradict each other: {rule.sentence}")
    if not answers:
        raise InputError("it is confirmed, and no answer is known")
    kind = row.get("kind") or "known"
    if kind in ("repeat", "company"):  # units shown again, and passages that come along with a control
        raise InputError(f"`kind` is {kind!r}, which means something else here; write another word, or leave it empty")
    return Known(line, task, record, chunk_id if task == "retrieval" else "", kind, answers, row.get("made_from", ""))


def _task_of(named: str, told: Iterable[str]) -> TaskName:
    """The task that a row names, or the only one that has all labels that it tells."""
    fitting = [task for task in OWN_TASKS if all(label in LABELS[task] for label in told) and named in ("", task)]
    if len(fitting) != 1:
        what = f"the task {named!r} has not" if named in OWN_TASKS else "no one task has"
        if named and named not in OWN_TASKS:
            own = ", ".join(OWN_TASKS)
            raise InputError(f"controls are for the tasks {own} only, and `task` is {named!r}; leave the row out")
        raise InputError(f"{what} all of the labels {', '.join(told) or '(none is told)'}")
    return fitting[0]


class Balanced(NamedTuple):
    units: tuple[Known, ...]  # the controls; answers that would be too many are not known in them any more
    dropped: tuple[str, ...]  # a line for each label of which answers are not counted
    few: tuple[str, ...]  # a line for each label with fewer than five controls of either answer


def balanced(units: Sequence[Known], where: str) -> Balanced:
    """So that neither who always says yes nor who always says no passes for any label.

    Of an answer that more than two thirds of a label's controls have, those too many are not counted, drawn by lot;
    the controls stay for their other labels. Of a label that has one answer only nothing counts, nor does a control
    that tells no other. BadRowsError where none is left.
    """
    one_sided: set[str] = set()
    dropped: list[str] = []
    few: list[str] = []
    forgotten: set[tuple[int, str]] = set()
    for task in OWN_TASKS:
        for label in LABELS[task]:
            known = [unit for unit in units if unit.task == task and label in unit.answers]
            counts = Counter(unit.answers[label] for unit in known)
            if not known:
                continue
            rarer = min((True, False), key=lambda value: counts[value])
            name = f"`{label}` ({task}, {where})"
            if not counts[rarer]:
                one_sided.add(label)
                dropped.append(f"{name}: {_answers(counts[not rarer], not rarer)}, as none has {_word(rarer)}")
                continue
            surplus = counts[not rarer] - 2 * counts[rarer]
            if surplus > 0:
                common = [unit for unit in known if unit.answers[label] != rarer]
                common.sort(key=lambda unit: lot(f"{unit.record.record_uuid} {unit.chunk_id}"))
                forgotten |= {(unit.line, label) for unit in common[:surplus]}
                many = _answers(counts[not rarer], not rarer)
                dropped.append(_say("surplus", name=name, surplus=surplus, answers=many, rarer=_word(rarer)))
            if counts[rarer] < _FEW:
                few.append(f"{name}: {_answers(counts[rarer], rarer)}")
    left = [unit for unit in units if not one_sided.issuperset(unit.answers)]
    if not left:
        raise BadRowsError(_say("one_sided"), dropped)
    kept = []
    for unit in left:
        counted_ones = {
            label: value
            for label, value in unit.answers.items()
            if label not in one_sided and (unit.line, label) not in forgotten
        }
        kept.append(unit._replace(answers=counted_ones))
    return Balanced(tuple(kept), tuple(dropped), tuple(few))


def _answers(count: int, value: bool) -> str:
    return f"{count} control{'s' * (count != 1)} with {_word(value)}"


def _word(value: bool) -> str:
    return "yes" if value else "no"
