"""What a run folder holds when all calls are settled: rows in order, `citations.jsonl`, and the manifest's counts.

So, too, when its stored bodies were read again by today's rules.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import add
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pipeline.asking.index import Said, put_in_order, read_again, read_index, sync_index
from pipeline.asking.paid_replies import of_no_answer, token_shares
from pipeline.asking.run_folder import MANIFEST, OpenRun, ProviderCounts, RunManifest, read_manifest, write_manifest
from pipeline.asking.run_state import LastStart
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import locked_folder, staged_file
from pipeline.core.schema import PROVIDERS, ErrorLine, Price, ProviderName, StoredAnswer
from pipeline.csv.file import answers_file, rows_as_bytes
from pipeline.providers import get_provider, read_body
from pipeline.providers.cost import Usage, batch_price, cost_of, price_of
from pipeline.providers.http.request import load_body
from pipeline.records.citation_form import CITATIONS, read_stored, resolved_earlier

# The words with which the five say that an answer came to its end, in lower case.
_WHOLE = frozenset({"", "stop", "end_turn", "stop_sequence", "completed", "reason_stop", "tool_calls", "tool_use"})
# Binary sums of decimal prices have a tail of no meaning.
_COST_DIGITS = 8


def summarise_run(
    run: OpenRun, errors: Sequence[ErrorLine], prices: Mapping[str, Price], last: LastStart
) -> RunManifest:
    """Put the rows in order and write `citations.jsonl` anew; gives the manifest with its counts.

    `last` is what this start did, with what was paid beside answers; what its answers cost is added to it.
    """
    for provider in PROVIDERS:
        file = answers_file(run.out, provider)
        if sync_index(file):
            put_in_order(file, (call.answer_id for call in run.every_call(provider)))
    counted, spent = _count_files(run.out, run.manifest, prices, run.answered)
    kinds = dict(sorted(Counter(error.kind for error in errors).items()))
    if run.questions.options:  # nobody is paid for a stored payload
        cost, unpriced = round(last.cost + spent.cost, _COST_DIGITS), last.unpriced + spent.unpriced
        last = last.model_copy(update={"cost": cost, "unpriced": unpriced})
    return counted.model_copy(update={"errors": kinds, "last": last})


def _count_files(
    out: Path, manifest: RunManifest, prices: Mapping[str, Price], kept: Mapping[ProviderName, Collection[str]]
) -> tuple[RunManifest, "_Bill"]:
    """The manifest with the counts of the CSV files, and the bill of all answers but those that were `kept`.

    `citations.jsonl` is derived from the indexes as a whole: no kill can leave a line of it doubled or missing.
    """
    counts: dict[ProviderName, ProviderCounts] = {}
    spent = _Bill()
    shares = token_shares(out)
    targets = resolved_earlier(out / CITATIONS)
    bad: dict[ProviderName, ProviderCounts] = {}
    for each in of_no_answer(out):
        own = ProviderCounts(**{each.counted_as: 1}, **_bill_of(*each.bill(prices))._asdict())
        bad[each.provider] = _together(bad.get(each.provider, ProviderCounts()), own)
    with staged_file(out / CITATIONS) as file:
        for provider in PROVIDERS:
            earlier = manifest.providers.get(provider)
            model = earlier.model_asked if earlier else ""
            if answers_file(out, provider).is_file():
                path, known = answers_file(out, provider), kept.get(provider, ())
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


def _together(counts: ProviderCounts, bad: ProviderCounts) -> ProviderCounts:
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
    """The counts of a provider's file, whose citations are written, and the bill of those not `kept`."""
    models: Counter[str] = Counter()
    cut_short: Counter[str] = Counter()
    unread: Counter[str] = Counter()
    bill, new = _Bill(), _Bill()
    answers = cited = 0
    for line in read_index(path):
        for number, title, start, end, cited_text in line.places:
            url = line.urls[number - 1]
            place = {"title": title, "start": start, "end": end, "cited_text": cited_text}
            # A redirect whose target was found earlier keeps it: the links expire after weeks.
            target = {"resolved_url": targets[url]} if url in targets else {}
            target |= {"longer_url": line.longer[url]} if url in line.longer else {}
            citation = {"answer_id": line.answer_id, "n": number, "url": url, **place, **target}
            citations.write((json.dumps(citation, ensure_ascii=False) + "\n").encode())
        unread.update(line.unread)
        answers += 1
        cited += len(line.urls)
        models[line.model_version] += 1
        price = price_of(prices, line.model_version, manifest.model_of(line, provider))
        own = _bill_of(line.usage, batch_price(price, shares.get(line.answer_id)))
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
        unread=dict(sorted(unread.items())),
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
        return _Bill(*map(add, self, other))


def _bill_of(usage: Usage, price: Price | None) -> _Bill:
    cost = cost_of(usage, price)
    return _Bill(usage.input_tokens, usage.output_tokens, usage.searches, cost or 0.0, int(cost is None))


class Change(NamedTuple):
    """An answer that today's rules read otherwise, as it stood and as it stands now."""

    before: StoredAnswer
    after: StoredAnswer

    def __str__(self) -> str:
        before, after = self.before, self.after
        gone = [url for url in before.citations if url not in after.citations]
        new = [url for url in after.citations if url not in before.citations]
        told = [
            *(["text changed"] if before.answer_text != after.answer_text else []),
            *([f"citations {len(before.citations)} -> {len(after.citations)}"] if gone or new else []),
            *(f"+ {url}" for url in new),
            *(f"- {url}" for url in gone),
        ]
        what = "; ".join(told) or "order, domains or search results changed"
        return f"{after.model_name} {after.narrative_id!r} ({after.answer_id}): {what}"


class Reparsed(NamedTuple):
    """How many answers were read again; how many of them changed; how many no reader can read, left as they are."""

    answers: int = 0
    changed: int = 0
    unreadable: int = 0
    citations_changed: bool = False


def reparse_run(
    run: Path, prices: Mapping[str, Price], changed: Callable[[Change], None] = lambda change: None
) -> Reparsed:
    """Read every stored body again; each file is replaced as a whole, or not touched where it is right.

    `changed` hears of every answer that is different now. `citations.jsonl` and the manifest's counts follow. An
    InputError where the folder holds no run, an OutputError where another process writes to it.
    """
    if not (run / MANIFEST).is_file():
        raise InputError(f"{str(run)!r} holds no `{MANIFEST}` of a run; name one that `pipeline ask` wrote.")
    tally: Counter[str] = Counter()
    with locked_folder(run, "pipeline check --reparse"):
        manifest = read_manifest(run)
        for provider in PROVIDERS:
            path = answers_file(run, provider)
            if path.is_file():
                read_again(path, partial(_reread, provider=provider, tally=tally, changed=changed))
        before = (run / CITATIONS).read_bytes() if (run / CITATIONS).is_file() else b""
        counted, _ = _count_files(run, manifest, prices, {})  # the errors are left as they are
        if counted != manifest:
            write_manifest(run, counted)
        citations_changed = (run / CITATIONS).read_bytes() != before
    return Reparsed(tally["answers"], tally["changed"], tally["unreadable"], citations_changed)


def _reread(
    stored: StoredAnswer, provider: ProviderName, tally: Counter[str], changed: Callable[[Change], None]
) -> Said:
    """What today's rules make of the answer's body: the same value where nothing is different or nobody can read it."""
    tally["answers"] += 1
    usage = Usage()
    try:
        body = load_body(stored.answer_raw_json)
        usage = get_provider(provider).usage(body)
        answer = read_body(provider, body)
    except ProviderError:
        tally["unreadable"] += 1
        return Said(stored, read_stored(stored), usage)
    after = stored.model_copy(
        update={
            "answer_text": answer.text,
            "citations": answer.citations,
            "domains": answer.domains,
            "search_results": answer.search_results,
        }
    )
    if after == stored or rows_as_bytes(after) == rows_as_bytes(stored):
        return Said(stored, answer, usage)
    tally["changed"] += 1
    changed(Change(stored, after))
    return Said(after, answer, usage)
