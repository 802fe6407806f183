"""What an adjudicator is asked for: only the labels on which annotators differ need an answer, and all of them do."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from annotation.labels import DISPUTED


def ask_for_disputed(validate: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """The server's check of a response, by which the labels that are not disputed are not required."""

    def check(response: Any, record: Any) -> None:
        disputed = (record.metadata_ or {}).get(DISPUTED)
        validate(response, _Asked(record, frozenset(disputed)) if disputed else record)

    return check


class _Asked:
    """A record to be checked, with questions of which only the disputed ones are required."""

    def __init__(self, record: Any, disputed: frozenset[str]) -> None:
        """Show the record's own dataset with other questions."""
        self._record = record
        questions = [
            SimpleNamespace(name=each.name, required=each.name in disputed, parsed_settings=each.parsed_settings)
            for each in record.dataset.questions
        ]
        self.dataset = SimpleNamespace(questions=questions)

    def __getattr__(self, name: str) -> Any:
        """Everything else as the record has it."""
        return getattr(self._record, name)
