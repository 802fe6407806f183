"""Marks on the context that a dataset requires: an answer that lacks one is refused, however it is sent.

Argilla's own `required` would ask for a mark on every record, also where there is nothing to mark.
"""

from collections.abc import Callable
from typing import Any

from annotation.labels import EVIDENCE, missing_marks


def require_marks(validate: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """The server's check of a response, and after it ours, in datasets that require marks."""
    from argilla_server.enums import ResponseStatus
    from fastapi.encoders import jsonable_encoder

    def check(response: Any, record: Any) -> None:
        validate(response, record)
        required = (record.dataset.metadata_ or {}).get(EVIDENCE) == "required"
        if required and response.status == ResponseStatus.submitted:
            _check_marks({name: each["value"] for name, each in jsonable_encoder(response.values).items()})

    return check


def _check_marks(values: dict[str, Any]) -> None:
    """Refuse values that lack a mark.

    Raises:
        UnprocessableEntityError: they do; the server answers 422.
    """
    from argilla_server.errors.future import UnprocessableEntityError

    missing = missing_marks(values)
    if missing:
        needed = " and ".join(f"one `{mark}`, because `{label}` is yes" for label, mark in missing)
        raise UnprocessableEntityError(
            f"This answer needs marks on the words of the context that decided: {needed}. Mark them, then submit again."
        )
