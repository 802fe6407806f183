"""What `citejury pipeline verify` is given: a report in Markdown, a research run, or the answers of a CSV v2 file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.asking.run_folder import CITATIONS
from pipeline.csv_v2.file import read_answers
from pipeline.errors import InputError
from pipeline.recording.citation_form import to_one_form
from pipeline.recording.run import RESEARCH_RUN, read_stored
from pipeline.schema import StoredAnswer
from pipeline.sources.fetching.resolved import resolved_earlier
from pipeline.verifying.read import read_report
from pipeline.verifying.values import ReadReport

REPORT = Path("final") / "report.md"


class Submitted(NamedTuple):
    """One report, or one answer."""

    answer_id: str | None
    """The answer's id; None for a report."""
    report: ReadReport
    """What it cites where."""


def submitted_file(path: Path) -> Path:
    """The file that is meant: of the folder of a research run, its report.

    Raises:
        InputError: there is no such file, or the folder is none of a finished research run.
    """
    if path.is_dir() and (path / REPORT).is_file():
        return path / REPORT
    if not path.is_file():
        what = "is a folder without `final/report.md`" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {what}. Name a report in Markdown, a CSV v2 file, or a finished research run.")
    return path


def is_csv(file: Path) -> bool:
    """Whether the file holds answers, by its name."""
    return file.suffix.lower() == ".csv"


def read_submitted(file: Path) -> Iterator[Submitted]:
    """The report, or every answer of the file in order, one at a time.

    Raises:
        InputError: the file has no sentence, is not UTF-8, or a CSV file that is not CSV v2.
    """
    if not is_csv(file):
        report = read_report(markdown_of(file))
        if not report.sentences:
            raise InputError(f"{str(file)!r} has no sentence outside headings, code and source lists to verify.")
        yield Submitted(None, report)
        return
    targets = resolved_earlier(file.parent / CITATIONS)
    for stored in read_answers(file):
        yield Submitted(stored.answer_id, report_of_answer(stored, targets))


def markdown_of(file: Path) -> str:
    """The file's text.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{str(file)!r} is not UTF-8: {error.reason} at byte {error.start}. Save the report as text in UTF-8."
        ) from error


def report_of_answer(stored: StoredAnswer, targets: Mapping[str, str]) -> ReadReport:
    """The answer as a report: its citations in the one form, with URLs where the provider's redirects lead to."""
    text = stored.answer_text if stored.model_name == RESEARCH_RUN else to_one_form(read_stored(stored))
    known = {str(number): targets.get(url, url) for number, url in enumerate(stored.citations, start=1)}
    return read_report(text, known)
