"""The stage `verify`: every claim of a run against the stored pages, those it cites and all others."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pipeline.errors import ProviderError
from pipeline.models.asking import Model
from pipeline.models.completion import plain_reason
from pipeline.research.values import Verified
from pipeline.verifying.claim import Finding, check_sentence, is_covered
from pipeline.verifying.disagreement import contrary, is_other_edition, overlap
from pipeline.verifying.model_verdicts import OpenQuestion, ask_verdict, decide, open_question
from pipeline.verifying.page_text import PageText, read_page
from pipeline.verifying.values import Checked, Claim, Decided, Page, Quote

_MOST_ASKED = 40
"""Claims of a round that a model is asked about, the first ones."""
_PAIRS_KEPT = 4_000
"""Claims and pages of a deep run, so that none is held against the other again in each round."""


class ReadPages(NamedTuple):
    """The pages of a run, read once."""

    texts: Mapping[str, PageText]
    """By canonical URL, in the order of the pages."""
    titles: Mapping[str, str]


def read_pages(pages: Iterable[Page]) -> ReadPages:
    """The pages of a run, read once; of those with the same URL the last one."""
    last = {page.url: page for page in pages}
    texts = {url: read_page(page) for url, page in last.items()}
    return ReadPages(texts, {url: page.title for url, page in last.items()})


def verify(claims: Iterable[Claim], pages: Iterable[Page], sections: Sequence[str] = ()) -> Verified:
    """Every claim checked, in order, and the share of the sections that have a supported one."""
    read = read_pages(pages)
    checked = [_check(claim, read) for claim in claims]
    return _verified_of(checked, sections)


def verify_passages(claims: Sequence[Claim], pages: Iterable[Page], sections: Sequence[str] = ()) -> Verified:
    """The sentences of a reading list, each supported by its page, whose own words they are.

    Against one stand the sentences of other pages in the list that contradict it.
    """
    read = read_pages(pages)
    shown = [quote for claim in claims for quote in claim.quotes]
    checked = [_check_own_words(claim, shown, read) for claim in claims]
    return _verified_of(checked, sections)


def _check_own_words(claim: Claim, shown: Sequence[Quote], read: ReadPages) -> Checked:
    """A page's own sentence with the pages that have it, and the shown sentences of others that contradict it."""
    (quote,) = claim.quotes
    own = read.texts.get(quote.url)
    if own is None or own.text[quote.start : quote.end] != quote.text:
        return Checked(claim, "cannot_tell", 0.0, ("its page was not read, or does not have it at its place",))
    others = _others([quote.url], read)
    found = contrary(claim.text, [own], others)
    against = tuple(each for each in shown if any(overlap(each, other) for other in found))
    supporters = (quote.url, *(page.url for page in others if _supports(claim.text, page)))
    return Checked(claim, "supported", 1.0, (), supporters, against)


def _verified_of(checked: Sequence[Checked], sections: Sequence[str]) -> Verified:
    """The claims with the share of the sections that have a supported one."""
    covered = {each.claim.section for each in checked if each.verdict == "supported"}
    share = sum(number in covered for number in range(len(sections))) / len(sections) if sections else 0.0
    return Verified(tuple(checked), share)


def _check(claim: Claim, read: ReadPages) -> Checked:
    """The claim with what its own pages say of it, which others support it, and which say otherwise."""
    cited = list(dict.fromkeys(quote.url for quote in claim.quotes))
    own = [read.texts[url] for url in cited if url in read.texts]
    finding = check_sentence(claim.text, own)
    against = finding.against + contrary(claim.text, own, _others(cited, read))
    supporters = _supporting(claim.text, cited, finding, read) if finding.verdict == "supported" else ()
    return Checked(claim, finding.verdict, finding.score, finding.problems, supporters, against)


def _supporting(text: str, cited: Sequence[str], finding: Finding, read: ReadPages) -> tuple[str, ...]:
    """The pages that support the text, the cited ones first; all cited ones where only all together do."""
    alone = [url for url in cited if url in read.texts and _supports(text, read.texts[url])]
    own = alone or [url for url in cited if url in read.texts]
    return (*own, *(url for url, page in read.texts.items() if url not in cited and _supports(text, page)))


@lru_cache(maxsize=_PAIRS_KEPT)
def _supports(text: str, page: PageText) -> bool:
    """Whether the page alone supports the text; most pages are told by their words already."""
    return is_covered(text, page) and check_sentence(text, [page]).verdict == "supported"


def _others(cited: Sequence[str], read: ReadPages) -> list[PageText]:
    """The pages that a claim does not cite, without other editions of those that it cites."""
    titles = [read.titles[url] for url in cited if url in read.titles]
    return [
        text
        for url, text in read.texts.items()
        if url not in cited and not any(is_other_edition(read.titles[url], title) for title in titles)
    ]


async def ask_verdicts(verified: Verified, pages: Sequence[Page], sections: Sequence[str], model: Model) -> Verified:
    """The claims with the model's word on those that words do not decide.

    Where it gives no usable answer, or a quote that stands nowhere, a note says so.

    Raises:
        ProviderError: it could not be asked about any claim.
    """
    by_url = {page.url: page for page in pages}
    asked = [(each, found) for each in verified.claims if (found := _question_of(each, by_url))][:_MOST_ASKED]
    answers = await asyncio.gather(*(ask_verdict(question, model) for _, question in asked))
    failures = [answer.error for answer in answers if answer.status == "http_error"]
    if failures and len(failures) == len(asked) and model.may_ask():
        first = asked[0][0].claim.id
        raise ProviderError(
            f"The model {model.name!r} gave no answer for the claim {first} or any other: {failures[0]}"
        )
    decided = {}
    for (checked, question), answer in zip(asked, answers, strict=True):
        outcome = decide(question, answer)
        if outcome.set_aside:
            why = f"{outcome.set_aside}." if answer.value else f"there is none. {plain_reason(answer.error)}"
            model.note(f"A verdict of the model on claim {checked.claim.id} was set aside: {why}")
        decided[checked.claim.id] = _with_model(checked, outcome)
    return _verified_of([decided.get(each.claim.id, each) for each in verified.claims], sections)


def _question_of(checked: Checked, pages: Mapping[str, Page]) -> OpenQuestion | None:
    """What to ask about the claim; None where words decide."""
    urls = dict.fromkeys(quote.url for quote in checked.claim.quotes)
    texts = [read_page(pages[url]) for url in urls if url in pages]
    finding = check_sentence(checked.claim.text, texts)._replace(verdict=checked.verdict, problems=checked.problems)
    return open_question(checked.claim.text, texts, finding)


def _with_model(checked: Checked, outcome: Decided) -> Checked:
    """The claim with what comes of it once the model was asked."""
    if outcome.verdict == checked.verdict:
        return checked
    urls = tuple(dict.fromkeys(each.url for each in outcome.quotes))
    against = outcome.quotes if outcome.verdict == "contradicted" else ()
    return checked._replace(
        verdict=outcome.verdict,
        problems=outcome.problems,
        supporters=urls if outcome.verdict == "supported" else (),
        against=tuple(dict.fromkeys((*checked.against, *against))),
    )
