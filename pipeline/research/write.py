"""The paragraphs of a report by a model: verified claims in a readable order, in its checked words or in their own."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from pipeline.citations.addresses import site_key, source_domain
from pipeline.models.asking import TASKS, Model
from pipeline.research import values
from pipeline.research.claims import is_fit
from pipeline.research.contracts import is_document
from pipeline.research.layout import cut
from pipeline.sources.address import source_kind
from pipeline.sources.headings import headings_above
from pipeline.text.asking import stem, stems_of, subject_words
from pipeline.text.normal_form import normalise
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import numbers_in, without_marks
from pipeline.verifying.page_text import read_page
from pipeline.verifying.rules import Disagreement, check_sentence, disagreements, disputed_ids
from pipeline.verifying.values import Checked, Page, Paragraph, Quote

_SAME = 0.7  # Share of the words of the shorter one, those of the topic aside, from which it says nothing of its own
_LEAST_OWN = 3  # Words beside the topic's by which two statements are compared; with fewer, all words are


class _Said(NamedTuple):
    words: frozenset[str]  # The stems of its content words, numbers left out
    numbers: frozenset[str]


def _says_again(one: _Said, other: _Said, topic: frozenset[str]) -> bool:
    """Whether one of the two says nothing that the other does not: no number, and hardly a word beside the topic's."""
    first, second = one.words - topic, other.words - topic
    if min(len(first), len(second)) < _LEAST_OWN:
        first, second = one.words, other.words
    both = (_Said(first, one.numbers), _Said(second, other.numbers))
    shorter, longer = sorted(both, key=lambda each: len(each.words))
    if not shorter.words or not shorter.numbers <= longer.numbers:
        return False
    return len(shorter.words & longer.words) >= _SAME * len(shorter.words)


_MOST_SENTENCES = 3  # Sentences of the head; a passage on a disagreement counts as two, one for each side
_LEAST_RELEVANCE = 0.35
_LEAST_OF_BEST = 0.7  # Share of what the best claim holds of them that the others must hold
_OWN_WORTH, _SITES_WORTH = 0.15, 0.1
_PLACE_COSTS = 0.04
"""What counts beside a claim's relevance: the topic's words that it has itself, and other sites that support it; and
what it costs that others of its section stand before it."""
_NEW_SIDE_WORTH = 0.3
"""What it counts that a claim answers a question of the topic that no earlier one of the head does."""
_ASIDE, _GOES_ON = (re.compile(values.PATTERNS["claim"][name], re.IGNORECASE) for name in ("aside", "goes_on"))
_GOING_ON_COSTS = 0.15  # What leans on a sentence before, and what that costs


class _Candidate(NamedTuple):
    checked: Checked
    relevance: float
    """The share of the words of the topic, or of its question there, that it holds with the headings above it."""
    score: float
    sentences: int
    sides: frozenset[str]  # The question of the topic that it answers; empty where its section asks something else


def _claims_of_head(
    topic: str, plan: values.Plan, claims: Sequence[Checked], pages: Sequence[Page], disputes: Sequence[Collection[str]]
) -> list[Checked]:
    """The claims that answer the topic best, the best first: at most three sentences, and half of the claims.

    A topic of several questions is answered on all of them where it can be. Of each of the `disputes`, the ids of
    claims on which pages disagree, there is one claim at most: for it both sides are to be told.
    """
    by_url = {page.url: page for page in pages}
    disputed = {name for names in disputes for name in names}
    before = Counter[int]()
    left: list[_Candidate] = []
    for each in claims:
        if not _ASIDE.search(each.claim.text):
            found = _candidate(each, topic, plan, by_url.get(each.claim.quotes[0].url), before[each.claim.section])
            left.append(found._replace(sentences=2) if each.claim.id in disputed else found)
        before[each.claim.section] += 1
    best = max((each.relevance for each in left), default=0.0)
    left = [each for each in left if each.relevance >= max(_LEAST_RELEVANCE, _LEAST_OF_BEST * best)]
    head: list[Checked] = []
    answered = frozenset[str]()
    room = _MOST_SENTENCES
    while (left := [each for each in left if each.sentences <= room]) and len(head) < -(-len(claims) // 2):
        chosen = max(left, key=lambda each: each.score + _NEW_SIDE_WORTH * (not each.sides <= answered))
        left.remove(chosen)
        head.append(chosen.checked)
        room -= chosen.sentences
        settled = {name for names in disputes if chosen.checked.claim.id in names for name in names}
        left = [each for each in left if each.checked.claim.id not in settled]
        answered |= chosen.sides
    return head


def _candidate(checked: Checked, topic: str, plan: values.Plan, page: Page | None, before: int) -> _Candidate:
    claim, language = checked.claim, values.plan_language(plan)

    def share_in(question: str, *texts: str) -> float:
        words = {stem(word.text) for word in subject_words(question, language) if not word.general}
        return len(words & stems_of(" ".join(texts), language)) / len(words) if words else 1.0

    above = [page.title, *headings_above(page.headings, claim.quotes[0].start)] if page else []
    topic, section = " ".join(topic.split()).casefold(), plan.sections[claim.section]
    is_own = section.rstrip("?？").casefold() in topic
    answers = share_in(section if is_own else topic, claim.text, *above)
    score = answers + _OWN_WORTH * share_in(topic, claim.text)
    score += _SITES_WORTH * (len(checked.supporters) > 1)
    score -= _GOING_ON_COSTS * bool(_GOES_ON.search(claim.text))
    score -= _PLACE_COSTS * before
    sentences = len(sentence_spans(claim.text, language))
    return _Candidate(checked, answers, score, sentences, frozenset([section] if is_own else []))


_WITHOUT_BLANKS = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")
_MOST_SOURCES = 3
_SAID_ALREADY = "another claim of the report says the same"
_DISPUTED = "a page says the opposite; `verification.md` has both sides"
_MOST_DISPUTES = 5  # Disagreements in a report; `verification.md` has the others
_BLANK_BEFORE_STOP = re.compile(r" (?=[.,;。、])")


class SentenceAnswer(BaseModel):
    """One sentence as the model drafts it."""

    text: str
    claims: list[str]


class ParagraphAnswer(BaseModel):
    """One paragraph as the model drafts it."""

    paragraph: int
    sentences: list[SentenceAnswer]


class SectionAnswer(BaseModel):
    """What the model answers about one section."""

    paragraphs: list[ParagraphAnswer]


async def _drafted_texts(
    plan: values.Plan, paragraphs: Sequence[Sequence[Checked]], pages: Sequence[Page], model: Model
) -> dict[int, str]:
    """The texts that the model drafted, by place; a sentence that its pages do not support gives way to its claims."""
    sections: dict[int, list[int]] = {}
    for place, claims in enumerate(paragraphs):
        if claims[0].claim.section != values.ANSWER:
            sections.setdefault(claims[0].claim.section, []).append(place)
    asked = [
        _draft_section(plan.sections[section], section, places, paragraphs, model)
        for section, places in sections.items()
    ]
    results, failures = await model.ask_all(asked)
    by_url = {page.url: page for page in pages}
    texts: dict[int, str] = {}
    refused = 0
    for places, result in zip(sections.values(), results, strict=True):
        if result is not None:
            drafts = {place: _checked_draft(answer, paragraphs[place], by_url) for place, answer in result.items()}
            texts |= {place: text for place, (text, _) in drafts.items()}
            refused += sum(count for _, count in drafts.values())
            if len(result) < len(places):
                model.note("Some paragraphs are the sources' own sentences: the model did not draft them.")
    for failure in failures:
        model.note(str(failure))
    if refused:
        model.note(f"Sentences of the model that went beyond the cited pages, and gave way to the claims: {refused}.")
    return texts


async def _draft_section(
    heading: str, section: int, places: Sequence[int], paragraphs: Sequence[Sequence[Checked]], model: Model
) -> dict[int, ParagraphAnswer]:
    texts = [("HEADING", heading)]
    for number, place in enumerate(places, start=1):
        claims = "\n".join(f"{each.claim.id}: {each.claim.text}" for each in paragraphs[place])
        texts.append((f"CLAIMS OF PARAGRAPH {number}", claims))
    schema, read = SectionAnswer.model_json_schema(), SectionAnswer.model_validate
    answer = await model.ask(TASKS["paragraphs"], texts, schema, read, f"the text of section {section + 1}")
    drafts = answer.paragraphs if answer else []
    return {places[each.paragraph - 1]: each for each in drafts if 1 <= each.paragraph <= len(places)}


def _checked_draft(answer: ParagraphAnswer, claims: Sequence[Checked], pages: Mapping[str, Page]) -> tuple[str, int]:
    """The sentences that hold, with the own words of every claim that none of them states, and how many do not."""
    left = {each.claim.id: each for each in claims}
    sentences: list[str] = []
    refused = 0
    for drafted in answer.sentences:
        stated = [each for each in claims if each.claim.id in drafted.claims]
        text = " ".join(drafted.text.split())
        if not any(each.claim.id in left for each in stated):
            refused += 1
        elif _holds(text, stated, pages):
            sentences.append(text)
            left = {name: each for name, each in left.items() if each not in stated}
        else:
            refused += 1
            sentences += [each.claim.text for each in stated if left.pop(each.claim.id, None)]
    return _joined([*sentences, *(each.claim.text for each in left.values())]), refused


def _holds(text: str, stated: Sequence[Checked], pages: Mapping[str, Page]) -> bool:
    quotes = [quote for each in stated for quote in each.claim.quotes]
    words = " ".join([*(each.claim.text for each in stated), *(quote.text for quote in quotes)])
    cited = [read_page(pages[url]) for url in dict.fromkeys(quote.url for quote in quotes) if url in pages]
    return is_fit(text, words) and bool(cited) and check_sentence(text, cited).verdict == "supported"


class _ParagraphClaims(NamedTuple):
    """The claims of one paragraph in order: all of them stand on each of its pages, of which there is at least one."""

    section: int
    urls: tuple[str, ...]
    claims: tuple[Checked, ...]


async def write_report(
    intake: values.Intake, plan: values.Plan, verified: values.Verified, pages: Sequence[Page], model: Model | None
) -> values.Written:
    """The report's paragraphs by sections, and the claims that are not in it, each with why.

    Every paragraph cites pages that each hold all of its claims. With a model its sentences are the model's where the
    check of claims finds them on these pages, else the claims' own words. First stand the claims that answer the topic
    best, in their own words and nowhere else, and what sources disagree about where that is what is asked; last the
    other disagreements.
    """
    language = values.plan_language(plan)
    found = disagreements(verified.claims)
    disputed = disputed_ids(verified.claims)
    # What is disputed first, so that nothing that says the same is left.
    ordered = sorted(verified.claims, key=lambda checked: checked.claim.id not in disputed)
    kept, repeated = _without_repeats(ordered, language, stems_of(intake.topic, language))
    stated = [checked for checked in kept if checked.claim.id not in disputed]
    passages = _dispute_paragraphs(found, pages, len(plan.sections), language)
    told = [each.disputed_ids for each in passages]
    left = {each.claim.id for each in stated}.union(*told)
    head = _claims_of_head(intake.topic, plan, [each for each in kept if each.claim.id in left], pages, told)
    first = [each._replace(claim=each.claim._replace(section=values.ANSWER)) for each in head if each in stated]
    others = [each for each in stated if each not in head]
    grouped = _paragraphs_of([*first, *others], pages, word_for_word=model is None)
    drafts = await _drafted_texts(plan, [each.claims for each in grouped], pages, model) if model else {}
    paragraphs = tuple(
        Paragraph(
            each.section,
            drafts.get(number) or _joined([checked.claim.text for checked in each.claims]),
            tuple(checked.claim.id for checked in each.claims),
            each.urls,
        )
        for number, each in enumerate(grouped)
    )
    asked_about = {each.claim.id for each in head}
    answering = [
        each._replace(section=values.ANSWER) for each in passages if not asked_about.isdisjoint(each.disputed_ids)
    ]
    passages = [each for each in passages if asked_about.isdisjoint(each.disputed_ids)]
    left_out = [checked for checked in verified.claims if checked.verdict != "supported"]
    left_out += [
        checked._replace(problems=(*checked.problems, _DISPUTED)) for checked in kept if checked.claim.id in disputed
    ]
    left_out += repeated
    return values.Written(
        values.title_of(intake.topic), (*answering, *paragraphs, *passages), tuple(left_out), has_head=True
    )


def _without_repeats(
    claims: Sequence[Checked], language: str, topic: frozenset[str]
) -> tuple[list[Checked], list[Checked]]:
    kept: list[Checked] = []
    repeated: list[Checked] = []
    seen: list[_Said] = []
    for checked in claims:
        if checked.verdict != "supported":
            continue
        numbers = frozenset(numbers_in(checked.claim.text))
        words = _Said(stems_of(checked.claim.text, language) - numbers, numbers)
        if any(_says_again(words, other, topic) for other in seen):
            repeated.append(checked._replace(problems=(*checked.problems, _SAID_ALREADY)))
        else:
            kept.append(checked)
            seen.append(words)
    return kept, repeated


def _paragraphs_of(claims: Sequence[Checked], pages: Sequence[Page], *, word_for_word: bool) -> list[_ParagraphClaims]:
    """The claims by section and by the pages that they cite, at most 4 together, in the order of their pages' text.

    With `word_for_word`, a page that only supports a claim is cited where the claim stands there as it is.
    """
    texts = {page.url: normalise(without_marks(page.text)) for page in pages} if word_for_word else None
    languages = {page.url: page.lang for page in pages}
    cited = {checked.claim.id: _cited_pages(checked, languages, texts) for checked in claims}
    found: dict[tuple[int, frozenset[str]], list[Checked]] = {}
    for checked in claims:
        found.setdefault((checked.claim.section, frozenset(cited[checked.claim.id])), []).append(checked)
    grouped = [
        _ParagraphClaims(section, cited[group[0].claim.id], part)
        for (section, _), group in found.items()
        for part in _even_parts(sorted(group, key=lambda each: (each.claim.quotes[0].url, each.claim.quotes[0].start)))
    ]
    return sorted(grouped, key=lambda each: each.section)


def _even_parts(claims: Sequence[Checked]) -> list[tuple[Checked, ...]]:
    """The claims in order, in parts of nearly the same size, none larger than a paragraph.

    One that begins with a small letter, as names of programs do, begins a part: behind a full stop nobody would know
    that a sentence begins.
    """
    runs: list[list[Checked]] = []
    for checked in claims:
        if not runs or checked.claim.text[:1].islower():
            runs.append([])
        runs[-1].append(checked)
    parts = []
    for run in runs:
        count = -(-len(run) // 4)
        size = -(-len(run) // count)
        parts += [tuple(run[first : first + size]) for first in range(0, len(run), size)]
    return parts


def _cited_pages(checked: Checked, languages: Mapping[str, str], texts: Mapping[str, str] | None) -> tuple[str, ...]:
    """The pages of a claim's quotes, then supporters of other sites in their language, with `texts` in its words."""
    urls = list(dict.fromkeys(quote.url for quote in checked.claim.quotes))
    sites = {site_key(url) for url in urls}
    form = normalise(checked.claim.text)
    for url in checked.supporters:
        same_language = languages.get(url, "") in ("", languages.get(urls[0], ""))
        if site_key(url) not in sites and same_language and (texts is None or form in texts.get(url, "")):
            urls.append(url)
            sites.add(site_key(url))
    return tuple(urls[:_MOST_SOURCES])


def _joined(sentences: Sequence[str]) -> str:
    return ("" if _WITHOUT_BLANKS.search(sentences[0]) else " ").join(sentences)


def _dispute_paragraphs(
    found: Sequence[Disagreement], pages: Sequence[Page], section: int, language: str
) -> list[Paragraph]:
    """A paragraph for each disagreement, at most 5; they state no claim: they say who says what."""
    by_url = {page.url: page for page in pages}
    words = values.report_words(language)
    known = [each for each in found if all(quote.url in by_url for side in each.sides for quote in side)]
    paragraphs = []
    for each in known[:_MOST_DISPUTES]:
        quotes = [quote for side in each.sides for quote in side[:2]]
        text = words.disagree + " ".join(_said_by(quote, by_url[quote.url], words) for quote in quotes)
        paragraphs.append(Paragraph(section, text, (), tuple(quote.url for quote in quotes), each.claim_ids))
    return paragraphs


def _said_by(quote: Quote, page: Page, words: values.ReportWords) -> str:
    name = " ".join(page.title.split()) or source_domain(page.url)
    said = _BLANK_BEFORE_STOP.sub("", " ".join(without_marks(quote.text).split()))
    dated, day = (words.changed_on, page.changed) if page.changed else (words.read_on, page.fetched_at[:10])
    kind = source_kind(page.url)
    told = words.document if kind == "page" and is_document(page.url) else words.kinds[kind]
    about = words.beside.join((told, dated.replace("{date}", day)))
    return str(words.side.format(name=cut(name, 80), about=about, words=cut(said, 300)))
