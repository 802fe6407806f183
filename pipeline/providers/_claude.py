"""Anthropic Claude: Messages, a turn that was paused and continued, and an older shape.

Source: https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool

Source: pipeline/contracts/csv_v2.md#citations.
"""

from collections.abc import Iterator
from typing import Any

from pipeline.providers.answer import build_answer, place
from pipeline.providers.body import as_object, as_objects, as_text
from pipeline.schema import Answer, Occurrence


def read(body: Any) -> Answer:
    """The answer: its citations are the URLs in `tool_use` blocks named `web_search`, then those of its text blocks.

    What a search found and no block cites is no citation. A list of bodies is one turn: the texts joined, model and
    stop reason those of the last.
    """
    bodies = as_objects(body) if isinstance(body, list) else [as_object(body)]
    blocks = [block for each in bodies for block in as_objects(each.get("content"))]
    searched = [found for block in blocks if _is_client_search(block) for found in _tool_occurrences(block)]
    text = "".join(_block_text(block) for block in blocks)
    cited = list(_block_occurrences(text, blocks))
    return build_answer(
        text,
        [occurrence.url for occurrence in (*searched, *cited)],
        [*cited, *searched],
        model=as_text(bodies[-1].get("model")),
        stop_reason=as_text(bodies[-1].get("stop_reason")),
    )


def _block_text(block: dict[str, Any]) -> str:
    """The block's share of the answer; empty for thoughts, calls and results."""
    return as_text(block.get("text")) if block.get("type") == "text" else ""


def _is_client_search(block: dict[str, Any]) -> bool:
    """Whether this is the block of the older shape; no body of the real service has one with results."""
    return block.get("type") == "tool_use" and block.get("name") == "web_search"


def _tool_occurrences(value: Any) -> Iterator[Occurrence]:
    """Every URL in the block, with its title where one stands beside it."""
    if isinstance(value, str) and value.startswith(("http://", "https://")) and not any(map(str.isspace, value)):
        yield Occurrence(url=value)
    elif isinstance(value, list):
        for each in value:
            yield from _tool_occurrences(each)
    elif isinstance(value, dict):
        title = as_text(value.get("title"))
        for each in value.values():
            for found in _tool_occurrences(each):
                yield found.model_copy(update={"title": title}) if isinstance(each, str) else found


def _block_occurrences(text: str, blocks: list[dict[str, Any]]) -> Iterator[Occurrence]:
    """One occurrence for each citation of a text block: the block's words, with the text that Claude quotes."""
    start = 0
    for block in blocks:
        words = _block_text(block)
        for citation in as_objects(block.get("citations")) if words or block.get("type") == "text" else ():
            yield place(
                text,
                (start, start + len(words.rstrip())),
                url=as_text(citation.get("url")),
                placement="claim",
                title=as_text(citation.get("title")),
                cited_text=as_text(citation.get("cited_text")),
            )
        start += len(words)
