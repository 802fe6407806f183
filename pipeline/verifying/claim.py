"""One claim against the text of the pages that it cites, without a model.

A claim that stands on a page word for word is supported. Of others the words have to be covered by a page's best
sentences, their numbers and dates to stand beside these, and their names to stand on the page. How sure that is was
measured on WiCE dev, see tests/pipeline/verifying/test_verification.py. A page in another language than the claim says
nothing of it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.models.evidence import ContextPage, NormalisedContext, validate_and_normalize_evidence
from pipeline.text.coverage import (
    SENTENCES,
    SOME_SUPPORT,
    Coverage,
    SentencePlace,
    cover,
    probability,
    words_and_numbers,
)
from pipeline.text.language import detect_language
from pipeline.text.normal_form import normalise
from pipeline.text.urls import membership_key
from pipeline.text.words import without_marks
from pipeline.verifying._contradiction import SAME_WORDING, contradiction, replaced, statement_of
from pipeline.verifying._particulars import particulars_of, shown_figure
from pipeline.verifying.page_text import PageText, read_page
from pipeline.verifying.values import Checked, Claim, Page, Quote, Verdict

_SUPPORTED_FROM = 0.88
"""Chance of some support from which a claim without any problem counts as supported."""
_ONE_SENTENCE_FROM = 0.45
"""Share of a claim's words that one sentence has to have; generic words are scattered over any long page."""
_LEAST_HELD = 4
"""Words of a claim that one sentence has to have, or all of a shorter one."""
_PARTIAL_FROM = 0.75
"""Chance of some support from which a claim is nothing that its pages are silent on."""
CANDIDATES = 12
"""Best sentences of the pages that are looked at for a contradiction."""
_YEAR = re.compile(r"1[1-9]\d\d|20\d\d")
_STOPS = ".。．｡!?！？ "
_UNREADABLE = "no text of a cited page could be read"
_NO_CONTENT = "the sentence says nothing that could be looked up"
_OTHER_LANGUAGE = "the cited pages are in another language, so the words cannot be compared"
_FEW_WORDS = "the cited pages have too few of its words"
_OPPOSED_FROM = 0.4
"""Share of a claim's words, with their endings, of a sentence that is worth comparing in full."""
_ROUNDING = 1e-9
_SHOWN = 80
"""Characters of a quote that a problem names."""


class Finding(NamedTuple):
    """What pages say of a text."""

    verdict: Verdict
    """Supported, or how far not."""
    score: float
    """From 0 to 1: the chance that the pages support at least a part of it."""
    problems: tuple[str, ...] = ()
    """Why it is not supported, in words; empty where it is."""
    places: tuple[SentencePlace, ...] = ()
    """The sentences that come nearest to it, the best first: the index of the page, and of the sentence on it."""
    against: tuple[Quote, ...] = ()
    """Ranges of the pages that say otherwise."""


def check_claim(text: str, pages: Sequence[Page], quotes: Sequence[Quote] = ()) -> Checked:
    """The claim held against the pages that it cites; its id is empty.

    A quote that does not stand on its page leaves the claim at `cannot_tell` at best.
    """
    read = [read_page(page) for page in pages]
    finding = with_quotes(check_sentence(text, read), read, quotes)
    supporters = tuple(page.url for page in pages) if finding.verdict == "supported" else ()
    claim = Claim("", text, 0, tuple(quotes))
    return Checked(claim, finding.verdict, finding.score, finding.problems, supporters, finding.against)


def check_sentence(text: str, pages: Sequence[PageText]) -> Finding:
    """What the pages that a sentence cites say of it together; `cannot_tell` where none can be compared with it."""
    words, numbers = words_and_numbers(text, "")
    if not any(page.sentences for page in pages):
        return Finding("cannot_tell", 0.0, (_UNREADABLE,))
    if not (words or numbers):
        return Finding("cannot_tell", 0.0, (_NO_CONTENT,))
    coverage, places = cover(words, numbers, [page.index for page in pages], CANDIDATES)
    if any(stands_on(text, page) for page in pages):
        return Finding("supported", 1.0, (), tuple(places[:SENTENCES]))
    score = probability(SOME_SUPPORT, coverage)
    reasons, against = opposed(text, pages, places)
    if reasons:
        return Finding("contradicted", score, reasons, tuple(places[:SENTENCES]), against)
    problems = _missing(text, pages, places[:SENTENCES])
    if is_covered(coverage, len(words or numbers)) and not problems:
        return Finding("supported", score, (), tuple(places[:SENTENCES]))
    if score >= _PARTIAL_FROM:
        return Finding("cannot_tell", score, problems or (_FEW_WORDS,), tuple(places[:SENTENCES]))
    if _in_other_language(text, pages):
        return Finding("cannot_tell", score, (_OTHER_LANGUAGE,))
    return Finding("not_found", score, (_FEW_WORDS, *problems), tuple(places[:SENTENCES]))


def is_covered(coverage: Coverage, words: int, one_sentence_from: float = _ONE_SENTENCE_FROM) -> bool:
    """Whether pages have enough of a claim of so many words to support it, where nothing else speaks against that."""
    held = max(one_sentence_from, min(words, _LEAST_HELD) / words)
    return probability(SOME_SUPPORT, coverage) >= _SUPPORTED_FROM and coverage.best >= held - _ROUNDING


def stands_on(text: str, page: PageText) -> bool:
    """Whether the page has the text word for word, in sentences that negate as often as it does.

    Marks such as `[3]` may be the text's own, so it is looked up with and without them.
    """
    for form in dict.fromkeys((normalise(text).strip(_STOPS), normalise(without_marks(text)).strip(_STOPS))):
        at = page.form.find(form)
        span = page.form.span(at, at + len(form)) if at >= 0 else None
        if span and page.ends_words(span):
            around = " ".join(page.sentences_at(span))
            return particulars_of(around).negations == particulars_of(text).negations
    return False


def opposed(
    text: str, pages: Sequence[PageText], places: Sequence[SentencePlace]
) -> tuple[tuple[str, ...], tuple[Quote, ...]]:
    """Why the sentences contradict the text, each reason once, and these sentences as quotes; empty where none does."""
    words, _ = words_and_numbers(text, "")
    least = _OPPOSED_FROM * len(words)
    near = [place for place in places if pages[place.source].index.count(place.sentence, words) >= least]
    ours = statement_of(text)
    found = {
        place: reason
        for place in near
        if (reason := contradiction(ours, statement_of(pages[place.source].sentences[place.sentence])))
    }
    quotes = tuple(pages[place.source].quote(place.sentence) for place in found)
    return tuple(dict.fromkeys(found.values())), quotes


def _missing(text: str, pages: Sequence[PageText], places: Sequence[SentencePlace]) -> tuple[str, ...]:
    """What the text says in particular and the pages do not: numbers beside its sentences, names, a negation.

    A year may stand anywhere on the pages, which often have it in their heading only.
    """
    ours = particulars_of(text)
    near = [particulars_of(" ".join(pages[place.source].around(place.sentence))) for place in places]
    figures = sorted(ours.figures.difference(*(each.figures for each in near)))
    problems = [
        f"the cited pages do not have the number {shown_figure(figure)} beside it"
        for figure in figures
        if not (_YEAR.fullmatch(figure) and any(page.has(figure) for page in pages))
    ]
    names = [name for name in sorted(ours.names) if not any(page.has(name) for page in pages)]
    problems += [f"the cited pages do not have the name {name!r}" for name in names]
    if ours.negations % 2 and not any(each.negations for each in near):
        problems.append("it negates what no sentence near it negates")
    nearest = [pages[place.source].sentences[place.sentence] for place in places[:1]]
    return (
        *problems,
        *(reason for each in nearest for reason in (replaced(text, each), _denied(text, each)) if reason),
    )


def _denied(text: str, sentence: str) -> str:
    """That a sentence has nearly all words of a text which negates nothing, and a negation; empty where it has none."""
    ours, theirs = statement_of(text), statement_of(sentence)
    share = len({*ours.words} & {*theirs.words}) / max(1, len({*ours.words}))
    if share < SAME_WORDING or ours.negations % 2 or not theirs.negations % 2:
        return ""
    return "the sentence with nearly all of its words is negated"


def _in_other_language(text: str, pages: Sequence[PageText]) -> bool:
    """Whether one of the pages is known to be in another language than the text."""
    languages = {page.lang for page in pages if page.sentences} - {"und"}
    own = detect_language(text) if languages else "und"
    return own != "und" and bool(languages - {own})


def with_quotes(finding: Finding, pages: Sequence[PageText], quotes: Sequence[Quote]) -> Finding:
    """The finding; where a quote does not stand on its page, `cannot_tell` at best, and the quote named."""
    context = NormalisedContext(
        tuple(ContextPage(page.url, membership_key(page.url), 0, len(page.text), page.form) for page in pages),
        frozenset(membership_key(page.url) for page in pages),
    )
    items = [{"url": quote.url, "snippet": quote.text} for quote in quotes]
    rejected = validate_and_normalize_evidence(context, items, max(1, len(items)), per_page=True).rejected
    if not rejected:
        return finding
    problems = tuple(f"the quote {each.snippet[:_SHOWN]!r} does not stand on its page" for each in rejected)
    verdict = "cannot_tell" if finding.verdict == "supported" else finding.verdict
    return finding._replace(verdict=verdict, problems=finding.problems + problems)
