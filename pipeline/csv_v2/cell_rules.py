"""The rules of CSV v2 on single cells, pure: each gives the problems of one part of a row (seed 000)."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime

from pipeline.csv_v2.rows import RESULT_COLUMNS, SHARED_COLUMNS, SOURCE_COLUMNS, citation_list
from pipeline.schema import PROVIDERS
from pipeline.text.urls import GROUNDING_REDIRECT_HOST, host_name, source_domain

Problem = tuple[str, str, str]
"""Column, what was found, what was wanted."""

# A refusal or a block is an answer without text (design 4.1); a narrative need not have a type.
MAY_BE_EMPTY = ("narrative_type", "answer_text")

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://.")

SHOWN_LENGTH = 80


def shown(cell: str) -> str:
    """The cell for a person: quoted, its control characters escaped, cut where it is long."""
    if not cell:
        return "nothing"
    return repr(cell) if len(cell) <= SHOWN_LENGTH else f"{cell[:SHOWN_LENGTH]!r}… ({len(cell):,} characters)"


def shared_problems(cells: Sequence[str], research: bool) -> tuple[Problem, ...]:
    """The problems of the 11 cells that all rows of an answer share; in a research run's file `pipeline` is a model."""
    problems: list[Problem] = nul_problems(SHARED_COLUMNS, cells)
    for column, cell in zip(SHARED_COLUMNS, cells, strict=True):
        if not cell.strip():
            if column not in MAY_BE_EMPTY:
                problems.append((column, shown(cell), "a value"))
            continue
        rule = RULES.get(column)
        wanted = rule(cell) if rule else ""
        if wanted and not (research and column == "model_name" and cell == "pipeline"):
            problems.append((column, shown(cell), wanted))
    return tuple(problems)


def wanted_model(cell: str) -> str:
    """What a model name should be; empty where it is right."""
    return "" if cell in PROVIDERS else f"one of {', '.join(PROVIDERS)} (`pipeline` only in a file `pipeline.csv`)"


def wanted_uuid(cell: str) -> str:
    """What an answer's id should be; empty where it is right."""
    return "" if UUID.fullmatch(cell) else "a UUID"


def wanted_time(cell: str) -> str:
    """What a time should be; empty where it is right."""
    try:
        right = "T" in cell and datetime.fromisoformat(cell).tzinfo is not None
    except ValueError:
        right = False
    return "" if right else "an ISO 8601 time with its offset, such as 2025-12-29T17:30:00+00:00"


def refuse_constant(name: str) -> None:
    """Nothing; Python's reader takes NaN and Infinity for JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is no JSON value")


# Numbers stay text: nothing asks for them, and Python refuses to convert integers of over 4,300 digits.
STRICT_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=refuse_constant)


def wanted_json(cell: str) -> str:
    """What a raw body should be; empty where it is right."""
    try:
        STRICT_JSON.decode(cell)
    except ValueError as error:
        return f"valid JSON ({error})"
    except RecursionError:
        return "JSON that is not nested so deep that it cannot be read"
    return ""


def wanted_list(cell: str) -> str:
    """What a citation list should be; empty where it is right."""
    try:
        citation_list(cell)
    except ValueError:
        return "a JSON array of URLs, `[]` where there are none"
    return ""


RULES: dict[str, Callable[[str], str]] = {
    "model_name": wanted_model,
    "answer_id": wanted_uuid,
    "answer_timestamp": wanted_time,
    "answer_raw_json": wanted_json,
    "answer_citation_list": wanted_list,
}


def source_problems(
    cells: Sequence[str], answer_id: str, citations: Sequence[str]
) -> tuple[int | None, tuple[Problem, ...]]:
    """The number in the `source_id` (-1 for an empty source, None for none that counts) and the source's problems."""
    source_id, url, domain = cells
    if not any(cells):
        if not citations:
            return -1, ()
        return None, (("source_id", "nothing", f"one of the {len(citations)} entries of `answer_citation_list`"),)
    problems = nul_problems(SOURCE_COLUMNS, cells)
    index = number_after(source_id, f"{answer_id}_source_")
    if index is None or index >= len(citations):
        wanted = f"'{answer_id}_source_' and a number from 0, below {len(citations)}"
        problems.append(("source_id", shown(source_id), wanted if citations else "nothing, as there are no citations"))
        return None, tuple(problems)
    if url != citations[index]:
        wanted = f"{shown(citations[index])}, entry {index} of `answer_citation_list`"
        problems.append(("source_url", shown(url), wanted))
    elif not SCHEME.match(url):
        problems.append(("source_url", shown(url), "a full URL with its scheme"))
    host = source_domain(url)
    if host == GROUNDING_REDIRECT_HOST and (not domain or host_name(domain).removeprefix("www.") != domain):
        problems.append(("source_domain", shown(domain), "the site behind the redirect, without `www.`"))
    elif host not in (domain, GROUNDING_REDIRECT_HOST):
        problems.append(("source_domain", shown(domain), shown(host)))
    return index, tuple(problems)


def result_problems(
    cells: Sequence[str], answer_id: str, model_name: str, cites: bool
) -> tuple[int | None, tuple[Problem, ...]]:
    """The number in the `result_id` (-1 for an empty result, None for none that counts) and the result's problems."""
    if not any(cells):
        return -1, ()
    problems = nul_problems(RESULT_COLUMNS, cells)
    if model_name != "perplexity" or not cites:
        wanted = (
            "nothing, as the answer has no citation" if model_name == "perplexity" else "nothing but for Perplexity"
        )
        problems += [(column, shown(cell), wanted) for column, cell in zip(RESULT_COLUMNS, cells, strict=True) if cell]
        return None, tuple(problems)
    result_id, url, domain, _, _, rank = cells
    index = number_after(result_id, f"{answer_id}_result_")
    if index is None:
        problems.append(("result_id", shown(result_id), f"'{answer_id}_result_' and a number from 0"))
        return None, tuple(problems)
    if rank != str(index + 1):
        problems.append(("result_rank", shown(rank), f"'{index + 1}', one more than the number in `result_id`"))
    if domain != source_domain(url):
        problems.append(("result_domain", shown(domain), shown(source_domain(url))))
    return index, tuple(problems)


def nul_problems(columns: Sequence[str], cells: Sequence[str]) -> list[Problem]:
    """A problem for each cell with a NUL character."""
    return [
        (column, f"a NUL character in {shown(cell)}", "text")
        for column, cell in zip(columns, cells, strict=True)
        if "\0" in cell
    ]


def number_after(text: str, prefix: str) -> int | None:
    """The number that the text is made of after the prefix; None where it is anything else."""
    number = text.removeprefix(prefix)
    return int(number) if number != text and NUMBER.fullmatch(number) else None
