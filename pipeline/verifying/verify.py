"""A verdict on each sentence of anybody's report: what the pages that it cites say of it, without a model."""

from collections.abc import Iterable
from functools import lru_cache

from pipeline.sources.choosing.shelf import READ, cited_page
from pipeline.sources.store.states import state_of
from pipeline.sources.store.store import Outcome, Store
from pipeline.verifying.claim import check_sentence
from pipeline.verifying.page_text import PageText
from pipeline.verifying.schema import UnresolvedMark, VerifiedReport, VerifiedSentence, VerifiedSource
from pipeline.verifying.submitted import Submitted
from pipeline.verifying.values import ListedSource, Sentence, Verdict

PAGES_HELD = 64
"""Pages whose words are held, the last ones: answers to one question cite the same."""
CITES_NOTHING = "it cites nothing that can be looked up"
NOT_FETCHED = "the pages that it cites were not read"
SOME_UNREAD = "not all of the pages that it cites could be read"


class Reader:
    """The pages that reports cite, as a store has them; without one, no page is read."""

    def __init__(self, store: Store | None) -> None:
        """Nothing is read yet."""
        self.store = store
        self.page = lru_cache(PAGES_HELD)(self.read_page)

    def read_page(self, key: str) -> PageText | None:
        """The text of a page by its key; None where none is held."""
        page = self.store.page(key, with_raw=False) if self.store and key else None
        if page is None or page.reason not in READ or not page.text.strip():
            return None
        return PageText(page.text, page.url, page.lang)

    def outcome(self, url: str) -> Outcome:
        """What became of the page behind a cited URL."""
        cited = cited_page(url, {})
        if cited.reason:
            return Outcome(cited.reason)
        return (self.store.outcome(cited.key) if self.store else None) or Outcome("not_tried")


def cited_keys(submitted: Iterable[Submitted]) -> list[str]:
    """The keys of all pages that sentences cite, each once, in order of first appearance."""
    urls = (source.url for each in submitted for source in each.report.sources if source.sentences)
    return list(dict.fromkeys(key for url in urls if (key := cited_page(url, {}).key)))


def verify_report(submitted: Submitted, reader: Reader) -> VerifiedReport:
    """The report with a verdict on each sentence, and what became of each source."""
    report = submitted.report
    return VerifiedReport(
        answer_id=submitted.answer_id,
        sentences=tuple(verify_sentence(sentence, reader) for sentence in report.sentences),
        unresolved=tuple(UnresolvedMark(**each._asdict()) for each in report.unresolved),
        sources=tuple(verified_source(source, reader) for source in report.sources),
    )


def verify_sentence(sentence: Sentence, reader: Reader) -> VerifiedSentence:
    """What the pages say of the sentence; silence of those that were read decides only where all were read."""
    read = [reader.page(cited_page(url, {}).key) for url in sentence.urls]
    pages = [page for page in read if page]
    if not pages:
        return verified(sentence, "unknown", None, (NOT_FETCHED if sentence.urls else CITES_NOTHING,))
    finding = check_sentence(sentence.text, pages)
    if finding.verdict == "unsupported" and len(pages) < len(read):
        return verified(sentence, "unknown", finding.score, (SOME_UNREAD, *finding.problems))
    return verified(sentence, finding.verdict, finding.score, finding.problems)


def verified(sentence: Sentence, verdict: Verdict, score: float | None, problems: tuple[str, ...]) -> VerifiedSentence:
    """The sentence with its verdict."""
    return VerifiedSentence(
        text=sentence.text,
        citations=sentence.urls,
        verdict=verdict,
        score=None if score is None else round(score, 4),
        problems=problems,
        ids=sentence.ids,
        line=sentence.line,
    )


def verified_source(source: ListedSource, reader: Reader) -> VerifiedSource:
    """The source with what became of its page."""
    reason = reader.outcome(source.url).reason
    return VerifiedSource(**source._asdict(), state=state_of(reason), reason=reason)
