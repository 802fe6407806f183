"""A finished run on its way to the jury: an answer of CSV v2, a canonical record, and what the verifier says of it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid5

from pipeline.citations.addresses import document_id, source_domain
from pipeline.core.schema import StoredAnswer
from pipeline.csv.file import write_answers
from pipeline.records.citation_form import RESEARCH_RUN, reference_numbers, report_marks
from pipeline.records.run import RESEARCH_RECORDS, ToldRun, record_from_answer, write_records
from pipeline.records.schema import RECORD_NAMESPACE, QueryResponse, join_context
from pipeline.research.artefacts import RunFolder, json_text, write_text
from pipeline.research.contracts import Report, ReportFile, contract_json
from pipeline.research.values import Depth
from pipeline.sources import choose
from pipeline.sources.chunk import page_chunks
from pipeline.verifying.rules import disagreements
from pipeline.verifying.values import Checked, Page, Quote

_OF_CLAIMS = frozenset({"support_present", "unsupported_claim_present", "contradicted_claim_present"})
"""Labels to which a claim that nobody can tell of might say yes."""
VERIFIER = "citejury-verifier"  # The name under which `exports results --judge` compares the verifier with annotators


class FinishedRun(NamedTuple):
    run_id: str
    depth: Depth
    model: str
    created_at: str
    report: Report
    markdown: str
    claims: Sequence[Checked]
    pages: Sequence[Page]


def write_for_jury(folder: RunFolder, run: FinishedRun) -> QueryResponse:
    """The run's canonical record; answer, record and judgement stand in its folder, each whole."""
    answer = _stored_answer(run)
    record = _record_of_run(answer, run)
    write_records(folder.path / RESEARCH_RECORDS, [record])
    write_text(folder.path / "judgements.jsonl", json_text(_verifier_judgement(answer, run), indent=None) + "\n")
    write_answers(folder.path / f"{RESEARCH_RUN}.csv", [answer])
    return record


def _stored_answer(run: FinishedRun) -> StoredAnswer:
    """The run as an answer of CSV v2; what the report says about itself is left out, unless it cites nothing."""
    urls = tuple(reference.url for reference in run.report.references)
    return StoredAnswer(
        narrative_id=run.run_id,
        narrative_type="",
        narrative_prompt=run.report.topic,
        model_name=RESEARCH_RUN,
        model_version=f"{run.model}@{run.depth}",
        answer_id=str(uuid5(RECORD_NAMESPACE, run.run_id)),
        answer_prompt=run.report.topic,
        answer_text="\n\n".join(run.report.sections) if urls else run.markdown,
        answer_raw_json=json.dumps(contract_json(ReportFile(report_json=run.report)), ensure_ascii=False),
        answer_timestamp=run.created_at,
        citations=urls,
        domains=tuple(map(source_domain, urls)),
    )


def _record_of_run(answer: StoredAnswer, run: FinishedRun) -> QueryResponse:
    """The canonical record; a cited page without a chunk in which a quote stands gives its best one."""
    record = record_from_answer(answer, ToldRun(run.run_id))
    pages = list(_cited_pages(answer.citations, run.pages))
    quotes = [quote for checked in _claims_of_report(run) for quote in (*checked.claim.quotes, *checked.against)]
    quotes += [quote for found in disagreements(run.claims) for side in found.sides for quote in side]
    candidates = list(choose.distinct_chunks(pages, ()))
    language = "" if record.language == "und" else record.language
    texts = [candidate.chunk.text for candidate in candidates]
    ranked = [candidates[place] for place in choose.rank_passages(record.query, record.answer, texts, language)]
    wanted = _wanted_places(pages, ranked, quotes)
    passages = tuple(
        choose.passage_of(pages, candidate).model_copy(update={"chunk_rank": rank})
        for rank, candidate in enumerate((each for each in ranked if each.place in wanted), start=1)
    )
    shares = {page.url: page.read_share for page in run.pages if page.url in answer.citations}
    sources = tuple(
        source.model_copy(update={"state": "read", "reason": "page", "read_share": shares[source.url]})
        if source.url in shares
        else source
        for source in record.sources
    )
    return record.model_copy(update={"sources": sources, "chunks": passages, "context_set": join_context(passages)})


def _claims_of_report(run: FinishedRun) -> list[Checked]:
    made = {citation.claim_id for citation in run.report.citations}
    return [checked for checked in run.claims if checked.claim.id in made]


def _cited_pages(urls: Iterable[str], pages: Iterable[Page]) -> Iterator[choose.PageChunks]:
    by_url = {page.url: page for page in pages}
    for page in (by_url[url] for url in urls if url in by_url):
        chunks = page_chunks(page.url, page.text, page.lang, choose.PassageLimits().chunk_tokens)
        yield choose.PageChunks(page.url, document_id(page.url), page.title, chunks)


def _wanted_places(
    pages: Sequence[choose.PageChunks], ranked: Sequence[choose.Candidate], quotes: Sequence[Quote]
) -> set[choose.ChunkPlace]:
    spans: dict[str, list[tuple[int, int]]] = {}
    for quote in quotes:
        spans.setdefault(quote.url, []).append((quote.start, quote.end))
    wanted = {
        candidate.place
        for candidate in ranked
        if any(
            start < (candidate.chunk.end or 0) and end > (candidate.chunk.start or 0)
            for start, end in spans.get(pages[candidate.place.page].url, ())
        )
    }
    served = {place.page for place in wanted}
    for candidate in ranked:
        if candidate.place.page not in served:
            served.add(candidate.place.page)
            wanted.add(candidate.place)
    return wanted


def _verifier_judgement(answer: StoredAnswer, run: FinishedRun) -> dict[str, Any]:
    """A claim of which its pages cannot tell is evidence neither way: labels that hang on it are left out.

    Of the conflicts those count whose other side is on a cited page, for the jury sees no other.
    """
    claims = _claims_of_report(run)
    supported = [checked.score for checked in claims if checked.verdict == "supported"]
    cited = {reference.url for reference in run.report.references}
    contradicted = any(
        checked.verdict == "contradicted" or any(quote.url in cited for quote in checked.against) for checked in claims
    )
    unsupported = contradicted or any(checked.verdict == "not_found" for checked in claims)
    untold = any(checked.verdict == "cannot_tell" for checked in claims)
    open_labels = _OF_CLAIMS if untold else frozenset()
    numbers = numbers_in_order(answer.answer_text)
    labels = {
        "support_present": _label(bool(supported), max(supported, default=1)),
        "unsupported_claim_present": _label(unsupported, 1 if unsupported else min(supported, default=1)),
        "contradicted_claim_present": _label(contradicted, 1),
        "source_cited": _label(bool(numbers), 1),
        "fabricated_source": _label(any(number > len(answer.citations) for number in numbers), 1),
    }
    return {
        "record_uuid": answer.answer_id,
        "task": "grounding",
        "chunk_id": "",
        "labels": {name: label for name, label in labels.items() if label["value"] or name not in open_labels},
        "status": "ok",
        "model": VERIFIER,
    }


def _label(value: bool, certainty: float) -> dict[str, Any]:
    sure = 0.5 + min(max(certainty, 0.0), 1.0) / 2
    return {"value": value, "p_yes": round(sure if value else 1 - sure, 6)}


def numbers_in_order(markdown: str) -> tuple[int, ...]:
    """The numbers of the references in the order in which the text first cites them, as `(C001)` or as `[1]`."""
    return tuple(dict.fromkeys(number for mark in report_marks(markdown) for number in reference_numbers(mark)))
