"""The stages `extract` and `verify`: claims out of pages with their quotes, and what all pages say of them."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from pydantic import BaseModel

from pipeline.core.errors import ProviderError
from pipeline.models.asking import TASKS, Model
from pipeline.models.completion import plain_reason
from pipeline.research.passages import Passage, best_passages, claims_of, passages_of, readable_pages, reading_list
from pipeline.research.values import Plan, Verified, plan_language
from pipeline.text.normal_form import normalise
from pipeline.text.words import content_words, numbers_in
from pipeline.verifying.model_verdicts import OpenQuestion, ask_verdict, decide, open_question, quote_in
from pipeline.verifying.page_text import PageText, read_page
from pipeline.verifying.rules import check_sentence, contrary, is_covered, is_other_edition, overlap
from pipeline.verifying.values import Checked, Claim, Page, Quote

_MOST_MODEL_CLAIMS = 6
_ENDS = re.compile(r"[.!。！][\"'”’“»›)\]」』）]*$")  # How a sentence of running text ends; a question states nothing
_ADDRESS = re.compile(r"https?:|www\.|\S@\S+\.\w|://", re.IGNORECASE)
_CITATION_LIKE = re.compile(r"[(（]C[0-9]{3}|\[\^|【|\[[0-9]+(?:[-,–][ 0-9]+)*\]", re.IGNORECASE)
_LEAST_QUOTED = 3  # Content words of a quote; fewer stand on any page


class ClaimAnswer(BaseModel):
    """One claim as the model gives it."""

    passage: int
    quote: str
    claim: str
    type: Literal["fact", "estimate", "opinion"] = "fact"


class ClaimsAnswer(BaseModel):
    """What the model answers about one section."""

    claims: list[ClaimAnswer]


async def _claims_of_model(
    plan: Plan, passages: Sequence[Passage], model: Model, before: Sequence[Claim], wanted: Collection[int]
) -> dict[int, list[Claim]]:
    """The model's claims by section, without ids; a section without a usable answer is missing."""
    language = plan_language(plan)
    asked = [
        _section_claims(plan, number, best_passages(section, passages, 10, language), model, before)
        for number, section in enumerate(plan.sections)
        if number in wanted
    ]
    results, failures = await model.ask_all(asked)
    for failure in failures:
        model.note(str(failure))
    found: dict[int, list[Claim]] = {number: [] for number in range(len(plan.sections)) if number not in wanted}
    return found | {number: each for number, each in zip(sorted(wanted), results, strict=True) if each is not None}


async def _section_claims(
    plan: Plan, number: int, passages: Sequence[Passage], model: Model, before: Sequence[Claim]
) -> list[Claim] | None:
    """The model's claims about one section whose quotes were found; None where its answer is no use."""
    if not passages:
        return []
    section = plan.sections[number]
    others = "\n".join(each for each in plan.sections if each != section)
    known = "\n".join(claim.text for claim in before if claim.section == number)
    texts = [("QUESTION", section), ("OTHER QUESTIONS", others or "None."), ("KNOWN ALREADY", known or "Nothing.")]
    texts += [(f"PASSAGE {place} OF {len(passages)}", passage.text) for place, passage in enumerate(passages, start=1)]
    schema, read = ClaimsAnswer.model_json_schema(), ClaimsAnswer.model_validate
    answer = await model.ask(TASKS["claims"], texts, schema, read, f"the section {section!r}")
    if answer is None:
        return None
    located = [_located_claim(each, number, passages) for each in answer.claims]
    lost = located.count(None)
    if lost:
        ending = f"for their quotes stand in no passage that it was shown or can be no claim: {lost}."
        model.note(f"Claims of the model for the section {section!r} that were dropped, {ending}")
    return [claim for claim in located if claim is not None][:_MOST_MODEL_CLAIMS]


def _located_claim(answer: ClaimAnswer, section: int, passages: Sequence[Passage]) -> Claim | None:
    """The claim with the place of its quote; one that says more than its quote gives way to the quote's own words."""
    text = " ".join(answer.claim.split())
    is_long = len(set(content_words(answer.quote))) >= _LEAST_QUOTED
    named = [passages[answer.passage - 1]] if 1 <= answer.passage <= len(passages) else []
    for passage in [*named, *(each for each in passages if each not in named)]:
        page, start, end = passage.page, passage.start, passage.end
        quote = quote_in(answer.quote, page.url, page.text, start, end, 600) if is_long else None
        if quote is None:
            continue
        if " ".join(quote.text.split()) in {heading.text for heading in passage.page.headings}:
            return None
        if not is_fit(text, quote.text):
            text = " ".join(quote.text.split())
            if not is_fit(text, quote.text):
                return None
        return Claim("", text, section, (quote,), answer.type)
    return None


def is_fit(text: str, quote: str) -> bool:
    """Whether a claim says no number that its quote does not, and holds no address and no citation mark."""
    if not 0 < len(text) <= 400 or _ADDRESS.search(text) or _CITATION_LIKE.search(text):
        return False
    return set(numbers_in(text)) <= set(numbers_in(quote))


async def extract_claims(
    plan: Plan,
    pages: Sequence[Page],
    model: Model | None,
    before: Sequence[Claim] = (),
    wanted: Collection[int] | None = None,
    read_before: Sequence[Page] = (),
) -> list[Claim]:
    """Claims of all sections in order, with ids that follow on those `before`, each with its quotes.

    Pages in another language than the plan's are read only where there are no others from the start. A section without
    a usable answer gets sentences of the passages that hold its words, of pages `read_before` too. `wanted` are the
    sections that the model is asked about; None for all.
    """
    readable = readable_pages(plan, pages, first=not before)
    sections = range(len(plan.sections)) if wanted is None else wanted
    found = await _claims_of_model(plan, passages_of(readable), model, before, sections) if model else {}
    known = {normalise(claim.text) for claim in before}
    if len(found) < len(plan.sections):
        lists = reading_list(plan, [*readable_pages(plan, read_before, first=False), *readable])
        for number, passages in enumerate(lists):
            if number not in found:
                held = sum(claim.section == number for claim in before)
                new = (each for each in claims_of([passages]) if _is_sentence(each.text, known))
                found[number] = [claim._replace(section=number) for claim in islice(new, _MOST_MODEL_CLAIMS - held)]
    claims = [claim for _, drafted in sorted(found.items()) for claim in drafted]
    return [claim._replace(id=f"c{at}") for at, claim in enumerate(claims, start=len(before) + 1)]


def _is_sentence(text: str, known: set[str]) -> bool:
    """Whether a line of a passage is a sentence that may stand alone, and nothing known says it; it is known then."""
    form = normalise(text)
    if form in known or not _ENDS.search(text) or not is_fit(text, text):
        return False
    known.add(form)
    return True


_MOST_ASKED = 40  # Claims of a round that a model is asked about, the first ones
_PAIRS_KEPT = 4_000  # Claims and pages of a deep run, so that none is held against the other again in each round


class ReadPages(NamedTuple):
    texts: Mapping[str, PageText]
    titles: Mapping[str, str]


def read_pages(pages: Iterable[Page]) -> ReadPages:
    """The pages of a run, read once; of those with the same URL the last one."""
    last = {page.url: page for page in pages}
    texts = {url: read_page(page) for url, page in last.items()}
    return ReadPages(texts, {url: page.title for url, page in last.items()})


def verify(claims: Iterable[Claim], pages: Iterable[Page], sections: Sequence[str] = ()) -> Verified:
    """Every claim checked, in order, and the share of the sections that have a supported one."""
    read = read_pages(pages)
    return _verified_of([_check(claim, read) for claim in claims], sections)


def verify_passages(claims: Sequence[Claim], pages: Iterable[Page], sections: Sequence[str] = ()) -> Verified:
    """The sentences of a reading list, each supported by its page; against it those of others in the list stand."""
    read = read_pages(pages)
    shown = [quote for claim in claims for quote in claim.quotes]
    return _verified_of([_check_own_words(claim, shown, read) for claim in claims], sections)


def _check_own_words(claim: Claim, shown: Sequence[Quote], read: ReadPages) -> Checked:
    (quote,) = claim.quotes
    own = read.texts.get(quote.url)
    if own is None or own.text[quote.start : quote.end] != quote.text:
        return Checked(claim, "cannot_tell", 0.0, ("its page was not read, or does not have it at its place",))
    others = _others([quote.url], read)
    found = contrary(claim.text, [own], others)
    against = tuple(each for each in shown if overlap([each], found))
    supporters = (quote.url, *(page.url for page in others if _supports(claim.text, page)))
    return Checked(claim, "supported", 1.0, (), supporters, against)


def _verified_of(checked: Sequence[Checked], sections: Sequence[str]) -> Verified:
    covered = {each.claim.section for each in checked if each.verdict == "supported"}
    share = sum(number in covered for number in range(len(sections))) / len(sections) if sections else 0.0
    return Verified(tuple(checked), share)


def _check(claim: Claim, read: ReadPages) -> Checked:
    cited = list(dict.fromkeys(quote.url for quote in claim.quotes))
    own = [read.texts[url] for url in cited if url in read.texts]
    finding = check_sentence(claim.text, own)
    against = finding.against + contrary(claim.text, own, _others(cited, read))
    supporters: list[str] = []
    if finding.verdict == "supported":
        held = [url for url in cited if url in read.texts]
        alone = [url for url in held if _supports(claim.text, read.texts[url])]
        supporters += alone or held  # all cited ones where only all together do
        supporters += (url for url, page in read.texts.items() if url not in cited and _supports(claim.text, page))
    return Checked(claim, finding.verdict, finding.score, finding.problems, tuple(supporters), against)


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
    """The claims with the model's word on those that words do not decide."""
    by_url = {page.url: page for page in pages}
    asked = [(each, found) for each in verified.claims if (found := _question_of(each, by_url))][:_MOST_ASKED]
    answers = await asyncio.gather(*(ask_verdict(question, model) for _, question in asked))
    failures = [answer.error for answer in answers if answer.status == "http_error"]
    if failures and len(failures) == len(asked) and model.may_ask():
        first = f"the claim {asked[0][0].claim.id} or any other"
        raise ProviderError(f"The model {model.name!r} gave no answer for {first}: {failures[0]}")
    decided = {}
    for (checked, question), answer in zip(asked, answers, strict=True):
        outcome = decide(question, answer)
        if outcome.set_aside:
            why = f"{outcome.set_aside}." if answer.value else f"there is none. {plain_reason(answer.error)}"
            model.note(f"A verdict of the model on claim {checked.claim.id} was set aside: {why}")
        if outcome.verdict != checked.verdict:
            urls = tuple(dict.fromkeys(each.url for each in outcome.quotes))
            against = outcome.quotes if outcome.verdict == "contradicted" else ()
            decided[checked.claim.id] = checked._replace(
                verdict=outcome.verdict,
                problems=outcome.problems,
                supporters=urls if outcome.verdict == "supported" else (),
                against=tuple(dict.fromkeys((*checked.against, *against))),
            )
    return _verified_of([decided.get(each.claim.id, each) for each in verified.claims], sections)


def _question_of(checked: Checked, pages: Mapping[str, Page]) -> OpenQuestion | None:
    urls = dict.fromkeys(quote.url for quote in checked.claim.quotes)
    texts = [read_page(pages[url]) for url in urls if url in pages]
    finding = check_sentence(checked.claim.text, texts)._replace(verdict=checked.verdict, problems=checked.problems)
    return open_question(checked.claim.text, texts, finding)
