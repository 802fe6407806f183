"""What a run folder holds when all calls are settled: rows in order, `citations.jsonl`, and the manifest's counts."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pipeline.asking._ledger import token_shares
from pipeline.asking._paused import PAUSING, unused_bodies
from pipeline.asking._rewrite import put_in_order
from pipeline.asking._unread import paid_in_vain
from pipeline.asking.index import IndexLine, read_index, sync_index
from pipeline.asking.run_folder import CITATIONS, LastStart, OpenRun, ProviderCounts, RunManifest, csv_file
from pipeline.files import staged_file
from pipeline.providers.cost import Usage, batch_price, cost_of, price_of
from pipeline.recording.run import resolved_earlier
from pipeline.schema import PROVIDERS, ErrorLine, Price, ProviderName

# The words with which the five say that an answer came to its end, in lower case.
_WHOLE = frozenset({"", "stop", "end_turn", "stop_sequence", "completed", "reason_stop", "tool_calls", "tool_use"})
# Binary sums of decimal prices have a tail of no meaning.
_COST_DIGITS = 8
_as_json = json.JSONEncoder(ensure_ascii=False).encode


def summarise_run(
    run: OpenRun, errors: Sequence[ErrorLine], prices: Mapping[str, Price], last: LastStart
) -> RunManifest:
    """Put the rows in order and write `citations.jsonl` anew; gives the manifest with its counts.

    `last` is what this start did, with what was paid beside answers; what its answers cost is added to it.
    """
    for provider in PROVIDERS:
        file = csv_file(run.out, provider)
        if sync_index(file):
            put_in_order(file, (call.answer_id for call in run.every_call(provider)))
    counted, spent = _count_files(run.out, run.manifest, prices, run.answered)
    kinds = dict(sorted(Counter(error.kind for error in errors).items()))
    told = last
    if run.questions.options:  # nobody is paid for a stored payload
        cost, unpriced = round(last.cost + spent.cost, _COST_DIGITS), last.unpriced + spent.unpriced
        told = last.model_copy(update={"cost": cost, "unpriced": unpriced})
    return counted.model_copy(update={"errors": kinds, "last": told})


def count_run(out: Path, manifest: RunManifest, prices: Mapping[str, Price]) -> RunManifest:
    """The manifest with the counts of the CSV files, whose indexes fit; its errors are left as they are."""
    return _count_files(out, manifest, prices, {})[0]


def _count_files(
    out: Path, manifest: RunManifest, prices: Mapping[str, Price], kept: Mapping[ProviderName, Collection[str]]
) -> tuple[RunManifest, "_Bill"]:
    """The manifest with the counts of the CSV files, and the bill of all answers but those that were `kept`.

    `citations.jsonl` is derived from their indexes as a whole, so that no kill can leave a line of it doubled or
    missing.
    """
    counts: dict[ProviderName, ProviderCounts] = {}
    spent = _Bill()
    shares = token_shares(out)
    targets = resolved_earlier(out / CITATIONS)
    bad = _bad_counts(out, prices)
    with staged_file(out / CITATIONS) as file:
        for provider in PROVIDERS:
            earlier = manifest.providers.get(provider)
            model = earlier.model_asked if earlier else ""
            if csv_file(out, provider).is_file():
                path, known = csv_file(out, provider), kept.get(provider, ())
                found, bill = _count_answers(provider, path, file, targets, manifest, prices, shares, known)
                counts[provider] = found.model_copy(update={"model_asked": model})
                spent = spent.together(bill)
            elif earlier:
                counts[provider] = ProviderCounts(model_asked=model)
            if provider in bad:
                counts[provider] = _together(counts.get(provider, ProviderCounts()), bad[provider])
    changes = {
        "providers": counts,
        "answers": sum(each.answers for each in counts.values()),
        "citations": sum(each.citations for each in counts.values()),
        "cost": round(sum(each.cost for each in counts.values()), _COST_DIGITS),
    }
    return manifest.model_copy(update=changes), spent


def _bad_counts(out: Path, prices: Mapping[str, Price]) -> dict[ProviderName, ProviderCounts]:
    """The counts of what was paid for and is in no answer, by provider: unreadable replies, bodies of paused turns."""
    counts: dict[ProviderName, ProviderCounts] = {}
    for each in paid_in_vain(out):
        own = ProviderCounts(bad_replies=1, **_bill_of(*each.bill(prices))._asdict())
        counts[each.provider] = _together(counts.get(each.provider, ProviderCounts()), own)
    for body in unused_bodies(out):
        own = ProviderCounts(paused_bodies=1, **_bill_of(*body.bill(prices))._asdict())
        counts[PAUSING] = _together(counts.get(PAUSING, ProviderCounts()), own)
    return counts


def _together(counts: ProviderCounts, bad: ProviderCounts) -> ProviderCounts:
    """The counts, and those of what is in no answer added to them."""
    fields = ("bad_replies", "paused_bodies", "input_tokens", "output_tokens", "searches", "unpriced")
    sums = {field: getattr(counts, field) + getattr(bad, field) for field in fields}
    return counts.model_copy(update={**sums, "cost": round(counts.cost + bad.cost, _COST_DIGITS)})


def _count_answers(
    provider: ProviderName,
    path: Path,
    citations: BinaryIO,
    targets: Mapping[str, str],
    manifest: RunManifest,
    prices: Mapping[str, Price],
    shares: Mapping[str, float],
    kept: Collection[str],
) -> "tuple[ProviderCounts, _Bill]":
    """The counts of one provider's file, and the bill of its answers but those that were `kept`.

    `shares` are those of their price that tokens cost in batches, by answer.
    Each occurrence of a citation is written to `citations` as a line.
    """
    models: Counter[str] = Counter()
    cut_short: Counter[str] = Counter()
    bill, new = _Bill(), _Bill()
    answers = cited = 0
    for line in read_index(path):
        for citation in _citation_lines(line, targets):
            citations.write((_as_json(citation) + "\n").encode())
        answers += 1
        cited += len(line.urls)
        models[line.model_version] += 1
        price = price_of(prices, line.model_version, manifest.model_of(line, provider))
        own = _bill_of(line.usage, batch_price(price, shares.get(line.answer_id, 1.0)))
        bill = bill.together(own)
        if line.answer_id not in kept:
            new = new.together(own)
        if line.stop_reason.lower() not in _WHOLE:
            cut_short[line.stop_reason] += 1
    counts = ProviderCounts(
        models_answered=dict(sorted(models.items())),
        answers=answers,
        citations=cited,
        cut_short=dict(sorted(cut_short.items())),
        **bill._replace(cost=round(bill.cost, _COST_DIGITS))._asdict(),
    )
    return counts, new


class _Bill(NamedTuple):
    """What several answers took and cost; `unpriced` are those whose cost is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    searches: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def together(self, other: "_Bill") -> "_Bill":
        """Both bills as one."""
        return _Bill(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.searches + other.searches,
            self.cost + other.cost,
            self.unpriced + other.unpriced,
        )


def _bill_of(usage: Usage, price: Price | None) -> _Bill:
    """The bill of one answer."""
    cost = cost_of(usage, price)
    return _Bill(usage.input_tokens, usage.output_tokens, usage.searches, cost or 0.0, int(cost is None))


def _citation_lines(line: IndexLine, targets: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """The lines of `citations.jsonl` for one answer: every occurrence, `n` by first appearance of its URL, from 1.

    A redirect whose target was found earlier keeps it: the links expire after weeks.
    """
    for number, title, start, end, cited_text in line.places:
        url = line.urls[number - 1]
        yield {
            "answer_id": line.answer_id,
            "n": number,
            "url": url,
            "title": title,
            "start": start,
            "end": end,
            "cited_text": cited_text,
            **({"resolved_url": targets[url]} if url in targets else {}),
        }
