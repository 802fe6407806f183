"""Reports as they are read, claims and pages as they are checked, and the output of `citejury pipeline verify`."""

from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator

from pipeline.citations.marks import Mark
from pipeline.core.schema import Frozen
from pipeline.records.causes import Archived, SourceState
from pipeline.sources.headings import Heading

Verdict = Literal["supported", "contradicted", "not_found", "cannot_tell"]
_EARLIER_WORDS = {"partial": "cannot_tell", "unknown": "cannot_tell", "unsupported": "not_found"}
StoredVerdict = Annotated[
    Verdict, BeforeValidator(lambda word: _EARLIER_WORDS.get(word, word) if isinstance(word, str) else word)
]
"""A verdict as it is read again: those that runs and files of earlier versions hold in the words of today."""
DecidedBy = Literal["rules", "model"]
ClaimType = Literal["fact", "estimate", "opinion"]

UnresolvedReason = Literal["no_entry", "no_url", "not_a_url"]
"""Why a mark leads nowhere: no source list has its number, the entry names no URL, or its URL is no http(s) one."""


class CitedSentence(NamedTuple):
    """One sentence with its marks and links in order, not yet looked up; one without text only lists sources."""

    text: str
    marks: tuple[Mark, ...]
    line: int
    shared: tuple[Mark, ...] = ()
    """The marks at the end of its paragraph or in its table's head, where it has none of its own."""
    is_listing: bool = False  # Whether it is words of a source list


class Sentence(NamedTuple):
    text: str  # Its words, without citation marks, Markdown and URLs; cells of a row are joined by ` | `
    urls: tuple[str, ...]
    """Canonical URLs that it cites, distinct, in order; empty where it cites nothing that can be looked up."""
    ids: tuple[str, ...]
    """Numbers, `C001` and names of footnotes that its marks hold, distinct, in order; links have none."""
    line: int  # Line of the report on which it begins, counted from 1
    paragraph_urls: tuple[str, ...]
    """What it cites where marks at a paragraph's end count for all sentences without a mark; else the same."""


class ListedSource(Frozen):
    """One source of the report."""

    url: str
    """Canonical URL."""
    title: str
    """Title as the report gives it; empty where it gives none."""
    ids: tuple[str, ...]
    """Its numbers in the report's source lists; empty where the text links to it."""
    sentences: int
    """How many sentences cite it; 0 for one that is listed only."""


class UnresolvedMark(Frozen):
    """What stands where a citation should and leads nowhere."""

    id: str
    """The number, `C001`, footnote or URL."""
    reason: UnresolvedReason
    """`no_entry`: no source list has it. `no_url`: its entry names no URL. `not_a_url`: no http or https URL."""
    line: int
    """Line of the first sentence that has it, counted from 1."""
    sentences: int
    """How many sentences have it."""


class ReadReport(NamedTuple):
    """A report as far as its citations go."""

    sentences: tuple[Sentence, ...]  # Every sentence of the body in order; headings, code and source lists have none
    sources: tuple[ListedSource, ...]
    """Every source that is cited or listed, each URL once, in order of its first citation; uncited ones at the end."""
    unresolved: tuple[UnresolvedMark, ...]
    without_url: int = 0  # Entries and lines of its source lists that name a source without a URL


class Page(NamedTuple):
    """One page that was read; title and language are empty where they are not known."""

    url: str
    title: str
    site: str
    lang: str
    text: str
    fetched_at: str
    headings: tuple[Heading, ...] = ()
    changed: str = ""
    """Day on which its server says that it last changed, ISO 8601; empty where it says none, or the day it was read."""
    read_share: float | None = None


class Quote(NamedTuple):
    """A verbatim range of a stored page."""

    url: str
    text: str  # `page.text[start:end]`
    start: int
    end: int


class Decided(NamedTuple):
    verdict: Verdict
    by: DecidedBy
    problems: tuple[str, ...]
    quotes: tuple[Quote, ...] = ()
    set_aside: str = ""  # Why a model's word is no use; empty where it is, or where none was asked


class Claim(NamedTuple):
    """One statement that the report may make."""

    id: str  # `c1`, `c2` …, unique in the run
    text: str
    section: int
    quotes: tuple[Quote, ...]  # What it rests on; at least one
    type: ClaimType = "fact"
    relevance: float | None = None
    """From 0 to 1: how far it answers its section's question; None in runs of earlier versions."""


class Checked(NamedTuple):
    claim: Claim
    verdict: StoredVerdict
    score: float
    problems: tuple[str, ...] = ()
    supporters: tuple[str, ...] = ()  # Canonical URLs of all pages that support it, the cited ones first
    against: tuple[Quote, ...] = ()


class Paragraph(NamedTuple):
    section: int
    """Index of its section; -1 in the answer at the head, the number of sections in what sources disagree about."""
    text: str
    claim_ids: tuple[str, ...]  # The claims that it states, in order; empty where it only says who says what
    urls: tuple[str, ...]  # Canonical URLs of the pages that it cites, in order of first use; never empty
    disputed_ids: tuple[str, ...] = ()
    """The claims of which it tells that a page says the opposite; empty in runs of earlier versions."""
    heading: str = ""
    """What stands above it: of a passage its place and the words found; empty where a section's heading is enough."""


class PageQuote(Frozen):
    """Words of a page on which a verdict rests, or that come nearest."""

    url: str
    """Canonical URL of the page."""
    text: str
    """The words as the page has them."""
    start: int
    """Where they begin in the page's stored text: the first code point."""
    end: int
    """The code point after the last one."""


class Reading(Frozen):
    """What pages say of a sentence by one way to find its marks."""

    citations: tuple[str, ...]
    """Canonical URLs that it cites, distinct, in order; empty where it cites nothing that can be looked up."""
    verdict: StoredVerdict
    """What the pages say of it; `supported` by `rules` is in the page's own words."""
    score: float | None
    """From 0 to 1, for ranking, no chance: how much of its words they have; 0 where `contradicted`; null unread."""
    problems: tuple[str, ...]
    """Why it is not supported, in words; empty where it is."""
    by: DecidedBy = "rules"
    """Who decided: the `rules`, or the `model` that was asked."""
    quotes: tuple[PageQuote, ...] = ()
    """What the model's verdict rests on: at most three quotes, each of which is there; empty for `rules`."""
    nearest: tuple[PageQuote, ...] = ()
    """The page sentences that contradict it or come nearest, the best first, at most three; empty where `supported`."""


class _SentenceText(Frozen):
    """What stands first in a verified sentence."""

    text: str
    """Its words, without citation marks and Markdown."""


class VerifiedSentence(Reading, _SentenceText):
    """One sentence of the report, or a row of a table, held against the pages that it cites."""

    ids: tuple[str, ...]
    """The numbers, `C001` and footnotes of its marks; links have none."""
    line: int
    """Line of the report, or of the answer's text, on which it begins; counted from 1."""
    by_paragraph: Reading
    """The same where marks at a paragraph's end cover the paragraph; equal where it has marks of its own."""


class VerifiedSource(ListedSource):
    """One source of the report and what became of its page."""

    state: SourceState
    """`read`, `unread`, `unreached`, `gone`, `no_such_site`, `no_address`, or `unfetched` where nobody tried."""
    reason: str
    """Why it is in this state, a word of `pipeline.records.causes` such as `page` or `robots`."""
    archived: Archived = ""
    """Of one that is `gone`, what an archive says (`--archive`): `seen` there once, `never`, or `unknown`; empty where
    none was asked."""


class Uncited(Frozen):
    """The shares, from 0 to 1, of a report's sentences that cite nothing that can be looked up."""

    by_sentence: float
    """Where a mark covers the sentence that it stands in or behind."""
    by_paragraph: float
    """Where marks at a paragraph's end cover all of its sentences without a mark."""
    by_author: int = 0
    """How many of the sentences without a mark cite by author and year, such as `(Smith, 2020)`, without a link."""
    sources_without_url: int = 0
    """How many entries and lines of source lists name a source without a URL; they are no sentences."""


class VerifiedReport(Frozen):
    """A report, or the text of one answer, with a verdict on each sentence."""

    answer_id: str | None = None
    """The answer's id in a CSV file; left out for a report in Markdown."""
    sentences: tuple[VerifiedSentence, ...]
    """Every sentence in order."""
    uncited: Uncited | None
    """How many of them cite nothing, by both readings; null where there is no sentence."""
    unresolved: tuple[UnresolvedMark, ...]
    """Marks that lead nowhere, in order of first appearance."""
    sources: tuple[VerifiedSource, ...]
    """Every source, in order of its first citation, uncited ones at the end."""

    @property
    def holds(self) -> bool:
        """Whether every mark leads somewhere, and pages support every sentence that cites some by either reading."""
        read = [each.by_paragraph for each in self.sentences]  # a sentence with marks of its own is the same in both
        return not self.unresolved and all(each.verdict == "supported" for each in read if each.citations)
