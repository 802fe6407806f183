"""Run folders whose answers cite given URLs, for tests of what becomes of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID, uuid5

from pipeline.citations.addresses import source_domain
from pipeline.core.schema import StoredAnswer
from pipeline.csv.file import write_answers

NAMES = UUID("5d1c6f5e-0b0a-4d6c-9a55-3f0f6f0c2a11")


def cited_answer(number: int, query: str, text: str, urls: Sequence[str], provider: str = "openai") -> StoredAnswer:
    """An answer as its columns tell it: no reader knows its payload."""
    return StoredAnswer(
        narrative_id=f"N{number}",
        narrative_type="",
        narrative_prompt=query,
        model_name=provider,
        model_version="m",
        answer_id=str(uuid5(NAMES, f"{provider} {number}")),
        answer_prompt=query,
        answer_text=text,
        answer_raw_json="{}",
        answer_timestamp="2026-11-21T00:00:00+00:00",
        citations=tuple(urls),
        domains=tuple(source_domain(url) for url in urls),
    )


def write_run(
    folder: Path, answers: Mapping[str, Sequence[str]] | Sequence[StoredAnswer], query: str = "Is honey safe?"
) -> Path:
    """A run folder with these answers of one provider, each text with what it cites."""
    if isinstance(answers, Mapping):
        answers = [cited_answer(number, query, text, urls) for number, (text, urls) in enumerate(answers.items())]
    write_answers(folder / f"{answers[0].model_name}.csv", answers)
    return folder


def sonar_answer(text: str, results: Mapping[str, str]) -> StoredAnswer:
    """An answer of Perplexity's whose payload has these snippets by URL."""
    body = {
        "object": "chat.completion",
        "model": "sonar",
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "citations": list(results),
        "search_results": [{"title": "T", "url": url, "snippet": snippet} for url, snippet in results.items()],
    }
    raw = json.dumps(body)
    from pipeline.providers import read_payload

    answer = read_payload("perplexity", raw)
    plain = cited_answer(0, "Is honey safe?", answer.text, answer.citations, "perplexity")
    return plain.model_copy(update={"answer_raw_json": raw, "search_results": answer.search_results})
