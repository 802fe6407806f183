"""`final/verification.md`: what was checked in a run, what was left out of its report and why, for people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.research.output.layout import link_to, plain_markdown
from pipeline.research.values import Verified, Written
from pipeline.verifying.disagreement import Disagreement, disagreements
from pipeline.verifying.scores import Scores, single_source
from pipeline.verifying.values import Checked, Page, Quote, Verdict

_MOST_SHOWN = 300
"""Characters of a claim or quote that are shown."""
_MOST_LISTED = 200
"""Claims of one list; how many more there are stands below it."""
_VERDICT_MEANINGS: dict[Verdict, str] = {
    "supported": "its pages say it",
    "cannot_tell": "it cannot be told from its pages",
    "not_found": "its pages do not say it",
    "contradicted": "its pages say otherwise",
}
_HOW = (
    "Each claim was held against the stored text of the pages that it cites: quotes word for word, numbers and dates "
    "beside the sentences that come nearest, names on the page, and how much of its words these sentences have. "
    "Words tell nothing of what a page implies or of who is right: where pages differ, both sides stand below."
)


class RunNotes(NamedTuple):
    """What a reader of `verification.md` is told beside the claims."""

    topic: str
    """What was researched."""
    stop_reason: str = ""
    """Why the run ended early; empty where it did not."""
    notes: Sequence[str] = ()
    """How it went, in whole sentences."""
    audit: Sequence[str] = ()
    """What the audit found wrong in the report, in whole sentences; empty where it passed."""
    weaker: Sequence[tuple[str, Verdict]] = ()
    """The report's sentences that the words of their pages do not support, with what they say of each."""


def verification_markdown(
    about: RunNotes,
    verified: Verified,
    written: Written,
    pages: Sequence[Page],
    cids: Mapping[str, str],
    scores: Scores,
) -> str:
    """The file's text; `cids` are the report's citation ids by URL. Text of pages and models is escaped."""
    sources = {page.url: _named_source(page, cids.get(page.url, "")) for page in pages}
    sites = {page.url: page.site for page in pages}
    stated = {claim_id for paragraph in written.paragraphs for claim_id in paragraph.claim_ids}
    alone = [each for each in single_source(verified.claims, sites) if each.claim.id in stated]
    found = disagreements(verified.claims)
    blocks = [
        f"# Verification: {plain_markdown(about.topic)}",
        _HOW,
        "## Counts",
        _table(("what", "count"), _counts(verified, stated, pages, alone, len(found), about.stop_reason)),
        "## Citations of the report",
        _table(("score", "value", "meaning"), _score_rows(scores)),
        "## Audit",
        _bullets(about.audit, "The report passed: every paragraph ends in its citations, and all of them resolve."),
        "## Stated in other words than the pages'",
        _weaker_list(about.weaker),
        "## Left out of the report",
        _left_out_table(written.left_out, stated),
        "## Conflicts",
        *(_conflict_block(each, verified.claims, sources) for each in found[:_MOST_LISTED]),
        "" if found else "No page that was read says otherwise of a claim, as far as words tell.",
        "## Claims with one source",
        _single_source_list(alone, sources),
        "## Notes",
        _bullets(about.notes, "None."),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _counts(
    verified: Verified,
    stated: set[str],
    pages: Sequence[Page],
    alone: Sequence[Checked],
    disagreeing: int,
    stop_reason: str,
) -> list[tuple[str, str]]:
    verdicts = Counter(each.verdict for each in verified.claims)
    rows = [("claims checked", str(len(verified.claims)))]
    rows += [(f"{verdict}: {meaning}", str(verdicts[verdict])) for verdict, meaning in _VERDICT_MEANINGS.items()]
    rows += [
        ("claims in the report", str(len(stated))),
        ("of these from one site only", str(len(alone))),
        ("disagreements between pages", str(disagreeing)),
        ("pages read", str(len(pages))),
        ("sites", str(len({page.site for page in pages}))),
        ("sections with a supported claim", _share(verified.coverage)),
        ("stopped early by", plain_markdown(stop_reason) or "nothing"),
    ]
    return rows


def _score_rows(scores: Scores) -> list[tuple[str, str, str]]:
    effective = f"{scores.effective} of {scores.read} citations that could be read are carried by their page"
    return [
        (
            "citation recall (ALCE)",
            _share(scores.recall),
            f"{scores.supported} of {scores.sentences} sentences supported",
        ),
        (
            "citation precision (ALCE)",
            _share(scores.precision),
            f"{scores.precise} of {scores.citations} citations needed",
        ),
        ("citation accuracy (FACT)", _share(scores.accuracy), effective),
        ("effective citations (FACT)", str(scores.effective), "citations carried by their page alone"),
    ]


def _weaker_list(weaker: Sequence[tuple[str, Verdict]]) -> str:
    """The sentences of the report that words alone do not settle."""
    lines = [f"- {_shown(text)} ({verdict}: {_VERDICT_MEANINGS[verdict]})" for text, verdict in weaker]
    if not lines:
        return "None: the words of the cited pages support every sentence."
    return "\n".join(lines[:_MOST_LISTED]) + _more(len(lines))


def _left_out_table(left_out: Sequence[Checked], stated: set[str]) -> str:
    """What is not in the report, with the reasons."""
    rows = [
        (
            plain_markdown(each.claim.id),
            _shown(each.claim.text),
            each.verdict,
            _shown("; ".join(each.problems)) or "not chosen",
        )
        for each in left_out
        if each.claim.id not in stated
    ]
    if not rows:
        return "Nothing was left out."
    return f"{_table(('claim', 'text', 'verdict', 'why'), rows[:_MOST_LISTED])}{_more(len(rows))}"


def _conflict_block(found: Disagreement, claims: Sequence[Checked], sources: Mapping[str, str]) -> str:
    """A disagreement: its claims, what the first of them rests on, and what speaks against it."""
    told = [each for each in claims if each.claim.id in found.claim_ids]
    names = ", ".join(f"**{plain_markdown(each.claim.id)}**" for each in told)
    heading = f"- {names} ({told[0].verdict}): {_shown(told[0].claim.text)}"
    own = [f"  - for it: {_quoted(quote, sources)}" for quote in found.sides[0]]
    other = [f"  - against it: {_quoted(quote, sources)}" for quote in found.sides[1]]
    return "\n".join([heading, *own, *other])


def _single_source_list(alone: Sequence[Checked], sources: Mapping[str, str]) -> str:
    """The report's claims that only one site supports."""
    lines = [
        f"- **{plain_markdown(each.claim.id)}** {_shown(each.claim.text)} — "
        + ", ".join(sources.get(url, plain_markdown(url)) for url in each.supporters)
        for each in alone
    ]
    return "\n".join(lines[:_MOST_LISTED]) + _more(len(lines)) if lines else "None."


def _quoted(quote: Quote, sources: Mapping[str, str]) -> str:
    return f"“{_shown(quote.text)}” — {sources.get(quote.url, plain_markdown(quote.url))}"


def _named_source(page: Page, cid: str) -> str:
    """The page as a link, with its citation id where the report has one, its site and its date."""
    link = link_to(page.title or page.url, page.url)
    about = ", ".join(filter(None, (cid, plain_markdown(page.site), plain_markdown(page.fetched_at[:10]))))
    return f"{link} ({about})"


def _shown(text: str) -> str:
    """The text in one line, escaped, its first 300 characters."""
    line = " ".join(text.split())
    return plain_markdown(line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 1]}…")


def _share(value: float | None) -> str:
    """The share in per cent; a dash for none."""
    return "–" if value is None else f"{value:.1%}"


def _more(count: int) -> str:
    """How many entries a list does not show; empty for none."""
    return f"\n\n{count - _MOST_LISTED} more are not shown." if count > _MOST_LISTED else ""


def _bullets(lines: Iterable[str], otherwise: str) -> str:
    """The lines as a list, escaped; the other text where there is none."""
    return "\n".join(f"- {plain_markdown(line)}" for line in lines) or otherwise


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are escaped already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
