"""Records out of what people have: run folders, CSV v2 files, JSON Lines (canonical or ragas-style)."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple

from annotation.argilla.rendering import one_line
from pipeline.asking.index import read_unmarked
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.lines import numbered_rows, table_rows
from pipeline.core.schema import CSV_COLUMNS, PROVIDERS, StoredAnswer
from pipeline.core.sentences import packaged_table, sentences
from pipeline.core.tables import unescaped
from pipeline.csv.file import is_answers_file
from pipeline.csv.rows import ANSWER_ID, AnswerParts
from pipeline.providers import every_provider, get_provider
from pipeline.records import run as run_files
from pipeline.records.schema import QueryResponse
from pipeline.text.words import Languages, exchange_languages

_say = sentences(__file__)

_COLUMN = "record_uuid"


class RecordChoice(NamedTuple):
    wanted: frozenset[str] | None = None  # `record_uuid` of each record of the sample; None where all are wanted
    excluded: frozenset[str] = frozenset()

    def takes(self, record_uuid: str) -> bool:
        return (self.wanted is None or record_uuid in self.wanted) and record_uuid not in self.excluded


def read_choice(sample: Path | None, exclude: Path | None) -> RecordChoice:
    """The choice that two CSV files make; their other columns are not read."""
    choice = RecordChoice(_read_ids(sample) if sample else None, _read_ids(exclude) if exclude else frozenset())
    if choice.wanted is not None and choice.wanted <= choice.excluded:
        raise InputError(f"`{exclude}` excludes every record of `{sample}`, so none is left to push.")
    return choice


def _read_ids(path: Path) -> frozenset[str]:
    """As a spreadsheet may have saved them."""
    rows = table_rows(path, _COLUMN)
    _, names = next(rows, (1, []))
    header = [name.strip() for name in names]
    if header.count(_COLUMN) != 1:
        raise InputError(_say("no_column", path=path, column=_COLUMN, times=header.count(_COLUMN)))
    place = header.index(_COLUMN)
    found = set()
    for line, cells in rows:
        if len(cells) != len(header) or not cells[place].strip():
            raise InputError(f"`{path}`, line {line}: there is no record in the column `{_COLUMN}`. Mend the line.")
        found.add(unescaped(cells[place].strip()))
    if not found:
        raise InputError(f"`{path}` names no record: a header and no rows.")
    return frozenset(found)


class KeptRecords(NamedTuple):
    """The records, none of them in memory."""

    file: BinaryIO

    def keep(self, record: QueryResponse) -> None:
        self.file.write(record.model_dump_json().encode("utf-8", "backslashreplace") + b"\n")

    def read(self, left_out: Collection[str] = ()) -> Iterator[QueryResponse]:
        self.file.seek(0)
        for line in self.file:
            record = QueryResponse.model_validate_json(line)
            if record.record_uuid not in left_out:
                yield record


@contextmanager
def kept_records() -> Iterator[KeptRecords]:
    with TemporaryFile() as file:
        yield KeptRecords(file)


def read_source(path: Path, problems: list[str]) -> Iterator[QueryResponse]:
    """The records of a run folder, of a CSV v2 file (`….csv`, `….csv.zst`), or of a file of JSON Lines, in their order.

    `problems` gets a line for each part that is no record: file, line, reason.
    """
    path = run_files.research_records(path) or path
    if path.is_dir() or is_answers_file(path):
        files, run = (run_files.answers_files(path), path) if path.is_dir() else ([path], path.parent)
        told = run_files.read_run_asked(run, read_unmarked)
        for file in files:
            yield from (run_files.record_from_answer(answer, told) for answer in _read_whole_answers(file, problems))
    else:
        try:
            yield from run_files.read_records(path)
        except BadRowsError as error:
            problems += [f"{path.name}, {row}" for row in error.rows]


def _read_whole_answers(path: Path, problems: list[str]) -> Iterator[StoredAnswer]:
    """One answer's rows may stand apart."""
    waiting: dict[str, AnswerParts] = {}
    closed: set[str] = set()
    current = ""
    for line, cells in _read_whole_rows(path, problems):
        answer_id = cells[ANSWER_ID]
        if answer_id != current and current in waiting and waiting[current].is_whole():
            closed.add(current)
            yield from _whole_answer(path, waiting.pop(current), problems)
        current = answer_id
        if answer_id in closed:
            problems.append(_described(path, line, f"the answer {answer_id!r} ended or went wrong further up"))
            continue
        try:
            waiting.setdefault(answer_id, waiting.get(answer_id) or AnswerParts(line, cells)).add(cells)
        except ValueError as error:
            problems.append(_described(path, line, str(error)))
            waiting.pop(answer_id, None)
            closed.add(answer_id)
    for parts in waiting.values():
        yield from _whole_answer(path, parts, problems)


def _read_whole_rows(path: Path, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    rows = numbered_rows(path)
    _, header = next(rows, (1, []))
    if tuple(header) != CSV_COLUMNS:
        raise InputError(_say("not_csv", path=str(path), columns=len(CSV_COLUMNS)))
    for line, cells in rows:
        if len(cells) == len(CSV_COLUMNS):
            yield line, cells
        else:
            problems.append(_described(path, line, f"found {len(cells)} cells, wanted {len(CSV_COLUMNS)}"))


def _whole_answer(path: Path, parts: AnswerParts, problems: list[str]) -> Iterator[StoredAnswer]:
    if not parts.is_whole():
        found = f"has {parts.rows} rows, wanted {parts.rows_wanted()}, and {len(parts.sources)} sources"
        reason = f"the answer {parts.answer_id!r} {found}, wanted {len(parts.citations)}"
        problems.append(_described(path, parts.line, reason))
        return
    try:
        yield parts.to_answer()
    except ValueError as error:
        problems.append(_described(path, parts.line, str(error)))


def _described(path: Path, line: int, reason: str) -> str:
    return f"{path.name}, line {line}: {reason}"


def languages_of(record: QueryResponse) -> Languages:
    return exchange_languages(record.query, record.language)


class CheckedPaths(NamedTuple):
    languages: tuple[tuple[str, Languages], ...]  # `record_uuid` and languages of each record, in order
    problems: tuple[str, ...]  # a line for each part of a file that is no record: file, line, reason
    without_passages: frozenset[str]
    """Ids of the records that have no passage, and so no unit of retrieval and grounding."""
    naming: tuple[str, ...]  # a line for each answer that names its own model or its maker: `record_uuid` and where
    speaking: tuple[str, ...]
    """`record_uuid` of each of these answers that speaks as its model (`I am …`); the others may only be about it."""
    left_out: frozenset[str]
    """`record_uuid` of each answer that is not to go in; everything else here is about the others, but `naming`."""
    unchosen: int
    missing: int
    unknown: int


def check_paths(
    paths: Sequence[Path],
    skip_self_naming: bool = False,
    choice: RecordChoice | None = None,
    keep: Callable[[QueryResponse], None] = lambda record: None,
) -> CheckedPaths:
    """What the paths hold, and every line that is no record; no text is kept in memory.

    With `skip_self_naming` answers that speak as their own model are left out. `keep` hears of every record that may go
    in; of those that are left out in the end, too, where they stand twice.
    """
    chosen = choice or RecordChoice()
    languages: list[tuple[str, Languages]] = []
    naming: dict[str, str] = {}
    speaking: dict[str, None] = {}
    problems: list[str] = []
    without_passages: set[str] = set()
    unchosen: set[str] = set()
    for path in paths:
        for record in read_source(path, problems):
            if not chosen.takes(record.record_uuid):
                unchosen.add(record.record_uuid)
                continue
            found = check_naming(record)
            if found:
                naming[record.record_uuid] = "; ".join(f"{each.name!r} in {each.excerpt!r}" for each in found)
            if any(each.speaks for each in found):
                speaking[record.record_uuid] = None
                if skip_self_naming:
                    continue
            keep(record)
            languages.append((record.record_uuid, languages_of(record)))
            if not record.chunks:
                without_passages.add(record.record_uuid)
    left_out = frozenset(speaking if skip_self_naming else ()) | unchosen
    if not languages:
        raise _nothing_to_push(paths, problems, speaking, unchosen)
    lines = tuple(f"{record_uuid}: {places}" for record_uuid, places in naming.items())
    held = {record_uuid for record_uuid, _ in (*languages, *speaking.items())}
    missing = len((chosen.wanted or frozenset()) - chosen.excluded - held)
    unknown = len(chosen.excluded - held - unchosen)
    numbers = (len(unchosen), missing, unknown)
    without = frozenset(without_passages)
    return CheckedPaths(tuple(languages), tuple(problems), without, lines, tuple(speaking), left_out, *numbers)


def _nothing_to_push(
    paths: Sequence[Path], problems: Sequence[str], speaking: Collection[str], unchosen: Collection[str]
) -> InputError:
    if speaking:
        return InputError("Every answer speaks as its own model, so none is left to push without `--skip-self-naming`.")
    if unchosen:
        return InputError(_say("none_chosen", records=len(unchosen)))
    if problems:
        return BadRowsError("No line is a record:", problems)
    names = ", ".join(repr(str(path)) for path in paths)
    return InputError(f"There is no record in {names}: a header and no rows. Name what holds answers.")


# What follows finds where an answer tells its annotators which model or company wrote it.

_NAMES = tuple(provider.names for provider in every_provider())
_SAID: dict[str, Any] = packaged_table(__file__, "self_naming.toml")
_OTHER_MODELS, _OTHER_MAKERS = _SAID["other_models"], _SAID["other_makers"]
# Letters and digits of Latin script only: in Japanese a name has other letters on both sides.
_START, _END = r"(?<![a-z0-9])", r"(?![a-z0-9])"
_PARTS = {
    **_SAID["parts"],
    "model": f"(?:{'|'.join((*(names.models for names in _NAMES), *_OTHER_MODELS))})",
    "maker": f"(?:{'|'.join((*(names.makers for names in _NAMES), *_OTHER_MAKERS))})",
    "end": _END,
}
_SELF_REFERENCES = tuple(re.compile(each.format(**_PARTS), re.IGNORECASE) for each in _SAID["self_references"])
# Part of every name above: the patterns are slow, and most answers name nobody.
_STEMS = (*(stem for names in _NAMES for stem in names.stems), *_OTHER_MODELS, *_OTHER_MAKERS)
_AROUND = 40  # characters of the excerpt before and after the name


class Naming(NamedTuple):
    """One place where an answer tells who wrote it."""

    name: str
    excerpt: str
    speaks: bool  # as in `I am …`; else it only names it, perhaps as its topic


def check_naming(record: QueryResponse) -> tuple[Naming, ...]:
    """Each name once, in order, at its first place; where the answer speaks as its model comes first."""
    name, version = record.provenance.model_name, record.provenance.model_version.rsplit("/", 1)[-1]
    # The case counts: it tells xAI from "explainable AI".
    own = [re.compile(rf"{_START}(?:{get_provider(name).names.own}){_END}")] if name in PROVIDERS else []
    if any(character.isdigit() for character in version):  # a preset such as `fast` is a word like any other
        words = r"[ -]?".join(map(re.escape, version.split("-")))
        own.append(re.compile(rf"{_START}{words}{_END}", re.IGNORECASE))
    lowered = record.answer.lower()
    speaking = _SELF_REFERENCES if any(stem in lowered for stem in _STEMS) else ()
    spans = [(*found.span("name"), True) for each in speaking for found in each.finditer(record.answer)]
    spans += [(*found.span(), False) for each in own for found in each.finditer(record.answer)]
    namings: dict[str, Naming] = {}
    for start, end, speaks in sorted(spans):
        named = record.answer[start:end]
        known = namings.get(named.casefold())
        if known is None or speaks > known.speaks:
            before, after = max(0, start - _AROUND), min(len(record.answer), end + _AROUND)
            cut = ("…" if before else "") + record.answer[before:after] + ("…" if after < len(record.answer) else "")
            namings[named.casefold()] = Naming(named, one_line(cut), speaks)
    return tuple(namings.values())
