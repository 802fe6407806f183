"""Sentences for people, kept as templates of `str.format` in the `sentences.toml` of a folder, by module."""

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


def sentences(module: str) -> Callable[..., str]:
    """Gives a sentence of the module, whose `__file__` is named, by its key, with the values put in."""
    path = Path(module)
    texts: dict[str, str] = _tables(path.with_name("sentences.toml"))[path.stem]
    return lambda key, /, **values: texts[key].format(**values)


@cache
def _tables(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
