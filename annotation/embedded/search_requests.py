"""Malformed searches refused as argilla-server refuses others: 422 with a sentence, where 2.8.0 answers 500.

Those are `filters` without a list, a range from a number to a word, a sort by nothing, and NUL in a name, which
PostgreSQL does not take (`argilla_server/api/handlers/v1/datasets/records.py`, read in 2.8.0).
"""

import traceback
from typing import Any

RANGE_CHECK = "check_ge_and_le"


def refuse_malformed_searches() -> None:
    """Put our checks before argilla-server's own."""
    from argilla_server.api.handlers.v1.datasets import records
    from argilla_server.api.routes import api_v1

    check_names = records._validate_search_records_query

    async def check_search(db: Any, query: Any, dataset: Any) -> None:
        check_query(query)
        await check_names(db, query, dataset)

    records._validate_search_records_query = check_search
    api_v1.add_exception_handler(TypeError, answer_to_type_error)


def check_query(query: Any) -> None:
    """Nothing for a search that can be looked up; filters without a list are none.

    Raises:
        UnprocessableEntityError: it cannot; the server answers 422.
    """
    from argilla_server.errors.future import UnprocessableEntityError

    if query.filters and query.filters.and_ is None:
        query.filters = None
    scopes = [each.scope for each in (*(query.filters.and_ if query.filters else ()), *(query.sort or ()))]
    for scope in scopes:
        if scope.entity in ("response", "suggestion") and not (scope.question or scope.property):
            raise UnprocessableEntityError(f"A scope of a {scope.entity} needs a `question` or a `property`.")
        if scope.entity == "suggestion" and not scope.property:
            raise UnprocessableEntityError("A scope of a suggestion needs a `property`.")
    asked = query.query
    texts = [asked.text.field or ""] if asked and asked.text else []
    vectors = [asked.vector.name] if asked and asked.vector else []
    names = [str(getattr(scope, name, "")) for scope in scopes for name in ("question", "metadata_property")]
    if any("\0" in name for name in (*texts, *vectors, *names)):
        raise UnprocessableEntityError("No field, question, property or vector has a name with the character NUL.")


async def answer_to_type_error(request: Any, error: Exception) -> Any:
    """422 for a range whose ends cannot be compared; any other error stays one."""
    from fastapi.responses import JSONResponse

    if traceback.extract_tb(error.__traceback__)[-1].name != RANGE_CHECK:
        raise error
    return JSONResponse({"detail": "'ge' and 'le' must be two numbers or two texts"}, status_code=422)
