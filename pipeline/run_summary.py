"""What a run folder holds when all calls are settled: rows in order, `citations.jsonl`, and the manifest's counts."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from pipeline.calls import Call
from pipeline.csv_v2 import read_answers, write_answers
from pipeline.run_folder import CITATIONS, ErrorLine, ProviderCounts, RunManifest
from pipeline.run_records import read_stored
from pipeline.schema import PROVIDERS, Answer, ProviderName, StoredAnswer
from pipeline.staging import staged_file

# The words with which the five say that an answer came to its end, in lower case.
WHOLE = frozenset({"", "stop", "end_turn", "stop_sequence", "completed", "reason_stop", "tool_calls", "tool_use"})


def summarise_run(
    out: Path,
    manifest: RunManifest,
    plans: Mapping[ProviderName, Sequence[Call]],
    models_asked: Mapping[ProviderName, str],
    errors: Sequence[ErrorLine],
) -> RunManifest:
    """The manifest with its counts; `citations.jsonl` is written anew from the stored payloads.

    `models_asked` has every provider asked now, with the model named for it or an empty text. The file is derived
    from the CSVs as a whole, so that no kill can leave a line of it doubled or missing.
    """
    counts: dict[ProviderName, ProviderCounts] = {}
    with staged_file(out / CITATIONS) as file:
        for provider in PROVIDERS:
            path = out / f"{provider}.csv"
            earlier = manifest.providers.get(provider)
            model = models_asked.get(provider) or (earlier.model_asked if earlier else "")
            if path.is_file():
                put_in_order(path, [call.answer_id for call in plans[provider]])
                counts[provider] = count_answers(path, file, model)
            elif earlier or provider in models_asked:
                counts[provider] = ProviderCounts(model_asked=model)
    return manifest.model_copy(
        update={
            "providers": counts,
            "answers": sum(each.answers for each in counts.values()),
            "citations": sum(each.citations for each in counts.values()),
            "errors": dict(sorted(Counter(error.kind for error in errors).items())),
        }
    )


def put_in_order(path: Path, answer_ids: Sequence[str]) -> None:
    """Nothing; the answers stand in the order of these ids. The file is not touched where they do already."""
    rank = {answer_id: index for index, answer_id in enumerate(answer_ids)}
    ranks = [rank[answer.answer_id] for answer in read_answers(path)]
    if ranks != sorted(ranks):
        answers = sorted(read_answers(path), key=lambda answer: rank[answer.answer_id])
        write_answers(path, answers)


def count_answers(path: Path, citations: BinaryIO, model_asked: str) -> ProviderCounts:
    """The counts of one provider's file; each occurrence of a citation is written to `citations` as a line."""
    models: Counter[str] = Counter()
    cut_short: Counter[str] = Counter()
    answers = cited = 0
    for stored in read_answers(path):
        answer = read_stored(stored)
        for line in citation_lines(stored, answer):
            citations.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
        answers += 1
        cited += len(stored.citations)
        models[stored.model_version] += 1
        if answer.stop_reason.lower() not in WHOLE:
            cut_short[answer.stop_reason] += 1
    return ProviderCounts(
        model_asked=model_asked,
        models_answered=dict(sorted(models.items())),
        answers=answers,
        citations=cited,
        cut_short=dict(sorted(cut_short.items())),
    )


def citation_lines(stored: StoredAnswer, answer: Answer) -> Iterator[dict[str, object]]:
    """The lines of `citations.jsonl` for one answer: every occurrence, `n` by first appearance of its URL, from 1."""
    numbers = {url: number for number, url in enumerate(stored.citations, start=1)}
    for occurrence in answer.occurrences:
        if occurrence.url in numbers:
            yield {
                "answer_id": stored.answer_id,
                "n": numbers[occurrence.url],
                "url": occurrence.url,
                "title": occurrence.title,
                "start": occurrence.start,
                "end": occurrence.end,
                "cited_text": occurrence.cited_text,
            }
