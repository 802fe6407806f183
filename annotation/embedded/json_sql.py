"""Reading JSON columns in SQL: the one place that is SQLite's own (https://www.sqlite.org/json1.html, read 2026).

Another database needs these four functions again, and nothing else of the search engine.
"""

import html
import unicodedata
from typing import Any

from sqlalchemy import ColumnElement, TableValuedAlias, func

from annotation.defuse import WORD_JOINER


def fold(text: str | None) -> str | None:
    """The text without differences of case or of Unicode form: `ＡＢＣ` and `abc` are the same."""
    return None if text is None else unicodedata.normalize("NFKC", text).casefold()


def fold_shown(text: str | None) -> str | None:
    """The text of a field folded as annotators see it: entities read, and invisible joiners left out."""
    return None if text is None else fold(html.unescape(text).replace(WORD_JOINER, ""))


def install(connection: Any) -> None:
    """Teach a SQLite connection `citejury_fold`; its own LIKE knows the case of ASCII letters only."""
    connection.create_function("citejury_fold", 1, fold_shown, deterministic=True)


def folded(text: Any) -> ColumnElement[str]:
    """SQL for `fold_shown`."""
    return func.citejury_fold(text)


def path_of(*keys: str) -> str:
    """SQLite's path to a nested key; no key names the whole."""
    return "$" + "".join(f'."{key}"' for key in keys)


def value_at(column: Any, *keys: str) -> ColumnElement[Any]:
    """SQL for the value at a path as text or number; NULL where there is none."""
    return func.json_extract(column, path_of(*keys))


def elements_at(column: Any, *keys: str) -> TableValuedAlias:
    """SQL for a table of the values at a path, column `value`: one row for a scalar, one for each item of a list."""
    return func.json_each(column, path_of(*keys)).table_valued("value", joins_implicitly=True)


def leaves_at(column: Any, *keys: str) -> TableValuedAlias:
    """SQL for a table of everything at and under a path, columns `type` and `atom`; a string's type is `text`."""
    return func.json_tree(column, path_of(*keys)).table_valued("type", "atom", joins_implicitly=True)
