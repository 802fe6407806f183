"""What holds between the claims, pages and parts of every run; a report of which it does not hold is not written.

Source: pipeline/contracts/research.md#rules.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pipeline.errors import InputError
from pipeline.research.output.layout import LaidOut
from pipeline.research.values import Verified, Written
from pipeline.verifying.values import Checked, Page

_MOST_SHOWN = 5


def check_run(verified: Verified, written: Written, pages: Sequence[Page], laid_out: LaidOut) -> None:
    """Refuse to write a report whose parts do not belong together.

    Raises:
        InputError: what does not hold, in plain words; the run's folder was changed, or this is a fault of citejury.
    """
    texts = {page.url: page.text for page in pages}
    broken = [
        *_broken_claims(verified.claims, texts),
        *_broken_paragraphs(verified, written, texts),
        *_broken_report(written, laid_out),
    ]
    if broken:
        more = f" {len(broken) - _MOST_SHOWN} more are wrong." if len(broken) > _MOST_SHOWN else ""
        raise InputError(
            f"The run's parts do not belong together, so its report is not written. {' '.join(broken[:_MOST_SHOWN])}"
            f"{more} Research under another `--run-id`; if nobody has changed the run's folder, please report this."
        )


def _broken_claims(claims: Sequence[Checked], texts: Mapping[str, str]) -> Iterator[str]:
    """Claims with the id of another, without a quote, or with one that its page does not have at its place."""
    for name, count in Counter(checked.claim.id for checked in claims).items():
        if count > 1:
            yield f"There are {count} claims with the id {name}."
    for checked in claims:
        name = checked.claim.id
        if not checked.claim.quotes:
            yield f"Claim {name} has no quote."
        for quote in (*checked.claim.quotes, *checked.against):
            held = texts.get(quote.url, "")[quote.start : quote.end]
            if not held or held != quote.text:
                yield f"A quote of claim {name} does not stand on {quote.url!r}."


def _broken_paragraphs(verified: Verified, written: Written, texts: Mapping[str, str]) -> Iterator[str]:
    """Paragraphs with sources that were not read or claims that do not hold, and claims that are nowhere or twice."""
    verdicts = {checked.claim.id: checked.verdict for checked in verified.claims}
    for number, paragraph in enumerate(written.paragraphs, start=1):
        if not paragraph.urls:
            yield f"Paragraph {number} cites nothing."
        for url in paragraph.urls:
            if url not in texts:
                yield f"Paragraph {number} cites {url!r}, which the run has not read."
        for name in paragraph.claim_ids:
            if verdicts.get(name) != "supported":
                yield f"Paragraph {number} states claim {name}, which no page supports."
    stated = [name for paragraph in written.paragraphs for name in paragraph.claim_ids]
    told = Counter([*stated, *(checked.claim.id for checked in written.left_out)])
    for name in verdicts:
        if told[name] != 1:
            where = "neither in the report nor among those left out" if not told[name] else "told more than once"
            yield f"Claim {name} is {where}."


def _broken_report(written: Written, laid_out: LaidOut) -> Iterator[str]:
    """Where the report's forms do not have the same paragraphs, claims, sections and sources."""
    report = laid_out.report
    stated = {name for paragraph in written.paragraphs for name in paragraph.claim_ids}
    if stated != {citation.claim_id for citation in report.citations}:
        yield "The claims of the paragraphs and of the report's citations differ."
    if len(report.sections) != len(report.outline):
        yield f"The report has {len(report.outline)} headings and {len(report.sections)} sections."
    if len(laid_out.paragraphs) != len(written.paragraphs):
        yield f"Of {len(written.paragraphs)} paragraphs {len(laid_out.paragraphs)} are laid out."
    if [str(entry.url) for entry in laid_out.citations] != [reference.url for reference in report.references]:
        yield "The cited sources and the report's references differ."
