"""Words and tables kept beside their modules: TOML files, and sentences for people as templates of `str.format`."""

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


def packaged_table(module: str, name: str = "") -> dict[str, Any]:
    """The TOML file beside the module whose `__file__` is given: the one of this name, else the module's own."""
    path = Path(module)
    return _read(path.with_name(name) if name else path.with_suffix(".toml"))


def sentences(module: str) -> Callable[..., str]:
    """Gives a sentence of the module, whose `__file__` is named, by its key, with the values put in."""
    texts: dict[str, str] = packaged_table(module, "sentences.toml")[Path(module).stem]
    return lambda key, /, **values: texts[key].format(**values)


@cache
def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
