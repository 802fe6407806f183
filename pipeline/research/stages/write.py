"""The report's paragraphs: verified claims in a readable order, in their own words or in checked ones of a model."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipeline.research.report_words import plan_language
from pipeline.research.running.model import Model
from pipeline.research.stages.disagreement import disagreements
from pipeline.research.stages.write_model import drafted_texts
from pipeline.research.values import Intake, Plan, Verified, Written
from pipeline.text.normal_form import normalise
from pipeline.text.urls import site_key
from pipeline.text.words import content_words, without_marks
from pipeline.verifying.statements import WITHOUT_BLANKS, likeness
from pipeline.verifying.values import Checked, Page, Paragraph

MOST_OF_A_PARAGRAPH = 4
MOST_SOURCES = 3
"""Sources that one paragraph cites."""
SAME = 0.8
SAID_ALREADY = "another claim of the report says the same"


class ParagraphClaims(NamedTuple):
    """The claims of one paragraph: all of them stand on each of its pages."""

    section: int
    """Index of the section."""
    urls: tuple[str, ...]
    """Canonical URLs of the pages, at least one."""
    claims: tuple[Checked, ...]
    """In the order in which they are read."""


async def write_report(
    intake: Intake, plan: Plan, verified: Verified, pages: Sequence[Page], model: Model | None
) -> Written:
    """The report's paragraphs by sections, and the claims that are not in it, each with why.

    Every paragraph cites pages that each hold all of its claims. With a model its sentences are the model's where the
    check of claims finds them on these pages, else the claims' own words. Behind the plan's sections stands what
    sources disagree about. No supported claim and no disagreement, no paragraph.

    Raises:
        PayloadError: the model cannot be asked about any section.
    """
    language = plan_language(plan)
    kept, repeated = without_repeats(verified.claims, language)
    grouped = paragraphs_of(kept, pages, word_for_word=model is None)
    drafts = await drafted_texts(plan, [each.claims for each in grouped], pages, model) if model else {}
    paragraphs = tuple(
        Paragraph(
            each.section,
            drafts.get(number) or own_words(each.claims),
            tuple(checked.claim.id for checked in each.claims),
            each.urls,
        )
        for number, each in enumerate(grouped)
    )
    disputed = disagreements(verified.claims, pages, len(plan.sections))
    left_out = [checked for checked in verified.claims if checked.verdict != "supported"]
    return Written(title_of(intake.topic), (*paragraphs, *disputed), (*left_out, *repeated))


def title_of(topic: str) -> str:
    """The topic in one line, with a capital letter."""
    words = " ".join(topic.split())
    return words[:1].upper() + words[1:]


def without_repeats(claims: Sequence[Checked], language: str) -> tuple[list[Checked], list[Checked]]:
    """The supported claims that say something new, and those that an earlier one says in nearly the same words."""
    kept: list[Checked] = []
    repeated: list[Checked] = []
    seen: list[frozenset[str]] = []
    for checked in claims:
        if checked.verdict != "supported":
            continue
        words = frozenset(content_words(checked.claim.text, language))
        if any(likeness(words, other) >= SAME for other in seen):
            repeated.append(checked._replace(problems=(*checked.problems, SAID_ALREADY)))
        else:
            kept.append(checked)
            seen.append(words)
    return kept, repeated


def paragraphs_of(claims: Sequence[Checked], pages: Sequence[Page], *, word_for_word: bool) -> list[ParagraphClaims]:
    """The claims by section and by the pages that they cite, at most 4 together, in the order of their pages' text.

    With `word_for_word`, a page that only supports a claim is cited where the claim stands there as it is.
    """
    texts = {page.url: normalise(without_marks(page.text)) for page in pages} if word_for_word else None
    languages = {page.url: page.lang for page in pages}
    cited = {checked.claim.id: cited_pages(checked, languages, texts) for checked in claims}
    found: dict[tuple[int, frozenset[str]], list[Checked]] = {}
    for checked in claims:
        found.setdefault((checked.claim.section, frozenset(cited[checked.claim.id])), []).append(checked)
    grouped = [
        ParagraphClaims(section, cited[group[0].claim.id], part)
        for (section, _), group in found.items()
        for part in even_parts(sorted(group, key=place_of))
    ]
    return sorted(grouped, key=lambda each: each.section)


def even_parts(claims: Sequence[Checked]) -> list[tuple[Checked, ...]]:
    """The claims in order, in parts of nearly the same size, none larger than a paragraph."""
    count = -(-len(claims) // MOST_OF_A_PARAGRAPH)
    size = -(-len(claims) // count)
    return [tuple(claims[first : first + size]) for first in range(0, len(claims), size)]


def cited_pages(checked: Checked, languages: Mapping[str, str], texts: Mapping[str, str] | None) -> tuple[str, ...]:
    """The pages that a claim cites: those of its quotes, then supporters of other sites in their language, at most 3.

    With `texts`, the normal forms of the pages, such a supporter must have the claim's own words.
    """
    urls = list(dict.fromkeys(quote.url for quote in checked.claim.quotes))
    sites = {site_key(url) for url in urls}
    form = normalise(checked.claim.text)
    for url in checked.supporters:
        same_language = languages.get(url, "") in ("", languages.get(urls[0], ""))
        if site_key(url) not in sites and same_language and (texts is None or form in texts.get(url, "")):
            urls.append(url)
            sites.add(site_key(url))
    return tuple(urls[:MOST_SOURCES])


def place_of(checked: Checked) -> tuple[str, int]:
    """Where the claim's first quote stands."""
    quote = checked.claim.quotes[0]
    return quote.url, quote.start


def own_words(claims: Sequence[Checked]) -> str:
    """The claims' own sentences, one after the other."""
    sentences = [checked.claim.text for checked in claims]
    return ("" if WITHOUT_BLANKS.search(sentences[0]) else " ").join(sentences)
