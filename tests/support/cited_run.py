"""Run folders whose answers cite given URLs, for tests of what becomes of them."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from pipeline.asking.gather import Online, fetch_missing
from pipeline.asking.run_sources import RunSources, write_run_records
from pipeline.citations.addresses import source_domain
from pipeline.core.errors import InputError
from pipeline.core.schema import StoredAnswer
from pipeline.csv.file import write_answers
from pipeline.providers import read_payload
from pipeline.sources.choose import PassageLimits
from pipeline.sources.store import open_store

NAMES = UUID("5d1c6f5e-0b0a-4d6c-9a55-3f0f6f0c2a11")


def stored_answer(**fields: Any) -> StoredAnswer:
    """An answer with these fields, whose domains are those of its citations unless others are given."""
    given = {
        "narrative_id": "N1",
        "narrative_type": "",
        "narrative_prompt": "ワクチンは危険",
        "model_name": "openai",
        "model_version": "m-1",
        "answer_id": "550e8400-e29b-41d4-a716-446655440000",
        "answer_prompt": "ワクチンは危険?",
        "answer_text": "=cmd; „nein“",
        "answer_raw_json": '{"a": "ü"}',
        "answer_timestamp": "2025-12-29T17:30:00+00:00",
        "citations": (),
        **fields,
    }
    return StoredAnswer(**{"domains": tuple(source_domain(url) for url in given["citations"]), **given})


def cited_answer(number: int, query: str, text: str, urls: Sequence[str], provider: str = "openai") -> StoredAnswer:
    """An answer as its columns tell it: no reader knows its payload."""
    names = {"narrative_id": f"N{number}", "answer_id": str(uuid5(NAMES, f"{provider} {number}"))}
    said = {"narrative_prompt": query, "answer_prompt": query, "answer_text": text, "answer_raw_json": "{}"}
    return stored_answer(**names, **said, model_name=provider, model_version="m", citations=tuple(urls))


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
    answer = read_payload("perplexity", raw)
    plain = cited_answer(0, "Is honey safe?", answer.text, answer.citations, "perplexity")
    return plain.model_copy(update={"answer_raw_json": raw, "search_results": answer.search_results})


def read_pages(run: Path, online: Online) -> RunSources:
    """What `pipeline sources` does with the run: its store and its records stand beside it."""
    with open_store(run.parent / "store.db") as store:
        return write_run_records(
            run,
            run.parent / "records.jsonl",
            store,
            PassageLimits(),
            lambda store, keys: fetch_missing(store, keys, online, "run", lambda *_: None, lambda _: None),
        )


def are_stored(path: Path, urls: Sequence[str]) -> bool:
    with suppress(InputError), open_store(path, read_only=True) as store:
        return all(store.outcome(url) for url in urls)
    return False
