"""What is asked of an answer before it is stored, beside what argilla-server asks.

An adjudicator is asked for the labels on which annotators differ and for no others. Marks on the context are asked for
where a dataset requires them: Argilla's own `required` would ask for a mark on every record, also where there is
nothing to mark. No answer is longer than people write: each change of it stands in the history and in every backup.
"""

import html
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from argilla_server.enums import ResponseStatus
from argilla_server.errors.future import UnprocessableEntityError
from fastapi.encoders import jsonable_encoder

from annotation.argilla.labels import DISPUTED, EVIDENCE, missing_marks
from annotation.argilla.marks import is_on_words
from annotation.argilla.tasks import MARKED_FIELD

_LONGEST_NOTE = 20_000  # characters; about eight pages
_MOST_MARKS = 1_000

Check = Callable[[Any, Any], None]  # a check of a response, and of the record it is to


class _Asked:
    """A record to be checked, with questions of which only the disputed ones are required."""

    def __init__(self, record: Any, disputed: list[str]) -> None:
        self._record = record
        questions = [
            SimpleNamespace(name=each.name, required=each.name in disputed, parsed_settings=each.parsed_settings)
            for each in record.dataset.questions
        ]
        self.dataset = SimpleNamespace(questions=questions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


def ask_for_what_is_required(validate: Check, response: Any, record: Any) -> None:
    """Marks on nothing but a passage's heading do not count: they say nothing of what decided."""
    disputed = (record.metadata_ or {}).get(DISPUTED)
    validate(response, _Asked(record, disputed) if disputed else record)
    required = (record.dataset.metadata_ or {}).get(EVIDENCE) == "required"
    if not required or response.status != ResponseStatus.submitted:
        return
    values = {name: each["value"] for name, each in jsonable_encoder(response.values).items()}
    shown = html.unescape(record.fields[MARKED_FIELD])
    marks = [mark for mark in values.get(EVIDENCE) or [] if is_on_words(shown, mark["start"], mark["end"])]
    if missing := missing_marks(values | {EVIDENCE: marks}):
        needed = " and ".join(f"one `{mark}`, because `{label}` is yes" for label, mark in missing)
        raise UnprocessableEntityError(
            f"This answer needs marks on the words of the context that decided: {needed}. Mark them, then submit again."
        )


def refuse_long_answers(validate: Check, response: Any, record: Any) -> None:
    for each in (response.values or {}).values():
        if isinstance(each.value, str) and len(each.value) > _LONGEST_NOTE:
            raise UnprocessableEntityError(
                f"A note has {_LONGEST_NOTE:,} characters at most, and this one has {len(each.value):,}."
            )
        if isinstance(each.value, list) and len(each.value) > _MOST_MARKS:
            raise UnprocessableEntityError(
                f"An answer has {_MOST_MARKS:,} marks at most, and this one has {len(each.value):,}."
            )
    validate(response, record)
