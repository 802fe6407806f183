"""How long a text is in tokens of `o200k_base`, offline: the one measure of the whole project."""

from functools import lru_cache
from typing import Any

ENCODING = "o200k_base"


def count_tokens(text: str) -> int:
    """Number of tokens of the text, as OpenAI's models since GPT-4o count them; 0 for an empty one."""
    return int(tokenizer().count(text if text.isascii() else text.encode(errors="replace").decode()))


@lru_cache(maxsize=1)
def tokenizer() -> Any:
    """The compiled tokenizer with its vocabulary, loaded once (0.3 s).

    It is taken from `bpe_openai` without running that package's own modules: those read three vocabularies in Python,
    through a function that warns on Python 3.11 and 3.12.
    """
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = PathFinder.find_spec("bpe_openai")
    places = package.submodule_search_locations if package else None
    found = PathFinder.find_spec("_bindings", places)
    if found is None or found.loader is None:
        raise ImportError("bpe-openai is not installed whole: its compiled tokenizer is missing.", name="bpe_openai")
    bindings: Any = module_from_spec(found)
    found.loader.exec_module(bindings)
    return bindings.tokenizer_for_encoding(ENCODING)
