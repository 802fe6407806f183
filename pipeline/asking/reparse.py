"""Answers of a run read again from their stored bodies, after a rule of reading was mended; nobody is asked."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pipeline.asking._rewrite import Said, read_again
from pipeline.asking._summary import count_run
from pipeline.asking.run_folder import CITATIONS, MANIFEST, csv_file, locked_folder, read_manifest, write_manifest
from pipeline.csv_v2.file import rows_as_bytes
from pipeline.errors import InputError, ProviderError
from pipeline.providers import get_provider, read_body
from pipeline.providers.cost import Usage
from pipeline.providers.http.body import load_body
from pipeline.recording.run import read_stored
from pipeline.schema import PROVIDERS, Price, ProviderName, StoredAnswer


class Change(NamedTuple):
    """An answer that today's rules read otherwise, as it stood and as it stands now."""

    before: StoredAnswer
    after: StoredAnswer

    def __str__(self) -> str:
        """One line: whose answer, and what is different."""
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

    `changed` hears of every answer that is different now. `citations.jsonl` and the manifest's counts follow.

    Raises:
        InputError: the folder holds no run, or a CSV that cannot be read.
        OutputError: another process writes to it, or its manifest is none.
    """
    if not (run / MANIFEST).is_file():
        raise InputError(f"{str(run)!r} holds no `{MANIFEST}` of a run; name one that `pipeline ask` wrote.")
    tally: Counter[str] = Counter()
    with locked_folder(run, "pipeline reparse"):
        manifest = read_manifest(run)
        for provider in PROVIDERS:
            path = csv_file(run, provider)
            if path.is_file():
                read_again(path, partial(_reread, provider=provider, tally=tally, changed=changed))
        before = _read_bytes(run / CITATIONS)
        counted = count_run(run, manifest, prices)
        if counted != manifest:
            write_manifest(run, counted)
        citations_changed = _read_bytes(run / CITATIONS) != before
    return Reparsed(tally["answers"], tally["changed"], tally["unreadable"], citations_changed)


def _reread(
    stored: StoredAnswer, provider: ProviderName, tally: Counter[str], changed: Callable[[Change], None]
) -> Said:
    """What today's rules make of the answer's body; the answer is the same value where nothing is different.

    Where no reader can read the body, it stays as it is.
    """
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


def _read_bytes(path: Path) -> bytes:
    """The file's bytes; none where it is missing."""
    return path.read_bytes() if path.is_file() else b""
