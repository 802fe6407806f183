"""Records out of what people have: run folders, CSV v2 files, and JSON Lines, canonical or ragas-style.

Whatever is no record is noted with its place and reason, and the reading goes on.
"""

from collections.abc import Iterator
from pathlib import Path

from pipeline.csv_v2.lines import numbered_rows
from pipeline.csv_v2.rows import ANSWER_ID, AnswerParts
from pipeline.errors import BadRowsError, InputError
from pipeline.recording.files import read_records, research_records
from pipeline.recording.run import RESEARCH_RUN, read_run_id, record_from_answer
from pipeline.records import QueryResponse
from pipeline.schema import CSV_COLUMNS, PROVIDERS, StoredAnswer


def read_source(path: Path, problems: list[str]) -> Iterator[QueryResponse]:
    """The records of a run folder, of a CSV v2 file (named `….csv`), or of a file of JSON Lines, in their order.

    `problems` gets a line for each part that is no record: file, line, reason.

    Raises:
        InputError: no such path, not UTF-8, not CSV v2, or nothing in it.
    """
    own = research_records(path)
    if own:
        yield from read_source(own, problems)
    elif path.is_dir():
        yield from read_run(path, problems)
    elif path.suffix.lower() == ".csv":
        yield from records_of_csv(path, read_run_id(path.parent), problems)
    else:
        try:
            yield from read_records(path)
        except BadRowsError as error:
            problems += [f"{path.name}, {row}" for row in error.rows]


def read_run(run: Path, problems: list[str]) -> Iterator[QueryResponse]:
    """The records of a run folder, provider by provider, in the order of its CSV files.

    Raises:
        InputError: the folder holds no answers' file, or one that is not CSV v2.
    """
    files = [run / f"{name}.csv" for name in (*PROVIDERS, RESEARCH_RUN) if (run / f"{name}.csv").is_file()]
    if not files:
        raise InputError(
            f"{str(run)!r} holds no answers: none of `openai.csv`, `claude.csv` … is there. Name the folder that "
            "`citejury pipeline ask` wrote."
        )
    run_id = read_run_id(run)
    for file in files:
        yield from records_of_csv(file, run_id, problems)


def records_of_csv(path: Path, run_id: str, problems: list[str]) -> Iterator[QueryResponse]:
    """The record of every whole answer of a CSV v2 file."""
    for answer in read_whole_answers(path, problems):
        yield record_from_answer(answer, run_id)


def read_whole_answers(path: Path, problems: list[str]) -> Iterator[StoredAnswer]:
    """The answers of a CSV v2 file whose rows are all there and agree; one answer's rows may stand apart.

    Raises:
        InputError: the file is missing, not UTF-8, not CSV, or its header is not the 20 columns in order.
    """
    waiting: dict[str, AnswerParts] = {}
    closed: set[str] = set()
    current = ""
    for line, cells in read_whole_rows(path, problems):
        answer_id = cells[ANSWER_ID]
        if answer_id != current and current in waiting and waiting[current].is_whole():
            closed.add(current)
            yield from whole_answer(path, waiting.pop(current), problems)
        current = answer_id
        if answer_id in closed:
            problems.append(described(path, line, f"the answer {answer_id!r} ended or went wrong further up"))
            continue
        try:
            waiting.setdefault(answer_id, waiting.get(answer_id) or AnswerParts(line, cells)).add(cells)
        except ValueError as error:
            problems.append(described(path, line, str(error)))
            waiting.pop(answer_id, None)
            closed.add(answer_id)
    for parts in waiting.values():
        yield from whole_answer(path, parts, problems)


def read_whole_rows(path: Path, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows that have as many cells as there are columns, with the lines on which they begin.

    Raises:
        InputError: the file is missing, not UTF-8, not CSV, or its header is not the 20 columns in order.
    """
    rows = numbered_rows(path)
    _, header = next(rows, (1, []))
    if tuple(header) != CSV_COLUMNS:
        raise InputError(
            f"{str(path)!r} is not CSV v2: its first line is not the {len(CSV_COLUMNS)} columns in order. Run "
            "`citejury pipeline check` on it, or `citejury pipeline migrate` if it is CSV v1."
        )
    for line, cells in rows:
        if len(cells) == len(CSV_COLUMNS):
            yield line, cells
        else:
            problems.append(described(path, line, f"found {len(cells)} cells, wanted {len(CSV_COLUMNS)}"))


def whole_answer(path: Path, parts: AnswerParts, problems: list[str]) -> Iterator[StoredAnswer]:
    """The answer that the rows say; none where rows are missing or contradict each other."""
    if not parts.is_whole():
        found = f"has {parts.rows} rows, wanted {parts.rows_wanted()}, and {len(parts.sources)} sources"
        reason = f"the answer {parts.answer_id!r} {found}, wanted {len(parts.citations)}"
        problems.append(described(path, parts.line, reason))
        return
    try:
        yield parts.to_answer()
    except ValueError as error:
        problems.append(described(path, parts.line, str(error)))


def described(path: Path, line: int, reason: str) -> str:
    """The line about one part of a file that is no record."""
    return f"{path.name}, line {line}: {reason}"
