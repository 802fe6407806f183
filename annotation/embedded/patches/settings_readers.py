"""The settings of questions and metadata properties are read by readers that are built once.

argilla-server 2.8.0 builds a pydantic reader anew each time that it looks at the settings of a question: some four
milliseconds for each question of each response, half of the time that storing a response takes.
(`parsed_settings` in `argilla_server/models/database.py`, read in 2.8.0.)
"""

from typing import Any


def build_settings_readers_once() -> None:
    """Let argilla-server's questions and metadata properties read their settings with one reader each."""
    from argilla_server.models.database import (
        MetadataProperty,
        MetadataPropertySettings,
        Question,
        QuestionSettings,
    )

    Question.parsed_settings = settings_read_as(QuestionSettings)
    MetadataProperty.parsed_settings = settings_read_as(MetadataPropertySettings)


def settings_read_as(kind: Any) -> property:
    """A property that reads the row's settings as this kind."""
    from pydantic import TypeAdapter

    read = TypeAdapter(kind).validate_python
    return property(lambda row: read(row.settings))
