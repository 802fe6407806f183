"""What `citejury pipeline verify` tells of a report."""

from pipeline.records import SourceState
from pipeline.schema import Frozen
from pipeline.verifying.values import Nowhere, Verdict


class VerifiedSentence(Frozen):
    """One sentence of the report, or a row of a table, held against the pages that it cites."""

    text: str
    """Its words, without citation marks and Markdown."""
    citations: tuple[str, ...]
    """Canonical URLs that it cites, distinct, in order; empty where it cites nothing that can be looked up."""
    verdict: Verdict
    """What the pages say of it; `unknown` where it cites none, or none that decides was read."""
    score: float | None
    """Chance, from 0 to 1, that the pages support at least a part of it; null where no page was read."""
    problems: tuple[str, ...]
    """Why it is not supported, in words; empty where it is."""
    ids: tuple[str, ...]
    """The numbers, `C001` and footnotes of its marks; links have none."""
    line: int
    """Line of the report, or of the answer's text, on which it begins; counted from 1."""


class UnresolvedMark(Frozen):
    """What stands where a citation should and leads nowhere."""

    id: str
    """The number, `C001`, footnote or URL."""
    reason: Nowhere
    """`no_entry`: no source list has it. `no_url`: its entry names no URL. `not_a_url`: no http or https URL."""
    line: int
    """Line of the first sentence that has it, counted from 1."""
    sentences: int
    """How many sentences have it."""


class VerifiedSource(Frozen):
    """One source of the report and what became of its page."""

    url: str
    """Canonical URL."""
    title: str
    """Title as the report gives it; empty where it gives none."""
    ids: tuple[str, ...]
    """Its numbers in the report's source lists; empty where the text links to it."""
    sentences: int
    """How many sentences cite it; 0 for one that is listed only."""
    state: SourceState
    """`read`, `unread`, `gone`, `unresolved`, or `unfetched` where nobody tried."""
    reason: str
    """Why it is in this state, a word of `pipeline.sources.store.states` such as `page` or `robots`."""


class VerifiedReport(Frozen):
    """A report, or the text of one answer, with a verdict on each sentence."""

    answer_id: str | None = None
    """The answer's id in a CSV file; left out for a report in Markdown."""
    sentences: tuple[VerifiedSentence, ...]
    """Every sentence in order."""
    unresolved: tuple[UnresolvedMark, ...]
    """Marks that lead nowhere, in order of first appearance."""
    sources: tuple[VerifiedSource, ...]
    """Every source, in order of its first citation, uncited ones at the end."""

    @property
    def holds(self) -> bool:
        """Whether every mark leads somewhere and no page speaks against a sentence or is silent on it."""
        return not self.unresolved and not any(each.verdict in FAILING for each in self.sentences)


FAILING: tuple[Verdict, ...] = ("unsupported", "contradicted")
