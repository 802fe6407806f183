"""SQL that stands beside a module in a file of its name, for SQLite and PostgreSQL, and what the two share.

In a text, `{name row}` stands for the text of that name, and `{row}` in that for `row`.
"""

import re
from functools import cache
from typing import Any

from pipeline.core.sentences import packaged_table

_PART = re.compile(r"\{(?!row\})(\w+)(?: (\w+))?\}")


@cache
def read_sql(module: str, dialect: str) -> dict[str, Any]:
    """Texts and lists of statements by name."""
    found = packaged_table(module)
    texts = found["both"] | found[dialect]

    def filled(text: str) -> str:
        return _PART.sub(lambda part: filled(texts[part[1]]).replace("{row}", part[2] or "{row}"), text)

    return {name: filled(each) if isinstance(each, str) else [*map(filled, each)] for name, each in texts.items()}


def run_sql(connection: Any, module: str, name: str = "statements") -> None:
    for statement in read_sql(module, connection.dialect.name)[name]:
        connection.exec_driver_sql(statement)
