"""The stage `verify`: every claim of a run against the stored pages, those it cites and all others."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from pipeline.errors import ProviderError
from pipeline.models.asking import Model
from pipeline.models.evidence import aggregate_context, validate_and_normalize_evidence
from pipeline.research.values import Verified
from pipeline.text.coverage import cover, words_and_numbers
from pipeline.text.words import content_words
from pipeline.verifying.claim import CANDIDATES, Finding, check_sentence, is_covered, opposed, stands_on, with_quotes
from pipeline.verifying.page_text import PageText, read_page
from pipeline.verifying.particulars import particulars_of
from pipeline.verifying.values import Checked, Claim, Page, Quote

_MOST_ASKED = 40
"""Claims of a round that a model is asked about, the first ones."""
_LEAST_QUOTED = 3
"""Content words of a quote; fewer stand on any page."""
_TASK = (
    "Say whether the passages support the claim. `verdict` is `supported` where they say all of it, `cannot_tell` "
    "where they say a part of it, `contradicted` where they say otherwise, else `not_found`. `quote` is copied letter "
    "for letter from one passage: the one stretch, of at most 300 characters, that decides; empty for `not_found`. "
    "Go by the passages alone, not by what you know."
)


_CORROBORATED_FROM = 0.6
"""Share of a claim's words that a sentence of a page has to have that the claim does not cite."""
_MOST_FOLLOW_UPS = 3
"""Queries that a round asks for sections without a supported claim."""


class ReadPages(NamedTuple):
    """The pages of a run, read once."""

    texts: Mapping[str, PageText]
    """By canonical URL, in the order of the pages."""
    sites: Mapping[str, str]
    """The site of each."""


def read_pages(pages: Iterable[Page]) -> ReadPages:
    """The pages of a run, read once; of those with the same URL the last one."""
    last = {page.url: page for page in pages}
    texts = {url: read_page(page) for url, page in last.items()}
    return ReadPages(texts, {url: page.site for url, page in last.items()})


def verify(claims: Iterable[Claim], pages: Iterable[Page], sections: Sequence[str] = ()) -> Verified:
    """Every claim checked, in order; the share of the sections that have a supported one, and what to ask next."""
    read = read_pages(pages)
    checked = [_check(claim, read) for claim in claims]
    return _verified_of(checked, sections)


def _verified_of(checked: Sequence[Checked], sections: Sequence[str]) -> Verified:
    """The claims with the share of the sections that have a supported one, and the others as queries, at most three."""
    covered = {each.claim.section for each in checked if each.verdict == "supported"}
    open_sections = [section for number, section in enumerate(sections) if number not in covered]
    share = 1 - len(open_sections) / len(sections) if sections else 0.0
    return Verified(tuple(checked), share, tuple(dict.fromkeys(open_sections))[:_MOST_FOLLOW_UPS])


def _check(claim: Claim, read: ReadPages) -> Checked:
    """The claim with what its own pages say of it, which others support it, and which say otherwise."""
    cited = list(dict.fromkeys(quote.url for quote in claim.quotes))
    own = [read.texts[url] for url in cited if url in read.texts]
    finding = with_quotes(check_sentence(claim.text, own), own, claim.quotes)
    others = [text for url, text in read.texts.items() if url not in cited]
    against = finding.against + _contrary(claim.text, others)
    supporters = _supporting(claim.text, cited, finding, read) if finding.verdict == "supported" else ()
    return Checked(claim, finding.verdict, finding.score, finding.problems, supporters, against)


def _supporting(text: str, cited: Sequence[str], finding: Finding, read: ReadPages) -> tuple[str, ...]:
    """The pages that support the text, the cited ones first; all cited ones where only all together do."""
    alone = [url for url in cited if url in read.texts and _supports(text, read.texts[url])]
    own = alone or [url for url in cited if url in read.texts]
    return (*own, *(url for url, page in read.texts.items() if url not in cited and _supports(text, page)))


def _supports(text: str, page: PageText) -> bool:
    """Whether the page alone supports the text; most pages are told by their words already."""
    words, numbers = words_and_numbers(text, "")
    coverage, _ = cover(words, numbers, [page.index])
    enough = bool(words or numbers) and is_covered(coverage, len(words or numbers), _CORROBORATED_FROM)
    return enough and check_sentence(text, [page]).verdict == "supported"


def _contrary(text: str, pages: Sequence[PageText]) -> tuple[Quote, ...]:
    """The sentences of the pages that contradict the text."""
    words, numbers = words_and_numbers(text, "")
    _, places = cover(words, numbers, [page.index for page in pages], CANDIDATES)
    return opposed(text, pages, places)[1]


class VerdictAnswer(BaseModel):
    """What the model answers about one claim."""

    model_config = ConfigDict(extra="ignore")

    verdict: Literal["supported", "cannot_tell", "not_found", "contradicted"]
    quote: str = ""


class _OpenQuestion(NamedTuple):
    """A claim whose own pages have to be read for their meaning, and the sentences of each that come nearest."""

    checked: Checked
    pages: tuple[Page, ...]
    passages: tuple[str, ...]


async def ask_verdicts(verified: Verified, pages: Sequence[Page], sections: Sequence[str], model: Model) -> Verified:
    """The claims with the model's word on those that are partially supported, or supported in other words.

    Where it gives no usable answer, or a quote that stands nowhere, the verdict of the words stays, and a note says so.

    Raises:
        ProviderError: it could not be asked about any claim.
    """
    by_url = {page.url: page for page in pages}
    asked = [found for each in verified.claims if (found := _open_question(each, by_url))][:_MOST_ASKED]
    answers = await asyncio.gather(*(_ask_verdict(each, model) for each in asked), return_exceptions=True)
    decided: dict[str, Checked] = {}
    failures = []
    for question, answer in zip(asked, answers, strict=True):
        if isinstance(answer, ProviderError):
            failures.append(answer)
        elif isinstance(answer, BaseException):
            raise answer
        elif answer is not None:
            decided[question.checked.claim.id] = _with_answer(question, answer, model)
    if failures and len(failures) == len(asked):
        raise failures[0]
    for failure in failures:
        model.note(str(failure))
    return _verified_of([decided.get(each.claim.id, each) for each in verified.claims], sections)


def _open_question(checked: Checked, pages: dict[str, Page]) -> _OpenQuestion | None:
    """What to ask about the claim; None where its words decide."""
    cited = tuple(pages[url] for url in dict.fromkeys(quote.url for quote in checked.claim.quotes) if url in pages)
    texts = [read_page(page) for page in cited]
    text = checked.claim.text
    if checked.verdict not in ("supported", "cannot_tell") or any(stands_on(text, each) for each in texts):
        return None
    passages = _nearest_passages(text, texts)
    return _OpenQuestion(checked, cited, passages) if passages else None


def _nearest_passages(text: str, pages: Sequence[PageText]) -> tuple[str, ...]:
    """The sentences of the pages that come nearest to the text, with their neighbours, the best first."""
    places = check_sentence(text, pages).places
    return tuple(dict.fromkeys(" ".join(pages[place.source].around(place.sentence)) for place in places))


async def _ask_verdict(question: _OpenQuestion, model: Model) -> VerdictAnswer | None:
    """What the model says of the claim; None where that is no use.

    Raises:
        ProviderError: it cannot be asked.
    """
    claim = question.checked.claim
    texts = [("CLAIM", claim.text)]
    texts += [(f"PASSAGE {place}", passage) for place, passage in enumerate(question.passages, start=1)]
    schema = VerdictAnswer.model_json_schema()
    return await model.ask(_TASK, texts, schema, VerdictAnswer.model_validate, f"the claim {claim.id}")


def _with_answer(question: _OpenQuestion, answer: VerdictAnswer, model: Model) -> Checked:
    """The claim with the verdict that the words and the model give together.

    The model lifts a claim to `supported` with a quote only that has all of its numbers, and makes it contradicted
    with a quote only; it lowers a supported one without.
    """
    checked = question.checked
    if answer.verdict in ("not_found", "cannot_tell"):
        if checked.verdict != "supported":
            return checked
        problem = f"the model calls it {answer.verdict}"
        return checked._replace(verdict="cannot_tell", problems=(problem,), supporters=())
    quote = _located(answer.quote, question.pages)
    if quote is None:
        model.note(
            f"A verdict of the model on claim {checked.claim.id} was set aside: its quote stands on no cited page."
        )
        return checked
    if answer.verdict == "contradicted":
        return checked._replace(
            verdict="contradicted",
            problems=("the model reads the quoted page as saying otherwise",),
            supporters=(),
            against=tuple(dict.fromkeys((*checked.against, quote))),
        )
    lacking = particulars_of(checked.claim.text).figures - particulars_of(quote.text).figures
    if checked.verdict == "supported" or lacking:
        return checked
    return checked._replace(verdict="supported", problems=(), supporters=(quote.url,))


def _located(snippet: str, pages: Sequence[Page]) -> Quote | None:
    """The quote with its place on the first of the pages that has it word for word; None for none, or for few words."""
    if len(content_words(snippet)) < _LEAST_QUOTED:
        return None
    for page in pages:
        context = aggregate_context([(page.url, page.text)])
        items = validate_and_normalize_evidence(context, [{"url": page.url, "snippet": snippet}], per_page=True).items
        if items:
            start, end = items[0].char_start - items[0].page_start, items[0].char_end - items[0].page_start
            return Quote(page.url, page.text[start:end], start, end)
    return None
