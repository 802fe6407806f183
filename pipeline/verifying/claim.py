"""One claim against the text of the pages that it cites, without a model: it says what is plain to see, or nothing.

A claim is `supported` where a page has it in its own words, with all that decides what it says the same
(`_agreement.py`), or where it is no copy, names somebody or something, and three sentences that follow each other hold
nearly all of it. It is `contradicted` where one sentence says the same but for a number, a date, a unit or a negation.
It is `not_found` where no sentence of the pages shares a word with it. All else is `cannot_tell`, with the nearest
sentences.
"""

import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from pipeline.models.evidence import ContextPage, NormalisedContext, validate_and_normalize_evidence
from pipeline.text.coverage import SENTENCES, SentencePlace, cover, words_and_numbers
from pipeline.text.entries import entry_above
from pipeline.text.language import detect_language
from pipeline.text.normal_form import normalise
from pipeline.text.urls import membership_key
from pipeline.text.words import without_marks
from pipeline.verifying._agreement import is_unspaced, says, shared_share
from pipeline.verifying._contradiction import contradiction
from pipeline.verifying._particulars import particulars_of, shown_figure
from pipeline.verifying._wording import Wording, decides, joined, negates, qualifies, wording_of
from pipeline.verifying.page_text import PageText, read_page
from pipeline.verifying.values import Checked, Claim, Page, Quote, Verdict

_CANDIDATES = 12
"""Best sentences of the pages that a claim is compared with."""
_TOGETHER = 3
"""Sentences that follow each other and may say a claim together."""
_HELD_FROM = 0.6
"""Share of a reworded claim's words that these have to have."""
_LEAST_REWORDED = 7
"""Words of such a claim; of a shorter one the verb may be missing."""
_LEAST_PARTICULAR = 4
"""Numbers and words of names that it has to have: two names, for example."""
_ALMOST_EQUAL = 0.8
"""Share of the words of each of two sentences in the other one from which all words that differ may decide."""
_COPIED = 0.7
"""Share of a claim's words in runs of a page from which it is a copy, cut or pieced together."""
_WORTH_A_LOOK = 0.5
"""Share of a claim's words that one sentence of a page has to have that it does not cite."""
_CLAUSES = re.compile(r";\s|,\s(?:and|but|while|whereas|und|aber|während)\s")
"""Where a sentence goes on with another statement, which may stand elsewhere."""
_LEAST_CLAUSE = 4
_YEAR = re.compile(r"1[1-9]\d\d|20\d\d")
_STOPS = ".。．｡!?！？ "
_UNREADABLE = "no text of a cited page could be read"
_NO_CONTENT = "the sentence says nothing that could be looked up"
_OTHER_LANGUAGE = "the cited pages are in another language, so the words cannot be compared"
_NO_WORDS = "no sentence of the cited pages has one of its words"
_OTHER_WORDS = "no sentence of the cited pages says it in the same words"
_ROUNDING = 1e-9
_SHOWN = 80
"""Characters of a quote that a problem names."""
_SHOWN_SENTENCE = 300


class Finding(NamedTuple):
    """What pages say of a text."""

    verdict: Verdict
    """What can be told from the words alone."""
    score: float
    """From 0 to 1, for ranking: how much of its words the pages have, together; no chance of being right."""
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
    _, places = cover(words | numbers, frozenset(), [page.index for page in pages], _CANDIDATES)
    near = tuple(places[:SENTENCES])
    if not places:
        if _in_other_language(text, pages):
            return Finding("cannot_tell", 0.0, (_OTHER_LANGUAGE,))
        return Finding("not_found", 0.0, (_NO_WORDS,))
    if any(stands_on(text, page) for page in pages):
        return Finding("supported", 1.0, (), near)
    score = _score(words | numbers, pages, places)
    claim = wording_of(text)
    sentences = [each for place in places for each in _statements(pages[place.source].sentences[place.sentence])]
    clauses = [each for part in _CLAUSES.split(text) if (each := wording_of(part)).words]
    if any(says(claim, each) for each in sentences) or (
        all(len(clause.words) >= _LEAST_CLAUSE and any(says(clause, each) for each in sentences) for clause in clauses)
    ):
        return Finding("supported", score, (), near)
    reasons, against = _opposed(text, pages, places)
    if reasons:
        return Finding("contradicted", 0.0, reasons, near, against)
    problems = _missing(text, pages, near)
    if not problems and _is_reworded(text, claim, pages, list(_passages(pages, places))):
        return Finding("supported", score, (), near)
    return Finding("cannot_tell", score, problems or (_OTHER_WORDS,), near)


def _statements(sentence: str) -> list[Wording]:
    """The sentence, and each of its clauses that all of its qualifying words are in."""
    whole = wording_of(sentence)
    parts = [wording_of(part) for part in _CLAUSES.split(sentence)] if _CLAUSES.search(sentence) else []
    of_whole = sorted(filter(qualifies, whole.words))
    return [whole, *(each for each in parts if sorted(filter(qualifies, each.words)) == of_whole)]


def _score(words: frozenset[str], pages: Sequence[PageText], places: Sequence[SentencePlace]) -> float:
    """Mean share of the words that the pages have, that one sentence has, and that three in a row have."""
    known = sum(any(word in page.index.places for page in pages) for word in words)
    alone = max(pages[place.source].index.count(place.sentence, words) for place in places)
    together = max(pages[place.source].index.count_around(place.sentence, words, _TOGETHER) for place in places)
    return round((known + alone + together) / (3 * len(words)), 4)


def _passages(pages: Sequence[PageText], places: Sequence[SentencePlace]) -> Iterator[Wording]:
    """The sentences, and what they and those beside them say together, up to three in a row, each once."""
    spans = {
        (place.source, start, start + size)
        for place in places
        for size in range(1, _TOGETHER + 1)
        for start in range(max(0, place.sentence - size + 1), place.sentence + 1)
        if start + size <= len(pages[place.source].sentences)
    }
    for source, start, end in spans:
        first, *rest = (wording_of(each) for each in pages[source].sentences[start:end])
        for each in rest:
            first = joined(first, each)
        yield first


def is_covered(text: str, page: PageText) -> bool:
    """Whether a sentence of the page has enough of the words of a text that it is worth to look what it says of it."""
    words = frozenset[str]().union(*words_and_numbers(text, ""))
    shared = page.index.shared(words)
    return bool(shared) and max(shared.values()) >= _WORTH_A_LOOK * len(words)


def _is_reworded(text: str, claim: Wording, pages: Sequence[PageText], passages: Sequence[Wording]) -> bool:
    """Whether the pages say a claim in other words, as far as nearly all of its words in one passage tell.

    It has to have names or numbers, which tie it to the pages, and the passage its qualifying words. Of what is almost
    a sentence of the page, or is pieced together from runs of its words, nothing is told: there each word may decide.
    Nor is anything of German, where every noun looks like a name.
    """
    content = {word for word in claim.words if not decides(word)}
    particulars = particulars_of(text)
    if (
        is_unspaced(claim)
        or any(page.lang == "de" for page in pages)
        or len(content) < _LEAST_REWORDED
        or len(particulars.names) + len(particulars.figures) < _LEAST_PARTICULAR
        or any(shared_share(claim, passage) >= _ALMOST_EQUAL for passage in passages)
    ):
        return False
    qualifying = {word for word in claim.words if qualifies(word)}
    held = any(
        len(content & {*passage.words}) >= _HELD_FROM * len(content) - _ROUNDING
        and qualifying <= {*passage.words}
        and not any(negates(word) for word in {*passage.words} - qualifying)
        and not _changes_sides(claim, passage, particulars.names)
        for passage in passages
    )
    return held and max(page.copied_share(text) for page in pages) < _COPIED


def _changes_sides(claim: Wording, passage: Wording, names: Set[str]) -> bool:
    """Whether two names are on other sides of a word in the claim than in the passage: who did it to whom."""
    for word in ({*claim.words} & {*passage.words}) - names:
        (before, behind), (first, last) = (
            ({*each.words[:at]} & names, {*each.words[at:]} & names)
            for each in (claim, passage)
            for at in [each.words.index(word)]
        )
        if before & (last - first) and behind & (first - last):
            return True
    return False


def stands_on(text: str, page: PageText) -> bool:
    """Whether the page has the text word for word: whole sentences of it, or a part that says the same alone.

    So it has a name and a colon before what it says in the description of that entry: `popitem(): Pairs are …`.
    """
    if any(_places_of(text, page)):
        return True
    name, _, described = text.partition(": ")
    wordings = {page.text[start:end] for start, end in _places_of(described, page)} if described else set()
    places = (found.start() for each in wordings for found in re.finditer(re.escape(each), page.text))
    return any(entry.label == name and not entry.is_case for at in places if (entry := entry_above(page.text, at)))


def _places_of(text: str, page: PageText) -> Iterator[tuple[int, int]]:
    """The spans of the page that are the text word for word, as far as they say the same alone.

    Marks such as `[3]` may be the text's own, so it is looked up with and without them.
    """
    asks = text.rstrip().endswith(("?", "？"))
    for form in dict.fromkeys((normalise(text).strip(_STOPS), normalise(without_marks(text)).strip(_STOPS))):
        at = page.form.find(form)
        while at >= 0:
            span = page.form.span(at, at + len(form))
            around = page.sentences_at(span) if span and page.ends_words(span) else []
            if span and around and around[-1].rstrip().endswith(("?", "？")) is asks:
                whole = " ".join(around)
                own = wording_of(text)
                if normalise(whole).strip(_STOPS) == form or any(says(own, each) for each in _statements(whole)):
                    yield span
            at = page.form.find(form, at + 1)


def _opposed(
    text: str, pages: Sequence[PageText], places: Sequence[SentencePlace]
) -> tuple[tuple[str, ...], tuple[Quote, ...]]:
    """Why the sentences contradict the text, each reason once, and these sentences as quotes; empty where none does."""
    claim = wording_of(text)
    found = {
        place: reason
        for place in places
        if (reason := contradiction(claim, wording_of(pages[place.source].sentences[place.sentence])))
    }
    quotes = tuple(pages[place.source].quote(place.sentence) for place in found)
    reasons = (
        f"{reason}: {pages[place.source].sentences[place.sentence][:_SHOWN_SENTENCE]!r}"
        for place, reason in found.items()
    )
    return tuple(dict.fromkeys(reasons)), quotes


def _missing(text: str, pages: Sequence[PageText], places: Sequence[SentencePlace]) -> tuple[str, ...]:
    """What the text says in particular and the pages do not: numbers beside its sentences, names, a negation.

    A year may stand anywhere on the pages, which often have it in their heading only.
    """
    ours = particulars_of(text)
    near = [particulars_of(" ".join(pages[place.source].around(place.sentence))) for place in places]
    figures = sorted(ours.figures.difference(*(each.figures for each in near)))
    problems = [
        f"the cited pages do not have {shown_figure(figure)} beside it"
        for figure in figures
        if not (_YEAR.fullmatch(figure) and any(page.has(figure) for page in pages))
    ]
    names = [name for name in sorted(ours.names) if not any(page.has(name) for page in pages)]
    problems += [f"the cited pages do not have the name {name!r}" for name in names]
    if ours.negations % 2 and not any(each.negations for each in near):
        problems.append("it negates what no sentence near it negates")
    return tuple(problems)


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
