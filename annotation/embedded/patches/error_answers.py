"""What people are told where the database cannot do it: a full disk, a read-only one, two of the same at once.

argilla-server 2.8.0 answers all of these with status 500 and the text of the database, values and all. Here each gets
the status that it means and a plain sentence, and `serve` shows it too. The annotator's page keeps what was not stored
and sends it again (`page_keep.js`), so that work goes on by itself once the trouble is mended.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from annotation.embedded.home.event_log import repeats, tell_repeatedly

logger = logging.getLogger(__name__)


class Trouble(NamedTuple):
    """What an error of the database means to people."""

    status: int
    sentence: str


TWICE = Trouble(409, "Something of that kind is there already; it came at the same moment. Nothing was stored")
MEANWHILE = Trouble(503, "Somebody stored the same at the same moment, so nothing was stored. Try again")
GONE = Trouble(409, "What this belongs to was deleted at the same moment. Nothing was stored")
FULL = Trouble(507, "The server's disk is full, so nothing was stored. Make room on it; work then goes on by itself")
UNWRITABLE = Trouble(
    507, "The server cannot write its database, so nothing was stored. Look at its disk, and at who may write there"
)
BUSY = Trouble(503, "The server is too busy just now, so nothing was stored. Try again")
LOST = Trouble(503, "The server's database does not answer, so nothing was stored. Try again")
REFUSED = Trouble(500, "The server's database does not take this, so nothing was stored")
NOT_TRIED = "Not tried, because the server could not store an answer before it. Send it again"

# https://www.sqlite.org/rescode.html; a file that may not grow, by a quota say, is an I/O error there.
SQLITE = {
    **{787: GONE, 1555: TWICE, 2067: TWICE},
    **{5: BUSY, 6: BUSY, 8: UNWRITABLE, 10: UNWRITABLE, 13: FULL, 14: UNWRITABLE},
}
TOLD = {503, 507}
"""Statuses that `serve` shows with their sentence, once a minute."""
PRIMARY = 0xFF  # the part of SQLite's code that says which kind of error it is
# https://www.postgresql.org/docs/15/errcodes-appendix.html
POSTGRESQL = {
    **{"23503": GONE, "23505": TWICE, "25006": UNWRITABLE, "53100": FULL},
    **{"40001": BUSY, "40P01": BUSY, "53300": BUSY, "55P03": BUSY},
}


def explain_database_errors() -> None:
    """Let argilla-server answer an error of the database with what it means, also for one answer of many."""
    from argilla_server.api.routes import api_v1
    from argilla_server.use_cases.responses.upsert_responses_in_bulk import UpsertResponsesInBulkUseCase
    from fastapi.responses import JSONResponse
    from sqlalchemy.exc import DBAPIError, TimeoutError

    told = repeats()

    async def answer(request: Any, error: Exception) -> Any:
        trouble = trouble_of(error)
        if trouble is None:
            raise error
        if trouble is TWICE and request.method == "PUT":  # which would change what it finds, the next time
            trouble = MEANWHILE
        tell_trouble(trouble, f"{request.method} {request.url.path}", error)
        return JSONResponse({"detail": trouble.sentence}, trouble.status)

    def tell_trouble(trouble: Trouble, where: str, error: Exception) -> None:
        if trouble.status in TOLD or trouble is REFUSED:
            logger.error("%s: %s", where, cause(error))
            tell_repeatedly(told, trouble.sentence)

    async def store_many(self: Any, responses: Sequence[Any], user: Any) -> list[Any]:
        return await store_in_turn(self.db, self.search_engine, responses, user, tell_trouble)

    UpsertResponsesInBulkUseCase.execute = store_many
    api_v1.exception_handler(DBAPIError)(answer)
    api_v1.exception_handler(TimeoutError)(answer)


async def store_in_turn(
    db: Any, search_engine: Any, responses: Sequence[Any], user: Any, tell: Callable[[Trouble, str, Exception], None]
) -> list[Any]:
    """What became of each response, in order; after an error of the database the rest is not tried.

    argilla-server 2.8.0 goes on in a transaction that has failed, and gives the texts of the database for each
    (`argilla_server/use_cases/responses/upsert_responses_in_bulk.py`).
    """
    from argilla_server.api.policies.v1 import RecordPolicy, authorize
    from argilla_server.api.schemas.v1.responses import Response, ResponseBulk, ResponseBulkError
    from argilla_server.contexts import datasets
    from argilla_server.errors.base_errors import ServerError
    from argilla_server.errors.future import NotFoundError, NotUniqueError, UnprocessableEntityError
    from sqlalchemy.exc import SQLAlchemyError

    records = await datasets.get_records_by_ids(db, [item.record_id for item in responses])
    await datasets.preload_records_relationships_before_validate(db, [each for each in records if each is not None])
    stored: list[Any] = []
    for item, record in zip(responses, records, strict=True):
        try:
            if record is None:
                raise NotFoundError(f"Record with id `{item.record_id}` not found")
            await authorize(user, RecordPolicy.create_response(record))
            response = await datasets.upsert_response(db, search_engine, record, user, item)
            stored.append(ResponseBulk(item=Response.model_validate(response)))
        except SQLAlchemyError as error:
            trouble = trouble_of(error) or REFUSED
            tell(trouble, "POST /api/v1/me/responses/bulk", error)
            details = [trouble.sentence, *[NOT_TRIED] * (len(responses) - len(stored) - 1)]
            return stored + [ResponseBulk(error=ResponseBulkError(detail=detail)) for detail in details]
        except (ServerError, NotFoundError, NotUniqueError, UnprocessableEntityError) as error:
            # What one response lacks is no matter of the others.
            stored.append(ResponseBulk(error=ResponseBulkError(detail=str(error))))
    return stored


def trouble_of(error: Exception) -> Trouble | None:
    """What the error means; None where it is not of the database's state, but of what it was asked."""
    from sqlalchemy.exc import DBAPIError, TimeoutError

    if isinstance(error, TimeoutError):  # no connection became free
        return BUSY
    code = getattr(cause(error), "sqlite_errorcode", None)
    if code is not None:
        return SQLITE.get(code) or SQLITE.get(code & PRIMARY)
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    return POSTGRESQL.get(getattr(cause(error), "sqlstate", None) or "", LOST if lost else None)


def cause(error: Exception) -> Exception:
    """The database's own error, without the statement and its values."""
    original = getattr(error, "orig", None)
    return original if isinstance(original, Exception) else error
