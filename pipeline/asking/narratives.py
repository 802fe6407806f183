"""The input: a CSV file or spreadsheet of narratives, one a row, checked whole: all that is wrong is told at once.

What spreadsheets write is read as it is. What may be meant otherwise is a doubt, shown before anything is paid.

Source: pipeline/contracts/run_folder.md#input.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.lines import by_lines, header_key, known_encoding, open_csv, table_rows
from pipeline.core.schema import Frozen, Narrative
from pipeline.core.sentences import packaged_table

if TYPE_CHECKING:
    from pipeline.core.spreadsheet import Sheet

_TEXT_COLUMNS = ("prompt", "narrative_prompt")
# Such as `de`, `de-AT` or `pt_BR`.
_LANGUAGE_CODE = re.compile(r"([a-z]{2})(?:[-_].*)?", re.IGNORECASE | re.ASCII)
CODES: dict[str, Any] = packaged_table(__file__, "codes.toml")
_LONGEST = 20_000
# Of Windows, and of the shared folders of others
_NO_FILE_NAME = re.compile(
    r'[\x00-\x1f/\\:<>"|?*]|^\.{0,2}$|[. ]$|^(?:con|prn|aux|nul|(?:com|lpt)[\d¹²³]) *(?:\.|$)', re.IGNORECASE
)


class NarrativesFile(Frozen):
    """The narratives that were asked."""

    file: str
    """Base name of the file."""
    sha256: str
    """Digest of its bytes."""
    rows: int
    """How many narratives it holds."""
    encoding: str = ""
    """What it was read in, by Python's name; empty for UTF-8, UTF-16, UTF-32 and spreadsheets."""
    agreed: tuple[str, ...] | None = None
    """Doubts about its rows that somebody agreed to pay for, each after its line; null in older runs."""


class _Columns(NamedTuple):
    """Where a narrative's id, text, type and language are in a row, and the names without empty ones at the end."""

    id: int
    text: int
    kind: int | None
    language: int | None
    names: Sequence[str]


class NarrativesCsv:
    """The narratives of a file that was found right, read from it anew at each pass; only a spreadsheet is held whole.

    They come in the order of the file, never none; other columns are ignored, ids may repeat. The text is in
    `text_column`, by default `prompt`, else `narrative_prompt`; case, blanks and underscores of names do not matter.
    `notes` are sentences on what was left out.
    """

    def __init__(
        self,
        path: Path,
        id_column: str = "narrative_id",
        text_column: str | None = None,
        encoding: str = "",
        sheet: str = "",
    ) -> None:
        """Check the file, whole, and count its narratives; an InputError or a BadRowsError says all that is wrong.

        An EncodingError is for a file that is neither UTF-8 nor UTF-16, where `encoding` does not name what it is.
        """
        self.path = path
        self.columns = (id_column, text_column)
        self.encoding = known_encoding(encoding) if encoding else ""
        self.sheet = _sheet_of(path, sheet)
        self.row = "row" if self.sheet else "line"
        problems: list[str] = []
        look = _Look()
        self.count = sum(1 for each in self._stream(problems.append, look) if look.at(each, self.row))
        if problems:
            many = len(problems) > 1
            what = f"{len(problems)} rows that cannot be asked; mend or remove them" if many else "a bad row"
            raise BadRowsError(f"{str(path)!r} has {what}:", problems)
        if not self.count:
            raise InputError(f"{str(path)!r} has a header but no narratives; add a row for each.")
        with open(path, "rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        # No path, which may name a person.
        self.file = NarrativesFile(file=path.name, sha256=digest, rows=self.count, encoding=self.encoding)
        self._doubts = look.doubts
        self.notes = by_lines({"empty, and left out": look.empty} if look.empty else {}, self.row)
        if self.sheet and self.sheet.others and not sheet:
            others = ", ".join(map(repr, self.sheet.others))
            self.notes.append(f"the sheet {self.sheet.name!r} is read; `--sheet` names another: {others}")

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Narrative]:
        return self._stream(self.refuse, _Look())

    def doubts(self, agreed: Collection[str] = ()) -> list[str]:
        """Sentences on what may be meant otherwise, but for what was `agreed` to."""
        new = {why: [at for at in lines if f"{at}: {why}" not in agreed] for why, lines in self._doubts.items()}
        return by_lines({why: lines for why, lines in new.items() if lines}, self.row)

    def agree(self, agreed: Iterable[str] | None = None) -> None:
        """Note what was agreed to, by default every doubt."""
        every = (f"{at}: {why}" for why, lines in self._doubts.items() for at in lines)
        self.file = self.file.model_copy(update={"agreed": tuple(every if agreed is None else agreed)})

    def refuse(self, problem: str) -> None:
        raise InputError(f"{str(self.path)!r} was changed while it was read: {problem}.")

    def _stream(self, bad_row: Callable[[str], None], look: "_Look") -> Iterator[Narrative]:
        rows = iter(self.sheet.rows) if self.sheet else table_rows(self.path, self.columns[0], self.encoding)
        first, header = next(rows, (1, []))
        columns = _find_columns(self.path, header, *self.columns)
        for place in (each for each in columns[:4] if each is not None):
            if self.sheet and place in self.sheet.hidden_columns:
                look.doubts[f"the `{columns.names[place].strip()}` column is hidden in the sheet"].append(first)
        for line, cells in rows:
            if not any(map(str.strip, cells)):
                look.empty.append(line)
            elif problem := _row_problem(cells, columns):
                bad_row(f"{self.row} {line}: {problem}")
            else:
                if self.sheet and line in self.sheet.hidden_rows:
                    look.doubts["hidden in the sheet, and read all the same"].append(line)
                yield look.narrative(cells, columns, line)


def sample_rows(path: Path, id_column: str, encoding: str) -> list[str]:
    """Three rows that show whether the encoding is right: those with letters beyond ASCII."""
    rows = (" | ".join(cells) for _, cells in table_rows(path, id_column, encoding))
    return list(islice((row for row in rows if not row.isascii()), 3))


def _sheet_of(path: Path, name: str) -> "Sheet | None":
    with open_csv(path) as file:
        start = file.read(4)
    if start == b"\xd0\xcf\x11\xe0":
        raise InputError(
            f"{str(path)!r} is a spreadsheet and not CSV, in the form of Excel before 2007 or with a password. Open it "
            "and choose `Save As` with the type `Excel Workbook (.xlsx)` or `CSV UTF-8 (Comma delimited)`."
        )
    if start == b"PK\x03\x04":
        from pipeline.core.spreadsheet import read_sheet

        return read_sheet(path, name)
    if name:
        raise InputError(f"{str(path)!r} is no .xlsx file, so it has no sheet {name!r}; leave out `--sheet`.")
    return None


class _Look:
    def __init__(self) -> None:
        self.empty: list[int] = []
        self.doubts: defaultdict[str, list[int]] = defaultdict(list)
        self.seen: dict[str, dict[int, int]] = {}
        self.alike: dict[str, tuple[str, int]] = {}
        self.language = ""

    def narrative(self, cells: Sequence[str], columns: _Columns, line: int) -> Narrative:
        self.language = cells[columns.language].strip() if columns.language is not None else ""
        code = _LANGUAGE_CODE.fullmatch(self.language)
        return Narrative(
            narrative_id=str(cells[columns.id]),
            narrative_type=str(cells[columns.kind]) if columns.kind is not None else "",
            language=code[1].lower() if code else "",
            prompt=str(cells[columns.text]),
            line=line,
        )

    def at(self, narrative: Narrative, row: str) -> bool:
        """Note what is doubtful about the narrative that came last; `row` is what its file calls a row."""
        name, line = narrative.narrative_id, narrative.line
        shown = f"{name[:60]!r}{'…' if len(name) > 60 else ''}"
        texts = self.seen.setdefault(name, {})
        first = texts.setdefault(hash(narrative.prompt), line)
        other = next(iter(texts.values()))
        alike, near = self.alike.setdefault(normalize("NFC", name.strip()).casefold(), (name, line))
        no_file = _NO_FILE_NAME.search(name) or len(name.encode("utf-8", "replace")) > 230
        no_code = self.language and narrative.language not in CODES["languages"].split()
        for is_so, doubt in (
            (first != line, f"the id {shown} is in {row} {first} with the same text; both would be paid for"),
            (
                first == line != other,
                f"the id {shown} is in {row} {other} with another text; both would be asked under this id",
            ),
            (no_code, f"the language {self.language[:60]!r} is no code of two letters such as `de` or `pt-BR`"),
            (len(narrative.prompt) > _LONGEST, f"the text has more than {_LONGEST:,} letters"),
            (
                first == line == other and alike != name,
                f"the id {shown} is that of {row} {near} but for case or blanks",
            ),
            (first == line and no_file, f"the id {shown} cannot be the name of a file, which `--replay` needs"),
        ):
            if is_so:
                self.doubts[doubt].append(line)
        return True


def _find_columns(path: Path, header: Sequence[str], id_column: str, text_column: str | None) -> _Columns:
    names = [name.replace("\ufeff", "") for name in header]
    while names and not names[-1].strip():
        names.pop()  # Excel writes the empty columns of the sheet too
    if not names:
        raise InputError(f"{str(path)!r} is empty; it needs a header with `{id_column}` and `{_TEXT_COLUMNS[0]}`.")
    repeated = [name for name, count in Counter(names).items() if name.strip() and count > 1]
    if repeated:
        raise InputError(f"{str(path)!r} has the column {repeated[0]!r} more than once; rename all but one of them.")
    ids, texts = (id_column,), (text_column,) if text_column else _TEXT_COLUMNS
    id_at, text_at = _find(path, names, ids), _find(path, names, texts)
    if id_at is None or text_at is None:
        lacking = [(ids, "--id-column")] * (id_at is None) + [(texts, "--text-column")] * (text_at is None)
        wanted = " and no column ".join(" or ".join(f"`{name}`" for name in each) for each, _ in lacking)
        found = ", ".join(repr(str(name)) for name in names)
        options = " and ".join(f"`{option}`" for _, option in lacking)
        raise InputError(f"{str(path)!r} has no column {wanted}; found {found}. Name the right one with {options}.")
    kind, language = _find(path, names, ("narrative_type",)), _find(path, names, ("language",))
    return _Columns(id_at, text_at, kind, language, names)


def _find(path: Path, names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where the first of the wanted columns is, by its very name before one that is spelt otherwise."""
    for name in wanted:
        if name in names:
            return names.index(name)
    for name in wanted:
        places = [place for place, each in enumerate(names) if header_key(each) == header_key(name)]
        if len(places) > 1:
            found = " and ".join(repr(str(names[place])) for place in places)
            raise InputError(f"{str(path)!r} has the column {name!r} more than once, as {found}; rename all but one.")
        if places:
            return places[0]
    return None


def _row_problem(cells: Sequence[str], columns: _Columns) -> str:
    width = len(columns.names)
    if len(cells) < width:
        return f"it has fewer cells than the header ({len(cells)} of {width}); add those that are missing"
    if any(map(str.strip, cells[width:])):
        return f"it has more cells than the header ({len(cells)} for {width}); put texts in quotation marks"
    for place in (each for each in columns[:4] if each is not None):
        if why := getattr(cells[place], "why", ""):
            return f"the `{columns.names[place].strip()}` column {why}"
    for place, needed in ((columns.id, "an id"), (columns.text, "a text")):
        if not cells[place].strip():
            return f"the `{columns.names[place].strip()}` column is empty, every narrative needs {needed}"
    if any("\0" in cell for cell in cells):
        return "it holds a NUL character, which no text has"
    return ""
