"""How long an answer may be: each change of it stands in the history and in every backup, for good."""

from collections.abc import Callable
from typing import Any

LONGEST_NOTE = 20_000
"""Characters; about eight pages."""
MOST_MARKS = 1_000


def refuse_long_answers(validate: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """The server's check of a response, and before it ours: no note and no list of marks is as long as a body may be.

    Raises:
        UnprocessableEntityError: one is; the server answers 422.
    """
    from argilla_server.errors.future import UnprocessableEntityError

    def check(response: Any, record: Any) -> None:
        for each in (response.values or {}).values():
            if isinstance(each.value, str) and len(each.value) > LONGEST_NOTE:
                raise UnprocessableEntityError(
                    f"A note has {LONGEST_NOTE:,} characters at most, and this one has {len(each.value):,}."
                )
            if isinstance(each.value, list) and len(each.value) > MOST_MARKS:
                raise UnprocessableEntityError(
                    f"An answer has {MOST_MARKS:,} marks at most, and this one has {len(each.value):,}."
                )
        validate(response, record)

    return check
