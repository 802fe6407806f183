"""Malformed searches refused as argilla-server refuses others: 422 with a sentence, where 2.8.0 answers 500.

Those are `filters` without a list, a range from a number to a word or of numbers between words, a sort by nothing, and
NUL in a name, which PostgreSQL does not take (`argilla_server/api/handlers/v1/datasets/records.py`, read in 2.8.0).
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
        await check_bounds(db, query, dataset)

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


async def check_bounds(db: Any, query: Any, dataset: Any) -> None:
    """Nothing where each range of numbers goes from and to numbers.

    Raises:
        UnprocessableEntityError: one does not; the server answers 422.
    """
    from argilla_server.errors.future import UnprocessableEntityError

    from annotation.embedded.search.filters import number_or_none

    for each in query.filters.and_ if query.filters else ():
        ends = [end for end in (getattr(each, "ge", None), getattr(each, "le", None)) if end is not None]
        words = [end for end in ends if number_or_none(end) is None]
        if words and await holds_numbers(db, each.scope, dataset):
            raise UnprocessableEntityError(f"`{words[0]}` is not a number to compare with.")


async def holds_numbers(db: Any, scope: Any, dataset: Any) -> bool:
    """Whether what the scope names is a number in every record that has it."""
    from argilla_server.enums import MetadataPropertyType, QuestionType
    from argilla_server.models import MetadataProperty, Question

    if scope.entity == "metadata":
        named = await MetadataProperty.get_by_or_raise(db, name=scope.metadata_property, dataset_id=dataset.id)
        return bool(named.type != MetadataPropertyType.terms)
    if scope.entity == "record" or not scope.question:
        return False
    if scope.entity == "suggestion" and scope.property != "value":
        return bool(scope.property == "score")
    question = await Question.get_by_or_raise(db, name=scope.question, dataset_id=dataset.id)
    return bool(question.type == QuestionType.rating)


async def answer_to_type_error(request: Any, error: Exception) -> Any:
    """422 for a range whose ends cannot be compared; any other error stays one."""
    from fastapi.responses import JSONResponse

    if traceback.extract_tb(error.__traceback__)[-1].name != RANGE_CHECK:
        raise error
    return JSONResponse({"detail": "'ge' and 'le' must be two numbers or two texts"}, status_code=422)
