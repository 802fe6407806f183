"""Agreement on CSV files: read them, measure, and write `agreement.json`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from exports.agreement.judge import measure_judges
from exports.agreement.measure import measure_agreement
from exports.agreement.ratings import Ratings
from exports.agreement.schema import Agreement
from exports.reading.judgements import read_judges
from exports.reading.read import ReadTables, export_files, read_tables
from pipeline.errors import InputError, OutputError
from pipeline.staging import staged_file

AGREEMENT_FILE = "agreement.json"


class Measured(NamedTuple):
    """Agreement, and what of the files did not count."""

    agreement: Agreement
    """The figures."""
    tables: list[Ratings]
    """The ratings that they were computed from, one for each task that has a file."""
    remarks: list[str]
    """Plain sentences about rows that were left out; empty where all count."""


def measure_files(paths: Sequence[Path], resamples: int = 2000, seed: int = 0) -> Measured:
    """Agreement on export folders and CSV files of that form; several files of one task count as one.

    Args:
        paths: Folders and files.
        resamples: How many resamples are behind each interval.
        seed: Seed of the resampling.

    Raises:
        InputError: a path names no export, a file cannot be read, or nobody submitted anything in any of them.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    return measure_tables(read_tables(export_files(paths)), resamples, seed)


def measure_tables(found: ReadTables, resamples: int, seed: int) -> Measured:
    """Agreement on what was read.

    Raises:
        InputError: nobody submitted anything in any of it, or there would be no resample or a negative seed.
    """
    if resamples < 1 or seed < 0:
        raise InputError(f"`resamples` is {resamples} and `seed` {seed}; expected 1 or more, and 0 or more.")
    if not any(len(table.units) for table in found.tables):
        names = ", ".join(f"`{file.file}`" for file in found.inputs) or "what was given"
        raise InputError(f"There is no submitted response in {names}. Export again when someone has submitted.")
    return Measured(measure_agreement(found.tables, found.inputs, resamples, seed), found.tables, found.remarks)


def with_judges(measured: Measured, paths: Sequence[Path]) -> Measured:
    """The same with the judges of these files beside it, at the same seed and resamples.

    Raises:
        InputError: a file is missing, not UTF-8 or empty.
        BadRowsError: no line of a file is a judgement.
    """
    read = read_judges(paths)
    agreement = measured.agreement
    judges = measure_judges(measured.tables, read.judges, agreement.resamples, agreement.seed)
    found = agreement.model_copy(update={"judge_files": tuple(read.files), "judges": judges})
    return measured._replace(agreement=found, remarks=[*measured.remarks, *read.remarks])


def write_agreement(agreement: Agreement, folder: Path) -> Path:
    """The path of the `agreement.json` written in `folder`, which is made; an earlier one is replaced as a whole.

    Raises:
        OutputError: the folder cannot be written, or holds an `agreement.json` that is not ours.
    """
    path = folder / AGREEMENT_FILE
    try:
        if path.exists() and not is_agreement(path):
            raise OutputError(f"`{path}` is not an agreement of citejury. Move it or choose another `--out`.")
        with staged_file(path) as file:
            file.write(agreement_json(agreement).encode())
    except OSError as error:
        raise OutputError(f"`{path}` cannot be written: {error.strerror}. Choose another `--out`.") from error
    return path


def agreement_json(agreement: Agreement) -> str:
    """The text of `agreement.json`: the same figures give the same text."""
    return agreement.model_dump_json(indent=2) + "\n"


def is_agreement(path: Path) -> bool:
    """Whether the file is an `agreement.json` of ours, of this version or another."""
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return False
    return isinstance(found, dict) and {"version", "latest_response", "tasks"} <= found.keys()
