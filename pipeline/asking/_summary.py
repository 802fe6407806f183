"""What a run folder holds when all calls are settled: rows in order, `citations.jsonl`, and the manifest's counts."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pipeline.asking.run_folder import CITATIONS, OpenRun, ProviderCounts, RunManifest, csv_file
from pipeline.csv_v2.file import put_in_order, read_answers
from pipeline.errors import ProviderError
from pipeline.providers.body import load_body
from pipeline.providers.cost import Usage, cost_of, price_of, usage_of
from pipeline.recording.run import read_stored, resolved_earlier
from pipeline.schema import PROVIDERS, Answer, ErrorLine, Price, ProviderName, StoredAnswer
from pipeline.staging import staged_file

# The words with which the five say that an answer came to its end, in lower case.
_WHOLE = frozenset({"", "stop", "end_turn", "stop_sequence", "completed", "reason_stop", "tool_calls", "tool_use"})
# Binary sums of decimal prices have a tail of no meaning.
_COST_DIGITS = 8


def summarise_run(run: OpenRun, errors: Sequence[ErrorLine], prices: Mapping[str, Price]) -> RunManifest:
    """Put the rows in order and write `citations.jsonl` anew; gives the manifest with its counts."""
    for provider in PROVIDERS:
        if csv_file(run.out, provider).is_file():
            rank = {call.answer_id: index for index, call in enumerate(run.every_call(provider))}
            put_in_order(csv_file(run.out, provider), rank)
    counted = count_run(run.out, run.manifest, prices)
    return counted.model_copy(update={"errors": dict(sorted(Counter(error.kind for error in errors).items()))})


def count_run(out: Path, manifest: RunManifest, prices: Mapping[str, Price]) -> RunManifest:
    """The manifest with the counts of the CSV files; its errors are left as they are.

    `citations.jsonl` is derived from the files as a whole, so that no kill can leave a line of it doubled or missing.
    """
    counts: dict[ProviderName, ProviderCounts] = {}
    targets = resolved_earlier(out / CITATIONS)
    with staged_file(out / CITATIONS) as file:
        for provider in PROVIDERS:
            earlier = manifest.providers.get(provider)
            model = earlier.model_asked if earlier else ""
            if csv_file(out, provider).is_file():
                counts[provider] = _count_answers(csv_file(out, provider), file, targets, model, prices)
            elif earlier:
                counts[provider] = ProviderCounts(model_asked=model)
    return manifest.model_copy(
        update={
            "providers": counts,
            "answers": sum(each.answers for each in counts.values()),
            "citations": sum(each.citations for each in counts.values()),
            "cost": round(sum(each.cost for each in counts.values()), _COST_DIGITS),
        }
    )


def _count_answers(
    path: Path, citations: BinaryIO, targets: Mapping[str, str], model_asked: str, prices: Mapping[str, Price]
) -> ProviderCounts:
    """The counts of one provider's file; each occurrence of a citation is written to `citations` as a line."""
    models: Counter[str] = Counter()
    cut_short: Counter[str] = Counter()
    bill = _Bill()
    answers = cited = 0
    for stored in read_answers(path):
        answer = read_stored(stored)
        for line in _citation_lines(stored, answer, targets):
            citations.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
        answers += 1
        cited += len(stored.citations)
        models[stored.model_version] += 1
        bill = bill.plus(_stored_usage(stored), price_of(prices, stored.model_version, model_asked))
        if answer.stop_reason.lower() not in _WHOLE:
            cut_short[answer.stop_reason] += 1
    return ProviderCounts(
        model_asked=model_asked,
        models_answered=dict(sorted(models.items())),
        answers=answers,
        citations=cited,
        cut_short=dict(sorted(cut_short.items())),
        **bill._replace(cost=round(bill.cost, _COST_DIGITS))._asdict(),
    )


class _Bill(NamedTuple):
    """What several answers took and cost; `unpriced` are those whose cost is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    searches: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def plus(self, usage: Usage, price: Price | None) -> "_Bill":
        """The bill with one more answer on it."""
        cost = cost_of(usage, price)
        return _Bill(
            self.input_tokens + usage.input_tokens,
            self.output_tokens + usage.output_tokens,
            self.searches + usage.searches,
            self.cost + (cost or 0.0),
            self.unpriced + (cost is None),
        )


def _stored_usage(stored: StoredAnswer) -> Usage:
    """The usage that the stored payload states; none where it cannot be read, as in old files."""
    try:
        return usage_of(load_body(stored.answer_raw_json))
    except ProviderError:
        return Usage()


def _citation_lines(stored: StoredAnswer, answer: Answer, targets: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """The lines of `citations.jsonl` for one answer: every occurrence, `n` by first appearance of its URL, from 1.

    A redirect whose target was found earlier keeps it: the links expire after weeks.
    """
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
                **({"resolved_url": targets[occurrence.url]} if occurrence.url in targets else {}),
            }
