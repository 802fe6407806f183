"""What is still missing after a round: the sections without enough of an answer, and queries that may find it.

Source: pipeline/contracts/research.md#rounds.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pipeline.errors import ProviderError
from pipeline.models.asking import Model
from pipeline.research.search.documents import is_document
from pipeline.research.stages._likeness import stems_of
from pipeline.research.stages._plan import clean_line
from pipeline.research.values import Plan, plan_language
from pipeline.text.asking import SubjectWord, subject_words
from pipeline.verifying.values import Checked, Page

_ENOUGH_CLAIMS = 3
_ENOUGH_SOURCES = 2
"""Claims and independent sources from which a section counts as answered."""
_MOST_SECTIONS = 3
"""Sections that one round asks more about, the first ones."""
_MOST_QUERIES = 4
"""Queries of one round after the first."""
_MOST_SUBJECT, _MOST_MISSING, _MOST_HEADING_WORDS = 3, 4, 2
"""Words of a query that say what topic and section are about, those of the section that no claim has, and those that
headings add."""
_FEW_PAGES, _MOST_OF_PAGES = 6, 0.5
"""Pages from which, and share of them above which, a word of headings is one of the site's."""
_WORTH = 1_000
"""What a heading counts that alone has a word of what is asked."""
_MOST_SHOWN = 6
"""Claims of a section that the model is shown."""
_LONGEST_SHOWN = 300
_MOST_HEADINGS = 20
_MOST_ASKED_SHOWN = 40
_OPERATOR = re.compile(r"\b(?:site|inurl|allinurl|intitle|allintitle|intext|filetype|ext|related|cache|link):\S*", re.I)

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"queries": {"type": "array", "items": {"type": "string"}}},
    "required": ["queries"],
    "additionalProperties": False,
}


class OpenSection(NamedTuple):
    """A section that has not enough of an answer."""

    number: int
    """Its index in the plan."""
    heading: str
    """What it asks."""
    claims: tuple[Checked, ...]
    """The claims that answer it, in order."""


class Known(NamedTuple):
    """What a run knows when it looks for more."""

    topic: str
    plan: Plan
    pages: Sequence[Page]
    """The pages that were read."""
    queries: Sequence[str]


def open_sections(plan: Plan, claims: Sequence[Checked], pages: Iterable[Page]) -> list[OpenSection]:
    """The sections without enough of an answer, those with the fewest claims first.

    Three claims answer a section that their pages support and whose own words name something of what it asks about,
    from two sources that do not depend on each other: pages of different sites, or different documents of the user's.
    """
    language = plan_language(plan)
    sites = {page.url: page.url if is_document(page.url) else page.site for page in pages}
    found = []
    for number, heading in enumerate(plan.sections):
        about = _stems((word.text for word in subject_words(heading, language) if not word.general), language)
        supported = [each for each in claims if each.claim.section == number and each.verdict == "supported"]
        own = tuple(each for each in supported if not about or about & stems_of(each.claim.text, language))
        sources = {sites[url] for each in own for url in each.supporters if url in sites}
        if len(own) < _ENOUGH_CLAIMS or len(sources) < _ENOUGH_SOURCES:
            found.append(OpenSection(number, heading, own))
    return sorted(found, key=lambda section: len(section.claims))


async def follow_up(missing: Sequence[OpenSection], known: Known, model: Model) -> tuple[str, ...]:
    """At most 4 new queries for what is missing: the model's, or where it has none of use, queries made of words.

    Its notes say where it gives none, or cannot be asked.
    """
    asked = _Asked(known.queries, plan_language(known.plan))
    wanted = missing[:_MOST_SECTIONS]
    try:
        said = await _queries_of_model(wanted, known, model)
    except ProviderError as error:
        model.note(str(error))
        said = []
    queries = [query for query in said if asked.is_new(query)][:_MOST_QUERIES]
    if queries:
        return tuple(queries)
    model.note("The queries for what was missing are made of the words of what is asked, and of headings.")
    found: list[str] = []
    for section in wanted:
        tried = known._replace(queries=(*known.queries, *found))
        found += islice(filter(asked.is_new, queries_from_words(section, tried)), 1)
    return tuple(found)


class _Asked:
    """The queries that were asked, by the stems of their words."""

    def __init__(self, queries: Iterable[str], language: str) -> None:
        self.language = language
        self.known = {stems_of(query, language) for query in queries}

    def is_new(self, query: str) -> bool:
        """Whether nobody has asked for these words, in any order; from now on somebody has."""
        words = stems_of(query, self.language)
        if not words or words in self.known:
            return False
        self.known.add(words)
        return True


async def _queries_of_model(missing: Sequence[OpenSection], known: Known, model: Model) -> list[str]:
    """The model's queries for what is missing, in one call for all sections; none where it gave no usable answer.

    Raises:
        ProviderError: it cannot be asked.
    """
    texts = []
    for number, section in enumerate(missing, start=1):
        told = [each.claim.text[:_LONGEST_SHOWN] for each in section.claims[:_MOST_SHOWN]]
        texts.append((f"QUESTION {number}", section.heading))
        texts.append((f"ANSWERED SO FAR {number}", "\n".join(told) or "Nothing."))
    headings = [words for words, _ in Counter(_headings(known.pages)).most_common(_MOST_HEADINGS)]
    texts.append(("HEADINGS OF PAGES READ", "\n".join(each[:_LONGEST_SHOWN] for each in headings) or "None."))
    texts.append(("QUERIES ASKED ALREADY", "\n".join(known.queries[-_MOST_ASKED_SHOWN:])))
    said = await model.ask(_task_words(), texts, _SCHEMA, _read_queries, "what is missing")
    return [line for each in said or () if (line := clean_line(_OPERATOR.sub(" ", each)))]


def _task_words() -> str:
    """What the model is to do about sections without enough of an answer."""
    return (
        "Find what is missing in a research report. The questions below are not answered yet, or not enough; what is "
        f"answered so far stands below each. `queries` are at most {_MOST_QUERIES} queries for a search engine that "
        "may find what is missing, the most promising first. Each is on one question and asks for something else than "
        "those that were asked already, in the words of those who know the subject: names, technical terms, other "
        "words for the same thing. At most 10 words each, no URL, no search operator. An empty list where no other "
        "query can help."
    )


def _read_queries(value: Any) -> list[str]:
    """The queries of the model's answer.

    Raises:
        ValueError: it has another form.
    """
    queries = value.get("queries") if isinstance(value, dict) else None
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ValueError("`queries` must be a list of strings")
    return queries


def queries_from_words(section: OpenSection, known: Known) -> Iterator[str]:
    """Queries for what a section lacks, the best first, made of words.

    They hold words of the section that no claim has, what it is about, and words of headings on pages that were read
    that stand beside these: people do not ask in the words of those who answer.
    """
    language = plan_language(known.plan)
    held = _stems((each.claim.text for each in section.claims), language)
    words = subject_words(section.heading, language)
    subject = _subject_of(words, subject_words(known.topic, language), language)
    lacking = [word.text for word in words if not stems_of(word.text, language) <= held]
    missing = [word for word in lacking if word not in subject][:_MOST_MISSING]
    specific = [word.text for word in words if not word.general and not word.scope]
    added = _heading_words(specific or subject, known, language)
    for first in range(0, max(1, len(added)), _MOST_HEADING_WORDS):
        beside = added[first : first + _MOST_HEADING_WORDS]
        yield _joined(subject, missing, beside)
        yield _joined(subject, (), beside)
    yield _joined(subject, missing, ())


def _joined(*parts: Iterable[str]) -> str:
    """The words one after the other, each once."""
    return " ".join(dict.fromkeys(word for part in parts for word in part))


def _subject_of(section: Sequence[SubjectWord], topic: Sequence[SubjectWord], language: str) -> list[str]:
    """What a section is about, in a few words: the topic's names and its own, with the topic's where it has none of it.

    A name says more than any other word, and another one that only says where says little.
    """
    names = [word.text for word in topic if word.name]
    own, of_topic = ([word.text for word in words if not word.general and not word.scope] for words in (section, topic))
    alone = _stems(own, language).isdisjoint(_stems(of_topic, language))
    known = names or (of_topic if alone else [])
    return list(dict.fromkeys([*known[:_MOST_SUBJECT], *own[:_MOST_SUBJECT]]))


def _stems(words: Iterable[str], language: str) -> frozenset[str]:
    return frozenset[str]().union(*(stems_of(word, language) for word in words))


def _heading_words(asked: Sequence[str], known: Known, language: str) -> list[str]:
    """The words that headings have beside a word of what is asked, the best first.

    A heading counts for more the fewer others have its words of what is asked. Words that fit any subject or stand on
    most pages say nothing, and those of earlier queries were tried.
    """
    stems, tried = _stems(asked, language), _stems(known.queries, language)
    headings = [(each, stems_of(each, language)) for page in known.pages for each in _headings([page])]
    near = Counter(stem for _, words in headings for stem in words & stems)
    pages = [_stems(_headings([page]), language) for page in known.pages]
    common = Counter(stem for words in pages for stem in words)
    most = max(_FEW_PAGES, len(pages)) * _MOST_OF_PAGES
    found: Counter[str] = Counter()
    for heading, words in headings:
        for word in subject_words(heading, language):
            own = stems_of(word.text, language)
            is_new = bool(own) and own.isdisjoint(stems | tried) and all(common[stem] <= most for stem in own)
            if is_new and not word.general and any(map(str.isalpha, word.text)):
                found[word.text] += sum(_WORTH // near[stem] for stem in words & stems)
    return [word for word, worth in found.most_common() if worth]


def _headings(pages: Iterable[Page]) -> Iterator[str]:
    """The titles and headings of the pages, each once a page."""
    for page in pages:
        written = (" ".join(each.split()) for each in (page.title, *(heading.text for heading in page.headings)))
        yield from dict.fromkeys(filter(None, written))
