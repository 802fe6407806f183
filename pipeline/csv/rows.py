"""One answer as the rows of CSV v2, and such rows as an answer again (pipeline/contracts/csv_v2.md).

An answer is max(1, citations) x max(1, results) rows; results are Perplexity's only, and an answer without citations is
one row whose `result_*` are empty. The `answer_id` follows from the call, and leads back to its arm and repeat.
"""

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import product
from typing import NamedTuple
from uuid import UUID, uuid5

from pipeline.citations.addresses import GROUNDING_REDIRECT_HOST, host_name, is_address, source_domain
from pipeline.core.prompts import text_digest
from pipeline.core.schema import CSV_COLUMNS, PROVIDERS, RESULTS_OF, SearchResult, StoredAnswer

SHARED_COLUMNS = CSV_COLUMNS[:11]
SOURCE_COLUMNS = CSV_COLUMNS[11:14]
RESULT_COLUMNS = CSV_COLUMNS[14:]

ANSWER_ID = CSV_COLUMNS.index("answer_id")
MODEL_NAME = CSV_COLUMNS.index("model_name")
RAW_JSON = CSV_COLUMNS.index("answer_raw_json")
CITATION_LIST = CSV_COLUMNS.index("answer_citation_list")
SOURCE_START = len(SHARED_COLUMNS)
RESULT_START = SOURCE_START + len(SOURCE_COLUMNS)

# Models send both, half of an emoji for one; neither can stand in a UTF-8 text file that others read as well.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Cells(NamedTuple):
    """The cells of one answer, each part once; its rows are every source with every result, and so never none."""

    shared: tuple[str, ...]
    sources: list[tuple[str, ...]]
    results: list[tuple[str, ...]]


def answer_cells(answer: StoredAnswer) -> Cells:
    """The three parts of the answer's rows, in the order of the columns.

    NUL and unpaired surrogates, which no UTF-8 text file can hold, are U+FFFD; `answer_raw_json` has them escaped.

    Source: pipeline/contracts/csv_v2.md#rows.
    """
    urls = _storable(answer.citations)
    shared = (*(getattr(answer, column) for column in SHARED_COLUMNS[:-1]), json.dumps(urls, ensure_ascii=False))
    sources = [
        _storable((f"{answer.answer_id}_source_{index}", url, domain))
        for index, (url, domain) in enumerate(zip(urls, answer.domains, strict=True))
    ]
    results: list[tuple[str, ...]] = []
    for index, result in enumerate(answer.search_results if sources and answer.model_name == RESULTS_OF else ()):
        url, title, snippet = _storable((result.url, result.title, result.snippet))
        result_id = f"{answer.answer_id}_result_{index}"
        results.append((result_id, url, source_domain(url), title, snippet, str(index + 1)))
    no_source, no_result = ("",) * len(SOURCE_COLUMNS), ("",) * len(RESULT_COLUMNS)
    return Cells(_storable(shared), sources or [no_source], results or [no_result])


def _storable(cells: Sequence[str]) -> tuple[str, ...]:
    """The cells with U+FFFD for what cannot stand in a UTF-8 text file, one for one, so that offsets hold."""
    return tuple(cell if cell.isascii() and "\0" not in cell else _UNSTORABLE.sub("\ufffd", cell) for cell in cells)


class AnswerParts:
    """The rows of one answer while they come in: their shared cells once, each source and each result once."""

    def __init__(self, line: int, cells: list[str]) -> None:
        """Begin with the first row, which is not yet counted; a ValueError for a bad `answer_citation_list`."""
        self.line = line
        self.answer_id = cells[ANSWER_ID]
        self.shared = cells[:SOURCE_START]
        citations = read_citations(cells[CITATION_LIST])
        if citations is None:
            raise ValueError("`answer_citation_list` is not a JSON array of URLs")
        self.citations = citations
        self.rows = 0
        self.sources: dict[str, list[str]] = {}
        self.results: dict[str, list[str]] = {}

    def add(self, cells: list[str]) -> None:
        if cells[:SOURCE_START] != self.shared:
            raise ValueError("differs from the answer's first row in a column that all of its rows share")
        self.rows += 1
        if cells[SOURCE_START]:
            self.sources[cells[SOURCE_START]] = cells[SOURCE_START:RESULT_START]
        if cells[RESULT_START]:
            self.results[cells[RESULT_START]] = cells[RESULT_START:]

    def is_whole(self) -> bool:
        """Whether every citation stands beside every result that any row names."""
        return len(self.sources) == len(self.citations) and self.rows == self.rows_wanted()

    def rows_wanted(self) -> int:
        return max(1, len(self.citations)) * max(1, len(self.results))

    def to_answer(self) -> StoredAnswer:
        sources = _numbered_parts(self.sources, f"{self.answer_id}_source_")
        results = _numbered_parts(self.results, f"{self.answer_id}_result_")
        return StoredAnswer(
            **dict(zip(SHARED_COLUMNS[:-1], self.shared, strict=False)),
            citations=tuple(self.citations),
            domains=tuple(domain for _, _, domain in sources),
            search_results=tuple(
                SearchResult(url=url, title=title, snippet=snippet) for _, url, _, title, snippet, _ in results
            ),
        )


def _numbered_parts(parts: dict[str, list[str]], prefix: str) -> list[list[str]]:
    try:
        return [parts[f"{prefix}{index}"] for index in range(len(parts))]
    except KeyError as error:
        raise ValueError(f"the answer that begins here has no {error.args[0]!r}") from error


def read_citations(cell: str) -> list[str] | None:
    """The cited URLs of an `answer_citation_list`; None where it is not a JSON array of strings."""
    try:
        citations = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return citations if isinstance(citations, list) and all(isinstance(url, str) for url in citations) else None


class Place(NamedTuple):
    """Where an answer stands among those to the same question: its arm, empty without arms, and its repeat, from 1."""

    arm: str
    repeat: int


def identify_call(
    run_id: str, provider: str, narrative_id: str, prompt: str, occurrence: int, repeat: int = 1, arm: str = ""
) -> str:
    """The `answer_id` of a call: a UUID that the same call in the same run has again after a kill.

    Each part is preceded by its length, so that no two calls are spelt alike; without an arm there is no part for it.
    """
    return _identify(run_id, (provider, narrative_id, text_digest(prompt)), occurrence, repeat, arm)


def _identify(run_id: str, question: Sequence[str], occurrence: int, repeat: int, arm: str) -> str:
    parts = (*question, str(occurrence), str(repeat), *([arm] if arm else []))
    return str(uuid5(UUID(run_id), "".join(f"{len(part)}:{part}" for part in parts)))


def place_of(stored: StoredAnswer, run_id: str, repeats: int, arms: Sequence[str] = ()) -> Place | None:
    """Which of the run's arms the answer is of, and which repeat of at most `repeats`; None where its id tells neither.

    Only an answer's own id and prompt are looked at, so neither can come apart from it.
    """
    question = (stored.model_name, stored.narrative_id, text_digest(stored.answer_prompt))
    return find_place(stored.answer_id, question, run_id, repeats, arms)


def find_place(
    answer_id: str, question: Sequence[str], run_id: str, repeats: int, arms: Sequence[str] = ()
) -> Place | None:
    """`place_of` an answer by its id and question: provider, narrative id and the digest of the prompt."""
    try:
        UUID(run_id)
    except ValueError:
        return None
    # Ten rows of one narrative id in one file are looked for.
    for occurrence, repeat, arm in product(range(1, 11), range(1, repeats + 1), ("", *arms)):
        if _identify(run_id, question, occurrence, repeat, arm) == answer_id:
            return Place(arm, repeat)
    return None


Problem = tuple[str, str, str]
"""Column, what was found, what was wanted."""
# A refusal or a block is an answer without text, and a narrative need not have a type:
# pipeline/contracts/csv_v2.md#columns.
_MAY_BE_EMPTY = ("narrative_type", "answer_text")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def shown(cell: str) -> str:
    """The cell for a person: quoted, its control characters escaped, cut where it is long."""
    if not cell:
        return "nothing"
    return repr(cell) if len(cell) <= 80 else f"{cell[:80]!r}… ({len(cell):,} characters)"


def shared_problems(cells: Sequence[str], research: bool = False) -> tuple[Problem, ...]:
    problems: list[Problem] = _nul_problems(SHARED_COLUMNS, cells)
    for column, cell in zip(SHARED_COLUMNS, cells, strict=True):
        if not cell.strip():
            if column not in _MAY_BE_EMPTY:
                problems.append((column, shown(cell), "a value"))
            continue
        rule = _RULES.get(column)
        wanted = rule(cell) if rule else ""
        if wanted and not (research and column == "model_name" and cell == "pipeline"):
            problems.append((column, shown(cell), wanted))
    return tuple(problems)


def wanted_uuid(cell: str) -> str:
    """What an answer's id should be; empty where it is right."""
    return "" if _UUID.fullmatch(cell) else "a UUID"


def wanted_time(cell: str) -> str:
    try:
        right = "T" in cell and datetime.fromisoformat(cell).tzinfo is not None
    except ValueError:
        right = False
    return "" if right else "an ISO 8601 time with its offset, such as 2025-12-29T17:30:00+00:00"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


# Numbers stay text: nothing asks for them, and Python refuses to convert integers of over 4,300 digits.
_STRICT_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def wanted_json(cell: str) -> str:
    try:
        _STRICT_JSON.decode(cell)
    except ValueError as error:
        return f"valid JSON ({error})"
    except RecursionError:
        return "JSON that is not nested so deep that it cannot be read"
    return ""


_RULES: dict[str, Callable[[str], str]] = {
    "model_name": lambda cell: (
        "" if cell in PROVIDERS else f"one of {', '.join(PROVIDERS)} (`pipeline` only in a file `pipeline.csv`)"
    ),
    "answer_id": wanted_uuid,
    "answer_timestamp": wanted_time,
    "answer_raw_json": wanted_json,
    "answer_citation_list": lambda cell: (
        "a JSON array of URLs, `[]` where there are none" if read_citations(cell) is None else ""
    ),
}


class Judged(NamedTuple):
    """A part of a row: the number in its id, -1 for an empty part and None for no usable number, and its problems."""

    number: int | None
    problems: tuple[Problem, ...]


def judge_source(answer_id: str, citations: Sequence[str], cells: Sequence[str]) -> Judged:
    source_id, url, domain = cells
    if not any(cells):
        if not citations:
            return Judged(-1, ())
        entries = f"one of the {len(citations)} entries of `answer_citation_list`"
        return Judged(None, (("source_id", "nothing", entries),))
    problems = _nul_problems(SOURCE_COLUMNS, cells)
    index = _number_after(source_id, f"{answer_id}_source_")
    if index is None or index >= len(citations):
        wanted = f"'{answer_id}_source_' and a number from 0, below {len(citations)}"
        wanted = wanted if citations else "nothing, as there are no citations"
        return Judged(None, (*problems, ("source_id", shown(source_id), wanted)))
    if url != citations[index]:
        wanted = f"{shown(citations[index])}, entry {index} of `answer_citation_list`"
        problems.append(("source_url", shown(url), wanted))
    elif not is_address(url):
        problems.append(("source_url", shown(url), "a full URL with its scheme and host"))
    host = source_domain(url)
    if host == GROUNDING_REDIRECT_HOST and (not domain or host_name(domain).removeprefix("www.") != domain):
        problems.append(("source_domain", shown(domain), "the site behind the redirect, without `www.`"))
    elif host not in (domain, GROUNDING_REDIRECT_HOST):
        problems.append(("source_domain", shown(domain), shown(host)))
    return Judged(index, tuple(problems))


def judge_result(answer_id: str, model_name: str, is_cited: bool, cells: Sequence[str]) -> Judged:
    if not any(cells):
        return Judged(-1, ())
    problems = _nul_problems(RESULT_COLUMNS, cells)
    has_none = model_name == RESULTS_OF
    if not has_none or not is_cited:
        wanted = "nothing, as the answer has no citation" if has_none else f"nothing but for {RESULTS_OF.title()}"
        strange = [(column, shown(cell), wanted) for column, cell in zip(RESULT_COLUMNS, cells, strict=True) if cell]
        return Judged(None, (*problems, *strange))
    result_id, url, domain, _, _, rank = cells
    index = _number_after(result_id, f"{answer_id}_result_")
    if index is None:
        wanted = f"'{answer_id}_result_' and a number from 0"
        return Judged(None, (*problems, ("result_id", shown(result_id), wanted)))
    if rank != str(index + 1):
        problems.append(("result_rank", shown(rank), f"'{index + 1}', one more than the number in `result_id`"))
    if domain != source_domain(url):
        problems.append(("result_domain", shown(domain), shown(source_domain(url))))
    return Judged(index, tuple(problems))


def _nul_problems(columns: Sequence[str], cells: Sequence[str]) -> list[Problem]:
    return [
        (column, f"a NUL character in {shown(cell)}", "text")
        for column, cell in zip(columns, cells, strict=True)
        if "\0" in cell
    ]


def _number_after(text: str, prefix: str) -> int | None:
    number = text.removeprefix(prefix)
    return int(number) if number != text and re.fullmatch(r"0|[1-9][0-9]{0,8}", number) else None


def answer_problems(answer: StoredAnswer) -> list[Problem]:
    """What of an answer's rows breaks a rule, before they are written; nothing where `check` will accept them."""
    shared, sources, results = answer_cells(answer)
    cited = read_citations(shared[CITATION_LIST]) or ()
    judged = [judge_source(answer.answer_id, cited, cells) for cells in sources]
    judged += [judge_result(answer.answer_id, answer.model_name, bool(cited), cells) for cells in results]
    return [*shared_problems(shared), *(problem for part in judged for problem in part.problems)]
