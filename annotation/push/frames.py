"""Answers out of a DataFrame into Argilla, for notebooks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from annotation.campaign.file import read_campaign
from annotation.push.push import PushOptions, PushReport, push_where_named
from annotation.tasks import takes_suggestions
from pipeline.errors import BadRowsError, InputError
from pipeline.providers.body import writable
from pipeline.recording.files import read_canonical
from pipeline.records import Provenance, QueryResponse, document_id
from pipeline.settings import read_settings

TEXT_COLUMNS = ("query", "answer")
PASSAGES = "passages"
OPTIONAL_COLUMNS = ("record_uuid", "language")


def push_frame(
    frame: Any,
    *,
    workspace: str | None = None,
    locale: str | None = None,
    round_name: str | None = None,
    dry_run: bool = False,
    revise: bool = False,
    api_url: str | None = None,
) -> PushReport:
    """What became of each unit of the frame's rows; rows that are no records are listed in `invalid`, and none is lost.

    `frame` is a pandas DataFrame, or a list of dicts, with the columns `query`, `answer` and `passages`: a list of
    texts in rank order, or of dicts with `text` and, where known, `title`, `url` and `origin` (`page`, `snippet` or
    `cited_text`); an empty list or a missing value where there are none. Columns named `record_uuid`, `language` or as
    a field of the provenance are taken as such, others are not read. Without `record_uuid` a row's id is derived from
    its content, so that pushing the same rows again writes nothing. Address, key, workspace and the campaign, which
    chooses the datasets unless `locale` or `round_name` do, come from the settings as in `citejury annotation push`.

    Raises:
        InputError: a column is missing, there are no rows, the round is for suggestions, or without a campaign `locale`
            is None and the round has several languages.
        BadRowsError: none of the rows is a record.
        NotFoundError: the workspace or one of its datasets is missing.
        SettingsError: `ARGILLA_API_KEY` is missing, or the campaign cannot be used or is another than Argilla's.
        ArgillaError: Argilla refused a batch; pushing again goes on from there.
    """
    from annotation.client import open_argilla

    if round_name and takes_suggestions(round_name):
        raise InputError(
            f"The round {round_name!r} is for suggestions. Push a file with `citejury annotation push --suggestions`."
        )
    records, invalid = records_from_frame(frame)
    if invalid and not records:
        raise BadRowsError("No row is a record:", invalid)
    settings = read_settings(workspace=workspace, api_url=api_url)
    campaign, languages = read_campaign(), [(record.record_uuid, record.language) for record in records]
    with open_argilla(settings) as argilla:
        options = PushOptions(dry_run=dry_run, revise=revise)
        where = (argilla, settings.workspace, campaign, languages, records)
        report = push_where_named(*where, locale, round_name, options)
    return report._replace(invalid=tuple(invalid))


def records_from_frame(frame: Any) -> tuple[list[QueryResponse], list[str]]:
    """The records of the rows, and a line for each row that is none: its number from 1, and why.

    Raises:
        InputError: a column is missing, or there are no rows.
    """
    rows: Sequence[Mapping[str, Any]] = frame if isinstance(frame, list) else frame.to_dict("records")
    if not rows:
        raise InputError("The frame has no rows. Push one that holds answers.")
    missing = [name for name in (*TEXT_COLUMNS, PASSAGES) if name not in rows[0]]
    if missing:
        raise InputError(f"The frame has no column {', '.join(map(repr, missing))}. Rename its own, or add it.")
    records, invalid = [], []
    for number, row in enumerate(rows, start=1):
        try:
            records.append(record_from_row(row))
        except InputError as error:
            invalid.append(f"row {number}: {error}")
    return records, invalid


def record_from_row(row: Mapping[str, Any]) -> QueryResponse:
    """The canonical record of one row.

    Raises:
        InputError: a text is missing or none, or a passage is neither a text nor a dict with one.
    """
    for name in TEXT_COLUMNS:
        if not isinstance(row.get(name), str):
            raise InputError(f"`{name}` is no text: found {row.get(name)!r}")
    if not row["query"].strip():
        raise InputError("`query` is empty")
    provenance = {name: str(row[name]) for name in Provenance.model_fields if not is_missing(row.get(name))}
    value = {
        **{name: row[name] for name in TEXT_COLUMNS},
        **{name: str(row[name]) for name in OPTIONAL_COLUMNS if not is_missing(row.get(name))},
        "chunks": [passage_value(passage, rank) for rank, passage in enumerate(passages_of(row), start=1)],
        "provenance": provenance,
    }
    return read_canonical(writable(value))


def passages_of(row: Mapping[str, Any]) -> list[Any]:
    """The row's passages.

    Raises:
        InputError: the cell holds something else than a list.
    """
    cell: Any = row.get(PASSAGES)
    if is_missing(cell):
        return []
    if isinstance(cell, str | bytes | Mapping) or not hasattr(cell, "__iter__"):
        raise InputError(f"`{PASSAGES}` is no list of texts: found {cell!r}")
    return list(cell)


def passage_value(passage: Any, rank: int) -> dict[str, Any]:
    """The passage as a canonical record holds it; its ids are derived from its URL or text where it has none.

    Raises:
        InputError: it is neither a text nor a dict with one, or the text is empty.
    """
    given = {"text": passage} if isinstance(passage, str) else passage
    if not isinstance(given, Mapping) or not isinstance(given.get("text"), str) or not given["text"].strip():
        raise InputError(f"passage {rank} is neither a text nor a dict with `text`: found {passage!r}")
    doc_id = document_id(str(given.get("url") or ""), given["text"])
    return {"chunk_id": f"{doc_id}#{rank - 1}", "doc_id": doc_id, "chunk_rank": rank, **given}


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty, as frames say it: None or NaN."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))
