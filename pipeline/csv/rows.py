"""One answer as the rows of CSV v2, and such rows as an answer again (pipeline/contracts/csv_v2.md).

An answer is max(1, citations) x max(1, results) rows; results are Perplexity's only, and an answer without citations is
one row whose `result_*` are empty. The `answer_id` follows from the call, and leads back to its arm and repeat.
"""

import json
import re
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple
from uuid import UUID, uuid5

from pipeline.citations.addresses import source_domain
from pipeline.core.prompts import text_digest
from pipeline.core.schema import CSV_COLUMNS, RESULTS_OF, SearchResult, StoredAnswer

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
        self.citations = citation_list(cells[CITATION_LIST])
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


def citation_list(cell: str) -> list[str]:
    """The cited URLs of an `answer_citation_list`; a ValueError where it is not a JSON array of strings."""
    try:
        citations = json.loads(cell)
    except (ValueError, RecursionError):
        citations = None
    if not isinstance(citations, list) or not all(isinstance(url, str) for url in citations):
        raise ValueError("`answer_citation_list` is not a JSON array of URLs")
    return citations


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
