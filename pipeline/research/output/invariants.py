"""What must hold between the contracts of one run (seed 004 §4): each function gives what breaks its rule."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from pipeline.recording.report_marks import read_marks
from pipeline.research.contracts import Citation, Claim, Report
from pipeline.sources.schema import Chunk, Document


def chunks_without_document(chunks: Iterable[Chunk], documents: Iterable[Document]) -> tuple[Chunk, ...]:
    """The chunks whose document is none of these, in their order; empty where all is well."""
    known = {document.url for document in documents}
    return tuple(chunk for chunk in chunks if chunk.doc_url not in known)


def repeated_claim_ids(claims: Iterable[Claim]) -> tuple[str, ...]:
    """The ids that more than one claim has, in order of first appearance; empty where all is well."""
    return tuple(claim_id for claim_id, count in Counter(claim.id for claim in claims).items() if count > 1)


def uncited_claims(
    claims: Iterable[Claim], citations: Iterable[Citation], obvious: Collection[str] = ()
) -> tuple[Claim, ...]:
    """The claims for which no citation names a URL, in their order; those whose ids are `obvious` need none."""
    cited = {citation.claim_id for citation in citations if citation.urls}
    return tuple(claim for claim in claims if claim.id not in cited and claim.id not in obvious)


def numbers_in_order(markdown: str) -> tuple[int, ...]:
    """The numbers of the references in the order in which the text first cites them, as `(C001)` or as `[1]`."""
    return tuple(dict.fromkeys(number for mark in read_marks(markdown) for number in mark.numbers))


def references_out_of_order(report: Report) -> tuple[int, ...]:
    """The numbers in the order in which the sections first cite them, where that is not 1 to N; empty where it is."""
    found = numbers_in_order("\n".join(report.sections))
    return () if found == tuple(reference.n for reference in report.references) else found


def dangling_citations(report: Report) -> tuple[str, ...]:
    """The cited URLs that are none of the references, in order of first appearance; empty where all is well."""
    known = {reference.url for reference in report.references}
    cited: Sequence[str] = [url for citation in report.citations for url in citation.urls]
    return tuple(dict.fromkeys(url for url in cited if url not in known))
