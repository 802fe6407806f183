"""Requests that are answered within a day for half the price: the four providers' batches behind one interface.

Requests go in, results come out in any order, and neither knows narratives or run folders. Read `_batch` first; one
file a provider speaks its interface. `BATCH_SUPPORT` says who can search the web in a batch, and who says so.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pipeline.providers.batches import _claude as claude
from pipeline.providers.batches import _gemini as gemini
from pipeline.providers.batches import _grok as grok
from pipeline.providers.batches import _openai as openai
from pipeline.providers.batches._batch import BatchApi as BatchApi
from pipeline.providers.batches._batch import BatchItem as BatchItem
from pipeline.providers.batches._batch import BatchLimits as BatchLimits
from pipeline.providers.batches._batch import BatchResult as BatchResult
from pipeline.providers.batches._batch import BatchState as BatchState
from pipeline.providers.batches._batch import split_items as split_items
from pipeline.schema import ProviderName


class BatchSupport(NamedTuple):
    """Whether requests that search the web may be sent in a batch; `words` say why, or what is to be known.

    `is_documented` is False where the provider does not say so itself.
    """

    may_search: bool
    words: str
    source: str
    read: str
    is_documented: bool = True


BATCH_SUPPORT: Mapping[str, BatchSupport] = {
    "openai": BatchSupport(
        True,
        "OpenAI's documentation does not say whether batches can search the web; each question demands a search, so "
        "one that cannot search fails instead of answering without sources",
        "https://developers.openai.com/api/docs/guides/batch",
        "2026-11",
        is_documented=False,
    ),
    "claude": BatchSupport(
        True,
        "all that a single request can do",
        "https://platform.claude.com/docs/en/build-with-claude/batch-processing",
        "2026-11",
    ),
    "gemini": BatchSupport(
        True,
        "tools as in a single request; that Google Search is among them is told at second hand",
        "https://ai.google.dev/gemini-api/docs/batch-api",
        "2026-11",
        is_documented=False,
    ),
    "grok": BatchSupport(
        True,
        "tools that the server runs, since March 2026; not every model takes batches",
        "https://docs.x.ai/developers/release-notes",
        "2026-11",
    ),
    "perplexity": BatchSupport(
        False,
        "citejury does not speak its batches, which are new",
        "https://docs.perplexity.ai/docs/agent-api/batch",
        "2026-11",
    ),
    "chat": BatchSupport(
        False,
        "no batch is documented for the models that search in chat completions",
        "https://developers.openai.com/api/docs/guides/batch",
        "2026-11",
    ),
    "interactions": BatchSupport(
        False,
        "batches are documented for `generateContent` only",
        "https://ai.google.dev/api/batch-api",
        "2026-11",
    ),
    "openrouter": BatchSupport(
        False,
        "its batches do not search the web",
        "https://openrouter.ai/docs/guides/features/batch-api",
        "2026-11",
    ),
}
"""By provider, or by the name of the API where a provider is spoken to by another than its usual one."""

_APIS: Mapping[str, BatchApi] = {
    "openai": openai.API,
    "claude": claude.API,
    "gemini": gemini.API,
    "grok": grok.API,
}


def batch_support(provider: ProviderName, api: str = "") -> BatchSupport:
    """What is known of the provider's batches; `api` is how it is spoken to, as the settings name it."""
    return BATCH_SUPPORT[_spoken(provider, api)]


def batch_api(provider: ProviderName, api: str = "") -> BatchApi | None:
    """How the provider runs batches; None where it cannot search in them."""
    return _APIS.get(_spoken(provider, api))


def search_refusal(provider: ProviderName, api: str = "") -> str:
    """Why the provider cannot be asked in a batch, to be read after its name; empty where it can."""
    support = batch_support(provider, api)
    return "" if support.may_search else f"cannot be asked in a batch: {_cited(support)}"


def search_doubt(provider: ProviderName, api: str = "") -> str:
    """What a user should know before the provider is asked in a batch; empty where its own words promise all."""
    support = batch_support(provider, api)
    return "" if support.is_documented or not support.may_search else _cited(support)


def _cited(support: BatchSupport) -> str:
    """The words about batches, and where they were read."""
    return f"{support.words} ({support.source}, read {support.read})"


def _spoken(provider: ProviderName, api: str) -> str:
    """The name in the tables."""
    return api if api in BATCH_SUPPORT else provider
