"""What people are told where argilla-server 2.8.0 answers with a text that is not meant for them.

An error of the database (a full disk, a read-only one, two of the same at once) gets the status that it means and a
plain sentence instead of 500 and its statement with the values. The annotator's page keeps what was not stored and
sends it again (`page/keep.js`). The reason of any other failure stays in the
log. Of an invalid request is said what is wrong and where: argilla-server writes its values into the log twice, and
names of fields and values of answers whole into its refusals: 5 MB of them become 10 MB of log.
"""

import logging
import sqlite3
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

from argilla_server.api.policies.v1 import RecordPolicy, authorize
from argilla_server.api.routes import api_v1
from argilla_server.api.schemas.v1.responses import Response, ResponseBulk, ResponseBulkError
from argilla_server.contexts import datasets
from argilla_server.errors.base_errors import ServerError, ValidationError
from argilla_server.errors.future import NotFoundError, NotUniqueError, UnprocessableEntityError
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError

from annotation.server.home.damage import DAMAGED, home_of_this_part, is_noted, note_damage
from annotation.server.home.folder import is_damage
from annotation.server.home.logs import repeats, shortened, tell_repeatedly
from annotation.server.patches.middleware import TOLD

_LONGEST = 1_000  # characters of a refusal
_logger = logging.getLogger(__name__)
_repeated = repeats()


class _Trouble(NamedTuple):
    status: int
    sentence: str
    is_damage: bool = False  # whether the database is damaged; the page tells annotators that nothing is taken


_TWICE = _Trouble(409, "Something of that kind is there already; it came at the same moment. Nothing was stored")
_GONE = _Trouble(409, "What this belongs to was deleted at the same moment. Nothing was stored")
_FULL = _Trouble(507, "The server's disk is full, so nothing was stored. Make room on it; work then goes on by itself")
_UNWRITABLE = _Trouble(
    507, "The server cannot write its database, so nothing was stored. Look at its disk, and at who may write there"
)
_BUSY = _Trouble(503, "The server is too busy just now, so nothing was stored. Try again")
_CORRUPT = _Trouble(
    503, "The server's database is damaged, so nothing was stored. Stop it, and look at its log and its last dump"
)
_DAMAGED = _Trouble(503, DAMAGED, is_damage=True)
_REFUSED = _Trouble(500, "The server's database does not take this, so nothing was stored")

# https://www.sqlite.org/rescode.html; a file that may not grow, by a quota say, is an I/O error there.
_SQLITE = {
    **{787: _GONE, 1555: _TWICE, 2067: _TWICE},
    **{5: _BUSY, 6: _BUSY, 8: _UNWRITABLE, 10: _UNWRITABLE, 13: _FULL, 14: _UNWRITABLE},
}
_PRIMARY = 0xFF  # the part of SQLite's code that says which kind of error it is
# https://www.postgresql.org/docs/15/errcodes-appendix.html
_POSTGRESQL = {
    **{"23503": _GONE, "23505": _TWICE, "25006": _UNWRITABLE, "53100": _FULL},
    **{"XX001": _CORRUPT, "XX002": _CORRUPT},
    **{"40001": _BUSY, "40P01": _BUSY, "53300": _BUSY, "55P03": _BUSY},
}


def answer_database_errors(_: Any) -> None:
    async def answer(request: Any, error: Exception) -> Any:
        trouble = _trouble_of(error)
        if trouble is None:
            raise error
        if trouble is _TWICE and request.method == "PUT":  # which would change what it finds, the next time
            trouble = _Trouble(503, "Somebody stored the same at the same moment, so nothing was stored. Try again")
        _log_trouble(trouble, f"{request.method} {request.url.path}", error)
        damaged = {"damaged": True} if trouble.is_damage else {}
        return JSONResponse({"detail": trouble.sentence, **damaged}, trouble.status)

    api_v1.exception_handler(DBAPIError)(answer)
    api_v1.exception_handler(TimeoutError)(answer)


def _log_trouble(trouble: _Trouble, where: str, error: Exception) -> None:
    if trouble.status in TOLD or trouble is _REFUSED:
        _logger.error("%s: %s", where, _cause(error))
        tell_repeatedly(_repeated, trouble.sentence)


async def store_in_turn(use_case: Any, responses: Sequence[Any], user: Any) -> list[Any]:
    """Source: `argilla_server/use_cases/responses/upsert_responses_in_bulk.py`, 2.8.0."""
    db = use_case.db
    records = await datasets.get_records_by_ids(db, [item.record_id for item in responses])
    await datasets.preload_records_relationships_before_validate(db, [each for each in records if each is not None])
    stored: list[Any] = []
    for item, record in zip(responses, records, strict=True):
        try:
            if record is None:
                raise NotFoundError(f"Record with id `{item.record_id}` not found")
            await authorize(user, RecordPolicy.create_response(record))
            response = await datasets.upsert_response(db, use_case.search_engine, record, user, item)
            stored.append(ResponseBulk(item=Response.model_validate(response)))
        except SQLAlchemyError as error:
            trouble = _trouble_of(error) or _REFUSED
            _log_trouble(trouble, "POST /api/v1/me/responses/bulk", error)
            not_tried = "Not tried, because the server could not store an answer before it. Send it again"
            details = [trouble.sentence, *[not_tried] * (len(responses) - len(stored) - 1)]
            return stored + [ResponseBulk(error=ResponseBulkError(detail=detail)) for detail in details]
        except (ServerError, NotFoundError, NotUniqueError, UnprocessableEntityError) as error:
            # What one response lacks is no matter of the others.
            stored.append(ResponseBulk(error=ResponseBulkError(detail=str(error))))
    return stored


def _trouble_of(error: Exception) -> _Trouble | None:
    if isinstance(error, TimeoutError):  # no connection became free
        return _BUSY
    code = getattr(_cause(error), "sqlite_errorcode", None)
    if code is not None:
        if _is_of_damage(_cause(error), code):
            return _DAMAGED
        return _SQLITE.get(code) or _SQLITE.get(code & _PRIMARY)
    state = getattr(_cause(error), "sqlstate", None) or ""
    # Data exceptions; what the driver itself refuses has no code.
    if state.startswith("22") or "asyncpg.exceptions.DataError" in str(_cause(error)):
        return _Trouble(422, "A number or a text in this is one that the server's database cannot hold")
    if state not in _POSTGRESQL and isinstance(error, DBAPIError) and error.connection_invalidated:
        return _Trouble(503, "The server's database does not answer, so nothing was stored. Try again")
    return _POSTGRESQL.get(state)


def _is_of_damage(cause: Exception, code: int) -> bool:
    home = home_of_this_part()
    if home is None:
        return False
    if is_damage(cause):
        note_damage(home, str(cause))
        return True
    return code & _PRIMARY == sqlite3.SQLITE_READONLY and is_noted(home)


def _cause(error: Exception) -> Exception:
    original = getattr(error, "orig", None)
    return original if isinstance(original, Exception) else error


def answer_type_errors(_: Any) -> None:
    sentences = {
        "check_ge_and_le": "'ge' and 'le' must be two numbers or two texts",
        "validate_non_nullable_fields": "The body has to be a JSON object, and its Content-Type application/json.",
    }

    async def answer(request: Any, error: Exception) -> Any:
        sentence = sentences.get(traceback.extract_tb(error.__traceback__)[-1].name)
        if sentence is None:
            raise error
        return JSONResponse({"detail": sentence}, status_code=422)

    api_v1.add_exception_handler(TypeError, answer)


def name_the_kind(answer: Any, error: Exception) -> None:
    answer.type = f"{type(error).__module__}.{type(error).__name__}"
    answer.message = "The server failed. Its log has the reason under the id in the header X-Request-Id."


def name_first_errors(answer: Any, error: Any) -> None:
    errors, answer.errors = error.errors(), []
    for each in errors[:20]:  # a place has numbers, and names, which clients make up
        place = tuple(shortened(part, 100) if isinstance(part, str) else part for part in each["loc"])
        answer.errors.append({"type": each["type"], "loc": place, "msg": shortened(each["msg"], _LONGEST)})
    left_out = len(errors) - len(answer.errors)
    if left_out:
        answer.errors.append({"type": "more", "loc": (), "msg": f"and {left_out:,} more"})


def log_without_values(convert: Any) -> Any:
    def make_answer(_: Any, error: Exception) -> Any:
        if not isinstance(error, RequestValidationError):
            return convert(error)
        answer = ValidationError(error)
        first = answer.errors[0]
        place = ".".join(map(str, first["loc"]))
        _logger.warning("not valid, %d errors, the first at %s: %s", len(error.errors()), ascii(place), first["type"])
        return answer

    return classmethod(make_answer)


def shorten_message(init: Any, refusal: Any, message: Any, *args: Any, **named: Any) -> None:
    short = shortened(message, _LONGEST) if isinstance(message, str) else message
    init(refusal, short, *args, **named)
    refusal.args = (short,)
