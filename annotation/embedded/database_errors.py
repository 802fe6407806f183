"""What people are told where the database cannot do it: a full disk, a read-only one, two of the same at once.

argilla-server 2.8.0 answers all of these with status 500 and the text of the database, values and all. Here each gets
the status that it means and a plain sentence, and `serve` shows it too. The annotator's page keeps what was not stored
and sends it again (`page_keep.js`), so that work goes on by itself once the trouble is mended.
"""

import logging
from typing import Any, NamedTuple

from annotation.embedded.event_lines_sums import repeats, tell_repeatedly

logger = logging.getLogger(__name__)


class Trouble(NamedTuple):
    """What an error of the database means to people."""

    status: int
    sentence: str


TWICE = Trouble(409, "Something of that kind is there already; it came at the same moment. Nothing was stored")
GONE = Trouble(409, "What this belongs to was deleted at the same moment. Nothing was stored")
FULL = Trouble(507, "The server's disk is full, so nothing was stored. Make room on it; work then goes on by itself")
UNWRITABLE = Trouble(
    507, "The server cannot write its database, so nothing was stored. Look at its disk, and at who may write there"
)
BUSY = Trouble(503, "The server is too busy just now, so nothing was stored. Try again")
LOST = Trouble(503, "The server's database does not answer, so nothing was stored. Try again")

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
    """Let argilla-server answer an error of the database with what it means."""
    from argilla_server.api.routes import api_v1
    from fastapi.responses import JSONResponse
    from sqlalchemy.exc import DBAPIError, TimeoutError

    told = repeats()

    async def answer(request: Any, error: Exception) -> Any:
        trouble = trouble_of(error)
        if trouble is None:
            raise error
        if trouble.status in TOLD:
            logger.error("%s %s: %s", request.method, request.url.path, cause(error))
            tell_repeatedly(told, trouble.sentence)
        return JSONResponse({"detail": trouble.sentence}, trouble.status)

    api_v1.exception_handler(DBAPIError)(answer)
    api_v1.exception_handler(TimeoutError)(answer)


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
