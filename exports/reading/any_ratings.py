"""Anybody's ratings: tables, and exports of Label Studio, Prodigy and Argilla.

Source: exports/contracts/agreement.md#anybodys-ratings.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from annotation.argilla.labels import OWN_TASKS
from exports.reading.input_files import counted_cells, input_file
from exports.reading.read import ReadTables, RecordFacts
from exports.statistics.ratings import (
    MISSING,
    NO,
    USUAL_WEIGHTS,
    YES,
    InputFile,
    Ratings,
    ScaledLabel,
    ScaleName,
    Weights,
    all_labels,
)
from exports.statistics.scales import MOST_VALUES
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.lines import table_rows
from pipeline.core.schema import Frozen
from pipeline.core.sentences import sentences
from pipeline.core.spreadsheet import read_sheet
from pipeline.core.terminal import counted, printable

_say = sentences(__file__)

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_ZEROS = re.compile(r"([-+]?\d+)\.0*|([-+]?\d*\.\d*[1-9])0+")  # Numbers with zeros behind, which add nothing
_WORDS = {**dict.fromkeys(("true", "1", "yes"), YES), **dict.fromkeys(("false", "0", "no"), NO)}
_LIKE_MISSING = {"na", "n/a", "nan", "null", "none", "."}
_SHOWN = 12  # So many values are named in a sentence
_STUDIO = {"choices": "choices", "rating": "rating", "number": "number", "pairwise": "selected"}  # Kinds of results
_FEW_TEXTS = 10  # So many different values are no free text yet
_Row = tuple[str, Mapping[str, Any]]  # Where it is, and its cells by column


class RatingOptions(Frozen):
    """Where a table has what, and what its labels are; an empty name is one that was not given."""

    unit: str = ""
    rater: str = ""
    value: str = ""
    label: str = ""
    group: str = ""
    """What results are compared by: a unit is one in each group."""
    cluster: str = ""
    """What units belong together."""
    rater_columns: tuple[str, ...] = ()
    """Names, or patterns such as `rater_*`, of the columns of a wide table that hold an annotator's ratings each."""
    scale: ScaleName | Mapping[str, ScaleName] | None = None
    """Of all labels or by label, under "" that of all others."""
    order: tuple[str, ...] | Mapping[str, tuple[str, ...]] = ()
    """The only values that count, in their order; by label as `scale`."""
    weights: Weights | None = None
    missing: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        return any(value for _, value in self)


def rating_options(told: Mapping[str, Any]) -> RatingOptions:
    try:
        return RatingOptions.model_validate(told)
    except ValidationError as error:
        found = error.errors()[0]
        name, given = str(found["loc"][0]), found["input"]
        if name not in RatingOptions.model_fields:
            there = ", ".join(RatingOptions.model_fields)
            raise InputError(f"`{name}` is no option of ratings; there are {there}.") from error
        given = next(iter(given.values()), "") if isinstance(given, Mapping) else given
        expected = found["msg"].replace("Input should be ", "choose ").replace("'", "")
        raise InputError(f"`{name}` is {given!r:.80}; {expected}.") from error


class _Vote(NamedTuple):
    """A rating as a file has it, and after `_Reading.add` as texts."""

    place: str
    unit: Any
    rater: Any
    label: Any
    value: Any
    group: Any = None
    cluster: Any = None
    moment: str = ""  # Of several ratings of a unit by one annotator the newest counts, where their program tells


class _Reading:
    """What is read of one source after the other; bad rows are listed, and what does not count is told."""

    def __init__(self, options: RatingOptions) -> None:
        self.options = options
        self.bad: list[str] = []
        self.skipped: Counter[str] = Counter()  # How often each sentence is to be said
        self.several: set[str] = set()  # Labels with several values at once
        self.votes: list[_Vote] = []

    def add(self, vote: _Vote) -> None:
        value = vote.value
        if isinstance(value, list | tuple | np.ndarray):
            if len(value) > 1:
                self.several.add(_text(vote.label))
            value = value[0] if len(value) == 1 else None
        unit, rater, label, value, group = map(_text, (vote.unit, vote.rater, vote.label, value, vote.group))
        cluster = _text(vote.cluster)
        told, value = self.options, _value(value)
        if not value or value in map(_value, told.missing):
            return
        needed = {"unit": unit, "rater": rater, "group": group or not told.group}
        needed["cluster"] = cluster or not told.cluster
        empty = [name for name, told in needed.items() if not told]
        doubts = [cell.why for cell in vote if hasattr(cell, "why") and cell not in ("TRUE", "FALSE")]
        why = " and ".join(doubts) or (f"no {' and no '.join(empty)}" if empty else "")
        if why:
            self.bad.append(f"{vote.place}: {why}.")
        else:
            self.votes.append(_Vote(vote.place, unit, rater, label, value, group, cluster, vote.moment))


def _text(value: Any) -> str:
    """A cell as a file has it, without blanks around it; 1 and 1.0 are the same number."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _value(text: str) -> str:
    """A value, of a number its shortest text: 1.0, as pandas writes a column with a gap, is 1."""
    found = _ZEROS.fullmatch(text)
    return found[1] or found[2] if found else text


def is_of_others(paths: Sequence[Path]) -> bool:
    """Whether one of them can only be read as anybody's ratings, whatever the options."""
    return any(path.suffix.lower() in _READERS or (path.is_dir() and _is_saved(path)) for path in paths)


def read_ratings(paths: Sequence[Path], options: RatingOptions, frames: Sequence[Any] = ()) -> ReadTables:
    """The ratings of all files and data frames together.

    Raises:
        InputError: a file cannot be read, has not the columns, or the scale of a label cannot be told.
        BadRowsError: rows that cannot be read or contradict each other; every one of them is listed.
    """
    reading = _Reading(options)
    inputs = [_read_path(reading, path) for path in paths]
    for number, frame in enumerate(frames, start=1):
        names = [str(name) for name in frame.columns]
        reading.options = _with_order(reading.options, dict(zip(names, frame.dtypes, strict=True)))
        rows = (dict(zip(names, cells, strict=True)) for cells in frame.itertuples(index=False, name=None))
        _read_table(reading, f"frame {number}", names, ((f"row {at}", row) for at, row in enumerate(rows)))
    ratings, remarks = _gather(reading)
    return ReadTables([ratings], inputs, remarks, {}, RecordFacts())


def _with_order(told: RatingOptions, dtypes: Mapping[str, Any]) -> RatingOptions:
    """With the order that ratings have in a frame, as ordered categories, where no other order or scale is told."""
    wanted = told.rater_columns or (told.value,)
    kinds = [kind for name, kind in dtypes.items() if any(fnmatchcase(name, each) for each in wanted)]
    orders = {getattr(kind, "ordered", None) and tuple(map(_text, kind.categories)) for kind in kinds}
    if told.order or told.scale not in (None, "ordinal", {"": "ordinal"}) or not any(orders):
        return told
    if len(orders) > 1:
        raise InputError("The columns of annotators are ordered differently. Name the order that counts: `order`.")
    return told.model_copy(update={"order": orders.pop()})


def read_judge_ratings(paths: Sequence[Path], told: RatingOptions, people: Ratings) -> ReadTables:
    """A judge's ratings of the same units and labels: `judge` says whose, the other columns are those of the ratings.

    Columns that have no name there are `unit`, `value` and, of several labels, `label`.

    Raises:
        InputError, BadRowsError: as for the ratings.
    """
    labels = {label.name: label for label in all_labels(people)}
    (only, *more), orders = labels, told.order if isinstance(told.order, Mapping) else {"": told.order}
    orders = {name: orders.get(name, orders.get("", ())) for name in labels}
    reading = _Reading(
        told.model_copy(
            update={
                "unit": told.unit or "unit",
                "rater": "judge",
                "value": told.value if told.rater else "value",
                "label": told.label or ("label" if more else ""),
                "cluster": "",
                "rater_columns": (),
                # The values of an ordinal scale without a named order are numbers, and a judge may give others.
                "scale": {
                    name: "interval" if label.scale == "ordinal" and not orders[name] else label.scale
                    for name, label in labels.items()
                },
                "order": orders,
            }
        )
    )
    inputs = [_read_path(reading, path) for path in paths]
    votes = reading.votes if reading.options.label else [vote._replace(label=only) for vote in reading.votes]
    reading.votes = [vote for vote in votes if vote.label in labels]
    if unknown := len(votes) - len(reading.votes):
        reading.skipped["Ratings of a judge left out, of labels that nobody else rated: {}."] += unknown
    there = {vote.label for vote in reading.votes}
    for name in ("scale", "order"):
        known = {label: each for label, each in getattr(reading.options, name).items() if label in there}
        reading.options = reading.options.model_copy(update={name: known})
    ratings, remarks = _gather(reading)
    return ReadTables([ratings], inputs, remarks, {}, RecordFacts())


def _read_path(reading: _Reading, path: Path) -> InputFile:
    if not path.exists():
        raise InputError(f"There is no file or folder `{path}`. Look at the path.")
    try:
        if path.is_dir():
            return input_file(*_read_folder(reading, path))
        return input_file(path, _READERS.get(path.suffix.lower(), _read_cells)(reading, path))
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"`{path}` is not in a form that Label Studio, Prodigy or Argilla writes: {error}.") from error


def _read_cells(reading: _Reading, path: Path) -> int:
    """CSV, or the first sheet of a spreadsheet."""
    told = reading.options
    if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
        sheet = read_sheet(path)
        rows = iter(sheet.rows)
        if sheet.others or sheet.hidden_rows:
            hidden = f"{counted(len(sheet.hidden_rows), 'hidden row')} and {counted(len(sheet.others), 'other sheet')}"
            reading.skipped[f"{path.name}: {hidden}; the rows count, the sheets do not."] += 1
    else:
        rows = table_rows(path, told.unit or told.rater or told.value)
    names = [name.strip() for name in next(rows, (1, []))[1]]
    table: list[_Row] = []
    for line, cells in rows:
        if len(cells) == len(names):
            table.append((f"line {line}", dict(zip(names, cells, strict=True))))
        elif any(cells):
            reading.bad.append(f"{path.name}, line {line}: found {len(cells)} cells, the header has {len(names)}.")
    return _read_table(reading, path.name, names, table)


def _read_parquet(reading: _Reading, path: Path) -> int:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        table = read_table(path)
    except (ArrowException, OSError) as error:
        raise InputError(f"`{path}` cannot be read as Parquet: {error}.") from error
    rows = ((f"row {at}", row) for at, row in enumerate(table.to_pylist(), start=1))
    return _read_table(reading, path.name, table.column_names, rows)


def _read_json(reading: _Reading, path: Path) -> int:
    """A list of objects, as Label Studio exports it or as a table has its rows, or such an object a line."""
    is_list, rows = path.suffix.lower() == ".json", list[_Row]()
    for number, text in enumerate([path.read_bytes()] if is_list else path.read_bytes().splitlines(), start=1):
        try:
            told = json.loads(text.decode("utf-8-sig")) if text.strip() else []
        except ValueError as error:
            raise InputError(f"`{path}`, from line {number} on, is no JSON in UTF-8: {error}.") from error
        for at, row in enumerate(told if isinstance(told, list) else [told], start=1):
            rows.append((f"row {at}" if is_list else f"line {number}", row))
    names = list(dict.fromkeys(chain.from_iterable(row.keys() for _, row in rows)))
    if {"annotations", "completions"}.intersection(names):
        return _read_label_studio(reading, path.name, rows)
    if "_input_hash" in names and not (reading.options.rater or reading.options.rater_columns):
        return _read_prodigy(reading, path.name, rows)
    return _read_table(reading, path.name, names, rows)


_READERS = {".json": _read_json, ".jsonl": _read_json, ".ndjson": _read_json, ".parquet": _read_parquet}


def _read_table(reading: _Reading, source: str, names: Sequence[str], rows: Iterable[_Row]) -> int:
    """A long table, or a wide one with a column an annotator; how many rows it has."""
    told, count = reading.options, 0
    wanted = {"--unit": told.unit, "--rater": told.rater, "--value": told.value}
    lacking = [option for option, name in wanted.items() if not name and not told.rater_columns]
    if lacking:
        also = f"name {', '.join(lacking)}, or --rater-columns of a wide one"
        raise InputError(f"`{source}` is a table: {also}. {_columns_there(names)}")
    own = [told.unit, told.label, told.group, told.cluster]
    own += [] if told.rater_columns else [told.rater, told.value]
    _check_columns(source, names, own)
    raters = [name for name in names if name not in own and any(fnmatchcase(name, p) for p in told.rater_columns)]
    for pattern in told.rater_columns:
        if not any(fnmatchcase(name, pattern) for name in raters):
            raise InputError(f"`{source}` has no column `{printable(pattern)}`. {_columns_there(names)}")
    for count, (where, row) in enumerate(rows, start=1):
        unit, label = row.get(told.unit) if told.unit else count, row.get(told.label) if told.label else ""
        vote = _Vote(f"{source}, {where}", unit, "", label or told.value or "value", None)
        vote = vote._replace(group=row.get(told.group), cluster=row.get(told.cluster))
        for name in raters:
            reading.add(vote._replace(place=f"{vote.place}, {name}", rater=name, value=row.get(name)))
        if not raters:
            reading.add(vote._replace(rater=row.get(told.rater), value=row.get(told.value)))
    return count


def _columns_there(names: Iterable[str]) -> str:
    return f"Its columns are {', '.join(f'`{printable(name)}`' for name in names) or 'none'}."


def _check_columns(source: str, names: Sequence[str], wanted: Iterable[str]) -> None:
    for name in filter(None, wanted):
        if names.count(name) != 1:
            found = "no column" if name not in names else f"{names.count(name)} columns"
            raise InputError(f"`{source}` has {found} `{printable(name)}`. {_columns_there(names)}")


def _read_label_studio(reading: _Reading, source: str, tasks: Sequence[_Row]) -> int:
    told = reading.options
    _check_columns(
        source,
        list({name: 0 for _, task in tasks for name in task.get("data") or ()}),
        (told.unit, told.group, told.cluster),
    )
    for where, task in tasks:
        data, number = task.get("data") or {}, task.get("id", where)
        vote = _Vote(f"{source}, task {number}", data.get(told.unit) if told.unit else number, "", "", "")
        vote = vote._replace(group=data.get(told.group), cluster=data.get(told.cluster))
        for each in task.get("annotations") or task.get("completions") or ():
            if each.get("was_cancelled"):
                reading.skipped[f"{source}: annotations left out because they were skipped: {{}}."] += 1
                continue
            who, moment = each.get("completed_by"), str(each.get("updated_at") or each.get("created_at") or "")
            who = (who.get("email") or who.get("id")) if isinstance(who, dict) else who
            for result in each.get("result") or ():
                kind, label = result.get("type"), result.get("from_name")
                if kind not in _STUDIO:
                    reading.skipped[f"{source}: results of the kind {kind} left out, which are no ratings: {{}}."] += 1
                elif told.value in ("", label):
                    value = result["value"].get(_STUDIO[kind])
                    reading.add(vote._replace(rater=who, label=label, value=value, moment=moment))
    return len(tasks)


def _read_prodigy(reading: _Reading, source: str, rows: Sequence[_Row]) -> int:
    """Choices by `accept`, everything else by the answer: accept is yes."""
    for where, row in rows:
        answer, options = row.get("answer"), row.get("options")
        if "spans" in row or answer not in ("accept", "reject") or (options and answer == "reject"):
            why = "they mark spans" if "spans" in row else f"the answer is {answer}"
            reading.skipped[f"{source}: rows left out because {why}: {{}}."] += 1
            continue
        who, moment = row.get("_annotator_id") or row.get("_session_id"), f"{row.get('_timestamp') or 0:020.3f}"
        vote = _Vote(f"{source}, {where}", row.get("_input_hash"), who, "accept", row.get("accept"), moment=moment)
        if not options:
            reading.add(vote._replace(label=row.get("label") or "answer", value=answer == "accept"))
        elif (row.get("config") or {}).get("choice_style") == "multiple":
            for name in (option["id"] for option in options):
                reading.add(vote._replace(label=name, value=name in vote.value))
        else:
            reading.add(vote)
    return len(rows)


def _is_saved(path: Path) -> bool:
    return any((path / name).is_file() for name in ("records.json", "dataset_info.json", "dataset_dict.json"))


def _read_folder(reading: _Reading, path: Path) -> tuple[Path, int]:
    """What `to_disk` of Argilla wrote, or `save_to_disk` of datasets; the file that stands for it, and its rows."""
    file = path / "records.json"
    if not _is_saved(path):
        raise InputError(_say("not_saved", path=path))
    if file.is_file():
        found = json.loads(file.read_bytes())
        reading.skipped[f"{path.name}: whether answers are submitted, drafts or discarded is not told."] += 1
        for row in found:
            for name, answers in (row.get("responses") or {}).items():
                row[f"{name}.responses"] = [answer["value"] for answer in answers]
                row[f"{name}.responses.users"] = [answer["user_id"] for answer in answers]
    else:
        from datasets import DatasetDict, concatenate_datasets, load_from_disk

        found, file = load_from_disk(str(path)), min(path.rglob("*.arrow"))
        found = concatenate_datasets(list(found.values())) if isinstance(found, DatasetDict) else found
        if not any(name.endswith(".responses.users") for name in found.column_names):
            rows = ((f"row {at}", row) for at, row in enumerate(found, start=1))
            return file, _read_table(reading, path.name, found.column_names, rows)
    return file, _read_responses(reading, path.name, found)


def _read_responses(reading: _Reading, source: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Records of Argilla with a list of answers a question."""
    told, count = reading.options, 0
    for row in rows:
        count += 1
        _check_columns(source, list(row), (told.unit, told.group, told.cluster))
        unit = row.get(told.unit or "id")
        vote = _Vote(f"{source}, record {unit}", unit, "", "", None, row.get(told.group), row.get(told.cluster))
        for column in (name for name in row if row.get(f"{name}.users")):
            question, users = column.removesuffix(".responses"), row[f"{column}.users"]
            states = row.get(f"{column}.status") or ["submitted"] * len(users)
            for answer, user, state in zip(row[column], users, states, strict=True):
                if state != "submitted":
                    reading.skipped[f"{source}: answers left out because they are {state}: {{}}."] += 1
                elif told.value in ("", question):
                    reading.add(vote._replace(rater=user, label=question, value=answer))
    return count


_Unit = tuple[str, str]  # What was rated, and its group
_Cells = dict[tuple[_Unit, str], _Vote]  # By unit and annotator


def _gather(reading: _Reading) -> tuple[Ratings, list[str]]:
    remarks = [told.format(f"{count:,}") for told, count in reading.skipped.items()]
    remarks += [f"{name} is left out: some gave several values at once." for name in sorted(reading.several)]
    by_label: dict[str, _Cells] = defaultdict(dict)
    clusters: dict[_Unit, _Vote] = {}
    votes = [vote for vote in reading.votes if vote.label not in reading.several]
    apart = [f"`--{name}`" for name in ("group", "label") if not getattr(reading.options, name)]
    keep = "Keep one of them" + (f", or name the column that tells them apart: {' or '.join(apart)}" if apart else "")
    for vote in votes:
        unit = (vote.unit, vote.group)
        first = clusters.setdefault(unit, vote)
        if first.cluster != vote.cluster:
            told = f"unit {vote.unit!r} is in cluster {vote.cluster!r}, at {first.place} in {first.cluster!r}"
            reading.bad.append(f"{vote.place}: {told}.")
        earlier = by_label[vote.label].setdefault((unit, vote.rater), vote)
        if vote.moment > earlier.moment:
            by_label[vote.label][unit, vote.rater] = vote
        elif vote.moment == earlier.moment and vote.value != earlier.value:
            told = f"{vote.rater!r} gives {vote.unit!r} the {vote.label} {vote.value!r}, at {earlier.place}"
            reading.bad.append(f"{vote.place}: {told} {earlier.value!r}. {keep}.")
    repeated = len(votes) - sum(map(len, by_label.values()))
    if repeated:
        remarks.append(f"Ratings that repeat a unit, annotator and label, and count once: {repeated:,}.")
    named = (told for told in (reading.options.scale, reading.options.order) if isinstance(told, Mapping))
    unknown = sorted({*chain.from_iterable(named)} - {"", *by_label})
    if unknown:
        raise InputError(f"There is no label `{unknown[0]}`. There are {', '.join(sorted(by_label)) or 'none'}.")
    labels = [_Label(name, by_label[name], reading, remarks) for name in sorted(by_label)]
    if reading.bad:
        raise BadRowsError(f"{counted_cells(reading.bad)} cannot be used; mend or remove what is wrong:", reading.bad)
    labels = [label for label in labels if label.scale]
    if not labels:
        raise InputError(" ".join(["There is no rating that counts.", *remarks]))
    return _arranged(labels, {unit: vote.cluster or unit[0] for unit, vote in clusters.items()}, repeated), remarks


class _Label:
    """One label: its scale, its values in their order, and the number of each rating's value."""

    def __init__(self, name: str, cells: _Cells, reading: _Reading, remarks: list[str]) -> None:
        told = reading.options
        self.name, self.cells, self.remarks = name, cells, remarks
        order = told.order.get(name, told.order.get("", ())) if isinstance(told.order, Mapping) else told.order
        self.order = tuple(map(_value, order))
        found = Counter(vote.value for vote in cells.values())
        scale = told.scale.get(name, told.scale.get("")) if isinstance(told.scale, Mapping) else told.scale
        self.scale = scale or self._likely(found)
        self.codes: dict[str, int] = {}
        if self.scale == "boolean":
            wanted = self._arrange_words(found)
        elif self.scale:
            wanted = self._arrange(found)
            self.weights = told.weights or USUAL_WEIGHTS[self.scale]
            if self.scale == "nominal" and self.weights != "identity":
                raise InputError(f"`{name}` is nominal: its values have no order, so no weights but identity fit it.")
        for vote in cells.values() if self.scale else ():
            if vote.value not in self.codes:
                remedy = "; `--missing` names what is no value" if vote.value.casefold() in _LIKE_MISSING else ""
                remedy = "; decimals are written with a point" if re.fullmatch(r"-?\d+,\d+", vote.value) else remedy
                reading.bad.append(f"{vote.place}: `{name}` is {vote.value!r}, expected {wanted}{remedy}.")

    def _likely(self, found: Counter[str]) -> ScaleName | None:
        """What can be told from the values alone; never which scale numbers are on."""
        if self.order:
            return "ordinal"
        if all(value.casefold() in _WORDS for value in found):
            return "boolean"
        numbers = sorted(value for value in found if _number(value) is not None)
        if numbers:
            raise InputError(_say("numbers", name=self.name, numbers=", ".join(numbers[:_SHOWN])))
        if len(found) > max(_FEW_TEXTS, found.total() / 2):
            values = f"{len(found):,} different values in {counted(found.total(), 'rating')}"
            self.remarks.append(_say("free_text", name=self.name, values=values))
            return None
        return "nominal"

    def _arrange_words(self, found: Counter[str]) -> str:
        if self.order and len(self.order) != 2:
            raise InputError(f"`{self.name}` is yes or no: the order names two words, that for no first.")
        words = dict(zip(map(str.casefold, self.order), (NO, YES), strict=True)) if self.order else _WORDS
        self.codes = {value: words[value.casefold()] for value in found if value.casefold() in words}
        return ", ".join(words)

    def _arrange(self, found: Counter[str]) -> str:
        """Set values, their places and codes; what is expected in a cell."""
        listed = self.order or tuple(sorted(found))
        counts = self.scale == "interval" or all(_number(value) is not None for value in listed)
        if self.scale == "nominal":
            counts = False
            like = [repr(value) for value in listed if value.casefold() in _LIKE_MISSING]
            if like:
                told = (
                    f"{', '.join(like)} counts as a value, as any other. Name it with `--missing` if it stands for none"
                )
                self.remarks.append(f"{self.name}: {told}.")
        elif not (self.order or counts):
            shown = ", ".join(listed[:_SHOWN])
            raise InputError(f"`{self.name}` is ordinal, and {shown} have no order. Name it: `--order a,b,c`.")
        folded = Counter(value.casefold() for value in listed)
        if alike := [repr(value) for value in listed if folded[value.casefold()] > 1]:
            self.remarks.append(_say("alike", name=self.name, alike=", ".join(alike[:_SHOWN])))
        key = {value: _number(value) if counts else value for value in (*listed, *found)}
        ordered: list[Any] = [value for value in dict.fromkeys(key[value] for value in listed) if value is not None]
        if self.scale == "interval" or not self.order:
            ordered.sort()
        if self.scale == "ordinal" and len(ordered) > MOST_VALUES:
            raise InputError(f"`{self.name}` has {len(ordered):,} values, too many for ranks: take `--scale interval`.")
        number = {value: at for at, value in enumerate(ordered)}
        self.codes = {value: number[key[value]] for value in found if key[value] in number}
        self.values = tuple(f"{value:.15g}" if counts else value for value in ordered)
        self.places = np.array(ordered if self.scale == "interval" else range(len(ordered)), np.float64)
        return f"one of {', '.join(self.values[:_SHOWN])}" if self.order else "a number"


def _number(text: str) -> float | None:
    found = float(text) if _NUMBER.fullmatch(text) else math.inf
    return found if math.isfinite(found) else None


def _arranged(labels: Sequence[_Label], records: Mapping[_Unit, str], repeated: int) -> Ratings:
    """`records` by unit: its cluster, or what was rated."""
    there = {key for label in labels for key in label.cells}
    units = sorted({unit for unit, _ in there}, key=lambda unit: (records[unit], unit))
    names = [sorted({records[unit] for unit in units}), sorted({rater for _, rater in there})]
    record_of, rater_of = ({name: at for at, name in enumerate(listed)} for listed in names)
    unit_of = {unit: at for at, unit in enumerate(units)}
    chunks = [
        " ".join(filter(None, (name if name != records[name, group] else "", group and f"[{group}]")))
        for name, group in units
    ]
    rows = {key: at for at, key in enumerate(sorted(there, key=lambda key: (unit_of[key[0]], key[1])))}
    own = [label for label in labels if label.scale == "boolean"]
    values = np.full((len(rows), len(own)), MISSING, np.int8)
    for column, label in enumerate(own):
        for key, vote in label.cells.items():
            values[rows[key], column] = label.codes[vote.value]
    scaled = []
    for label in labels:
        if label.scale and label.scale != "boolean":
            cells = sorted(label.cells.items(), key=lambda cell: rows[cell[0]])
            columns = [(unit_of[unit], rater_of[rater], label.codes[vote.value]) for (unit, rater), vote in cells]
            arrays = np.array(columns, np.int64).T
            each = ScaledLabel(label.name, label.scale, label.weights, label.values, label.places, *arrays)
            scaled.append(each._replace(is_whole=bool(label.order)))
    return Ratings(
        task=OWN_TASKS[-1],  # Where a task is asked for; `own_labels` say that it is none of the three
        annotators=tuple(names[1]),
        records=tuple(names[0]),
        unit_records=np.array([record_of[records[unit]] for unit in units], np.int64),
        unit_chunks=tuple(chunks),
        unit_languages=("",) * len(units),
        units=np.array([unit_of[unit] for unit, _ in rows], np.int64),
        response_annotators=np.array([rater_of[rater] for _, rater in rows], np.int64),
        values=values,
        moments=np.zeros(len(rows), np.int64),
        rounds=(),
        response_rounds=np.full(len(rows), -1),
        n_duplicates=repeated,
        discards=None,
        own_labels=tuple(label.name for label in own),
        scaled=tuple(scaled),
        unit_names=tuple(" ".join(filter(None, (name, group and f"[{group}]"))) for name, group in units),
        unit_groups=tuple(group for _, group in units) if any(group for _, group in units) else (),
    )
