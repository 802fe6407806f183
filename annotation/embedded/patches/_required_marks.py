"""Marks on the context that a dataset requires: an answer that lacks one is refused, however it is sent.

Argilla's own `required` would ask for a mark on every record, also where there is nothing to mark.
"""

import html
from collections.abc import Callable
from typing import Any

from annotation.labels import EVIDENCE, missing_marks
from annotation.marks import is_on_words
from annotation.tasks import MARKED_FIELD


def require_marks(validate: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """The server's check of a response, and after it ours, in datasets that require marks."""
    from argilla_server.enums import ResponseStatus
    from fastapi.encoders import jsonable_encoder

    def check(response: Any, record: Any) -> None:
        validate(response, record)
        required = (record.dataset.metadata_ or {}).get(EVIDENCE) == "required"
        if required and response.status == ResponseStatus.submitted:
            values = {name: each["value"] for name, each in jsonable_encoder(response.values).items()}
            _check_marks(values | {EVIDENCE: _marks_on_words(values.get(EVIDENCE) or [], record.fields)})

    return check


def _marks_on_words(marks: list[dict[str, Any]], fields: dict[str, Any]) -> list[dict[str, Any]]:
    """The marks without those on nothing but a passage's heading, which say nothing of what decided."""
    shown = html.unescape(fields[MARKED_FIELD])
    return [mark for mark in marks if is_on_words(shown, mark["start"], mark["end"])]


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
