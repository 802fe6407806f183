"""What a judge reads and writes: units out of records; judgements, and a sample of rejected quotes beside them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from annotation.judge._answers import Judged, RejectedQuote
from annotation.judge._units import FullJudgement, Unit, units_of
from annotation.labels import TASKS, TaskName
from annotation.push.record_sources import read_source
from pipeline.asking.questions import NO_LIMITS, Limits, Tell
from pipeline.errors import BadRowsError, InputError, OutputError
from pipeline.files import staged_file
from pipeline.models.completion import STATUSES, Status
from pipeline.recording.files import numbered_lines


class Work(NamedTuple):
    """What to judge, and how.

    `sample` rejected quotes are written beside `out`; `report` hears how many units are done, and of how many; `tell`
    shows a line to the one who waits.
    """

    records: Path
    out: Path
    tasks: Sequence[TaskName] = TASKS
    explain: bool = False
    sample: int = 0
    limits: Limits = NO_LIMITS
    report: Callable[[int, int], None] = lambda done, total: None
    tell: Tell = lambda line: None

    def units(self, wanted: Callable[[Unit], bool]) -> Iterator[Unit]:
        """Each unit that is wanted, once, in the order of records, tasks and ranks; what is no record is passed over.

        Raises:
            InputError: no such path, not UTF-8, not CSV v2, or nothing in it.
        """
        seen: set[tuple[str, TaskName, str | None]] = set()
        for record in read_source(self.records, []):
            for unit in units_of(record, self.tasks):
                if unit.key not in seen and wanted(unit):
                    seen.add(unit.key)
                    yield unit


class Checked(NamedTuple):
    """What stands in the records' file: how many units, and a line for each part that is no record."""

    units: int
    problems: tuple[str, ...]


class Tally(NamedTuple):
    """What stands in the judgements' file.

    `units` counts judgements by status, `sites` by site and status: one of a unit of several sites at each of them;
    `left_out` counts by label the judgements that leave it out.
    """

    units: Counter[Status]
    sites: Counter[tuple[str, Status]]
    broken_rules: Counter[str]
    left_out: Counter[str]
    rejected: int


def check_work(work: Work, wanted: Callable[[Unit], bool], model: str) -> Checked:
    """What there is to judge.

    Raises:
        InputError: the records cannot be read, or hold nothing that is wanted.
        BadRowsError: no line of the file is a record.
        OutputError: something else stands at the place to write to.
    """
    problems: list[str] = []
    records = without_passages = found = 0
    for record in read_source(work.records, problems):
        records += 1
        without_passages += not record.chunks
        found += sum(1 for unit in units_of(record, work.tasks) if wanted(unit))
    if problems and not records:
        raise BadRowsError("No line is a record:", problems)
    units = sum(1 for _ in work.units(wanted))
    if not units:
        tasks = ", ".join(work.tasks)
        raise InputError(
            f"There is nothing to judge in {str(work.records)!r}: {records} records, none with a unit of {tasks} that "
            "this judge answers. Give records with passages, or other tasks."
        )
    _refuse_other_file(work, model)
    if without_passages:
        work.tell(f"{without_passages} of {records} records have no passages: annotators see them in generation only.")
    if found > units:
        work.tell(f"{found - units} units stand in the records more than once; the first of each is judged.")
    return Checked(units, tuple(problems))


def _refuse_other_file(work: Work, model: str) -> None:
    """Check that `work.out` is free or holds judgements of the model.

    Raises:
        OutputError: it or a file beside it is the records' file, it is no file or one of something else, or it holds
            another model's judgements.
    """
    out = work.out
    for path in (out, beside(out, "raw"), beside(out, "sample")):
        if path.resolve() == work.records.resolve():
            raise OutputError(f"{str(path)!r} would be written, but it is the records; name another `--out`.")
        if path.exists() and not path.is_file():
            raise OutputError(f"{str(path)!r} would be written, but it is no file; name another `--out`.")
    if not out.exists():
        return
    try:
        judged_by = [FullJudgement.model_validate_json(line).model for _, line in islice(numbered_lines(out), 1)]
    except (InputError, ValidationError) as error:
        raise OutputError(f"{str(out)!r} holds something else than judgements; name another `--out`.") from error
    if judged_by and judged_by[0] != model:
        raise OutputError(f"{str(out)!r} holds judgements by {judged_by[0]!r}, not {model!r}; name another `--out`.")


def beside(out: Path, what: str) -> Path:
    """The file of `what` beside the judgements: `<out>.<what>.jsonl`."""
    return out.with_name(f"{out.name}.{what}.jsonl")


def write_judgements(work: Work, judged: Iterable[tuple[Unit, Judged]]) -> Tally:
    """The tally; the judgements stand in the file as they come, the sample beside it where one is wanted."""
    tally = Tally(Counter(), Counter(), Counter(), Counter(), 0)
    sample: list[tuple[str, RejectedQuote]] = []
    with staged_file(work.out) as file:
        for unit, (judgement, rejected) in judged:
            file.write(judgement.model_dump_json().encode("utf-8", "backslashreplace") + b"\n")
            tally.units[judgement.status] += 1
            tally.sites.update((site, judgement.status) for site in unit.sites)
            tally.broken_rules.update(judgement.broken_rules)
            tally.left_out.update(judgement.left_out)
            tally = tally._replace(rejected=tally.rejected + len(rejected))
            if work.sample and rejected:
                placed = [(_sample_order(quote), quote) for quote in rejected]
                sample = nsmallest(work.sample, [*sample, *placed], key=itemgetter(0))
    if work.sample:
        with staged_file(beside(work.out, "sample")) as file:
            for _, quote in sample:
                file.write(quote.model_dump_json().encode("utf-8", "backslashreplace") + b"\n")
    return tally


def _sample_order(quote: RejectedQuote) -> str:
    """A place in an order that has nothing to do with the quote, and is the same each time."""
    return sha256(quote.model_dump_json().encode("utf-8", "backslashreplace")).hexdigest()


def status_table(tally: Tally) -> list[list[str]]:
    """A heading and a row for each site with a judgement that failed: how many have which status; most first."""
    counts: dict[str, Counter[Status]] = {}
    for (site, status), count in tally.sites.items():
        counts.setdefault(site, Counter())[status] += count
    failing = [site for site in counts if counts[site].total() > counts[site]["ok"]]
    order = sorted(failing, key=lambda site: (-counts[site].total(), site))
    return [["site", *STATUSES], *([site, *(str(counts[site][status]) for status in STATUSES)] for site in order)]
