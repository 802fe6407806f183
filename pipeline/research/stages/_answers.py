"""The statements of pages that answer a question, the best first, none twice: reports without a model are of these."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from statistics import fmean
from typing import NamedTuple

from pipeline.research.stages._asked import (
    GENERAL_WORTH,
    AskedWord,
    anchors,
    asked_words,
    holds_names,
    rarity,
    relevance,
    side_of,
)
from pipeline.research.stages._likeness import Said, said, says_again, stems_of
from pipeline.research.stages._nearness import Told, sections_near
from pipeline.research.stages._page_statements import PageStatements, Statement, page_statements
from pipeline.research.stages._passages import ResearchPassage
from pipeline.research.stages._statements import is_said_elsewhere, names_error
from pipeline.text import meaning
from pipeline.verifying.values import Page

MOST_CLAIMS = 10
"""Statements of a section."""
_LEAST_BESIDE_BEST = 0.6
"""Share of the best answer's relevance that others of a report must have."""
_LEAST_CLEAR, _NAMED = 0.3, 0.7
"""Chance to answer, and relevance by words, from which a statement answers however much likelier others do."""
_LEAST_NEAR, _NEAREST = 0.45, 0.9
"""Share of the best answer's relevance, and of the nearest statement's cosine, from which a statement answers: it may
say in a section that is about more than the question what no other does."""
_LEAST_OF_COMMON = 0.5
"""What a word counts at least that is common on the pages read, where nothing is known of others."""
_ENOUGH_PASSAGES = 4
"""Passages from which the share of them that has a word says how common it is."""
_MOST_COMPARED = 120
"""Statements, those of the most promising parts first, that are compared by meaning."""
_WORDS_OF_PROMISE = 0.6
"""What words count beside what a part of a passage promises by what it means."""
LEAST_CHANCE = 0.2
"""Chance from which a section may answer."""
LEAST_ALONE = 0.1
"""Cosine that a statement must have without the headings above it, below which anything may stand."""
_ON_ERRORS = ("error", "exception", "fehler", "ausnahme", "エラー", "例外", "错误", "异常")


_RELEASE_NOTES = re.compile(
    r"\bwhat.?s new\b|\bchange ?log\b|\brelease (?:notes|history)\b|\bversionshinweise|\bneu in version"
    r"|リリースノート|変更履歴|新機能|更新日志|发行说明|版本说明",
    re.IGNORECASE,
)
"""Titles of pages that tell what once was new, and how it was before."""
_ASKS_FOR_NEWS = re.compile(
    r"\b(?:new|news|chang\w*|versions?|releases?d?|since|histor\w*|neu\w*|änder\w*|seit|geschichte)\b|[0-9]\.[0-9]"
    r"|新|変更|バージョン|歴史|版本|更新|历史",
    re.IGNORECASE,
)


class Answer(NamedTuple):
    """A statement that answers a question."""

    statement: Statement
    """The statement."""
    relevance: float
    """How likely its section answers, from 0 to 1."""
    score: float
    """By which answers are ordered."""
    by_words: float
    """How far it answers by its words, from 0 to 1."""
    alone: float
    """The cosine of the statement without the headings above it, and of the question."""
    side: int = -1
    """Which side of a choice it speaks of, by the number of its phrase; -1 where nothing is to choose."""


def answers_beside(best: float, relevance_: float, by_words: float, nearness: float) -> bool:
    """Whether a statement is an answer beside the best one: not much less likely one, or near to what is asked.

    That is, it names that, or its `nearness` is one of the greatest: its cosine, as a share of the nearest one's.
    """
    return (
        relevance_ >= _LEAST_BESIDE_BEST * best
        or (relevance_ >= _LEAST_CLEAR and by_words >= _NAMED)
        or (relevance_ >= _LEAST_NEAR * best and nearness >= _NEAREST)
    )


class Answers:
    """The statements of passages, asked for any number of questions; none is given twice."""

    def __init__(
        self,
        passages: Sequence[ResearchPassage],
        language: str,
        shares: Mapping[str, float] | None = None,
        topic: str = "",
    ) -> None:
        """Ask these passages about a topic, of which each question is a part, or which is asked in it.

        `shares` are the shares of all pages that hold a word, where they are known.
        """
        self.topic = topic
        self.passages = passages
        self.language = language
        self.shares = shares
        self.given: list[Said] = []
        self.pages: dict[str, PageStatements] = {}

    def read(self, page: Page) -> PageStatements:
        """The page as its statements are read from it."""
        if page.url not in self.pages:
            self.pages[page.url] = page_statements(page, self.language)
        return self.pages[page.url]

    @cached_property
    def words(self) -> dict[ResearchPassage, frozenset[str]]:
        """The content words of each passage, those of the title and of all headings above or in it included."""
        return {each: self.read(each.page).words_of_passage(each) for each in self.passages}

    @cached_property
    def words_of_pages(self) -> dict[str, frozenset[str]]:
        """The content words of the passages of each page, by its URL."""
        found: dict[str, frozenset[str]] = defaultdict(frozenset)
        for passage, words in self.words.items():
            found[passage.page.url] |= words
        return found

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The content words of all passages."""
        return frozenset[str]().union(*self.words_of_pages.values())

    def asked(self, question: str) -> list[AskedWord]:
        """The words of the question, as the passages have them.

        One that none of the pages has, and that is no name, counts little: who asks in everyday words uses some that no
        page does, and these are rare. Where nobody knows how common a word is among all pages, one that stands in many
        passages read counts less, but no less than half; the words of a title that is not everybody's are what pages
        were found for, and count whole.
        """
        asked = [
            word if word.name or self.is_on_a_page(word) else word._replace(weight=word.weight * GENERAL_WORTH)
            for word in asked_words(question, self.language, self.vocabulary, self.shares)
        ]
        if self.shares or len(self.words) < _ENOUGH_PASSAGES:
            return asked
        pages = {each.page.url: self.read(each.page) for each in self.passages}.values()
        titles = [page.content(page.page.title) for page in pages]
        found: list[AskedWord] = []
        for word in asked:
            titled = sum(map(word.is_in, titles))
            known = sum(map(word.is_in, self.words.values())) / max(1, len(self.words))
            common = 0.0 if 0 < titled <= len(titles) / 2 else known
            found.append(word._replace(weight=word.weight * max(_LEAST_OF_COMMON, rarity(common))))
        return found

    def is_on_a_page(self, word: AskedWord) -> bool:
        """Whether one of the pages has the word."""
        return any(map(word.is_in, self.words_of_pages.values()))

    def lacks_rare_word(self, asked: Sequence[AskedWord]) -> bool:
        """Whether none of the pages has a rare word that is asked, here or elsewhere in the topic."""
        return any(word.rare and not self.is_on_a_page(word) for word in (*asked, *self.asked(self.topic)))

    def relevance_of(self, question: str, text: str, page: Page, place: int) -> float:
        """How far a text that rests on this place of a page answers the question, from 0 to 1."""
        asked = self.asked(question)
        read = self.read(page)
        near = read.content(text) | read.words_above(place)
        around = next((words for each, words in self.words.items() if each.holds(page, place)), near)
        by_words = max(relevance(asked, near, around), self.relevance_of_section(asked, page, place))
        part = (page.url, read.section_of(place))
        found = [self.told(*each) for each in self.promising(question, asked)]
        if part not in {told.part for told in found}:
            found += [
                self.told(each, max(self.by_words(asked, each, self.words[passage])))
                for passage in self.passages
                if passage.page.url == page.url
                for each in read.statements_in(passage)
                if part[1].start <= each.start < part[1].end
            ]
        found.append(Told(part, self.in_context(text, page, place), by_words))
        sections = sections_near(question, found, self.language, unknown=self.lacks_rare_word(asked))
        return round(sections[part].chance(self.language), 4)

    def give(self, question: str, near: Sequence[Answer], most: int = MOST_CLAIMS) -> list[Answer]:
        """The first of the answers `near` to the question, so many at most; none that says what was given."""
        topic = stems_of(question, self.language)
        chosen: list[Answer] = []
        for answer in near:
            if len(chosen) < most and self.take(answer.statement.text, topic):
                chosen.append(answer)
        return chosen

    def near(self, question: str) -> list[Answer]:
        """The statements that answer the question and are not far from the best one, the best first."""
        return self.near_best(
            sorted(
                self.answers(question),
                key=lambda each: (-each.score, each.statement.page.url, each.statement.start),
            )
        )

    def near_best(self, found: Sequence[Answer]) -> list[Answer]:
        """The answers that are not far from the best one on their side, in order."""
        best: dict[int, float] = defaultdict(float)
        for each in found:
            best[each.side] = max(best[each.side], each.relevance)
        nearest = max((each.alone for each in found), default=1.0)
        return [
            each
            for each in found
            if answers_beside(best[each.side], each.relevance, each.by_words, each.alone / nearest)
        ]

    def take(self, text: str, topic: frozenset[str]) -> bool:
        """Whether nothing that was given says the same; the text then counts as given."""
        told = said(text, self.language)
        if any(says_again(told, other, topic) for other in self.given):
            return False
        self.given.append(told)
        return True

    def know(self, text: str) -> None:
        """Count a text as given that stands in the report whatever else does."""
        self.given.append(said(text, self.language))

    def answers(self, question: str) -> Iterator[Answer]:
        """All statements that answer the question, with their scores.

        Release notes tell what held once: they answer where they are asked for, or no other page does nearly as likely.
        """
        asked = self.asked(question)
        on_errors = any(word in question.casefold() for word in _ON_ERRORS)
        found = [
            each
            for each in self.likely(question, asked)
            if not is_said_elsewhere(each.statement.text) and (on_errors or not names_error(each.statement.text))
        ]
        lasting = [each for each in found if not _RELEASE_NOTES.search(each.statement.page.title)]
        likeliest, best = (max((each.relevance for each in those), default=0.0) for those in (lasting, found))
        told = lasting if likeliest >= _LEAST_BESIDE_BEST * best and not _ASKS_FOR_NEWS.search(question) else found
        for answer in told:
            yield answer._replace(side=side_of(asked, answer.statement.words | answer.statement.headings))

    def by_words(self, asked: Sequence[AskedWord], statement: Statement, around: frozenset[str]) -> tuple[float, float]:
        """How far a statement, among these words of its passage, and its section answer by their words."""
        own = relevance(asked, statement.words | statement.headings, around & statement.section)
        return own, self.relevance_of_section(asked, statement.page, statement.start)

    def likely(self, question: str, asked: Sequence[AskedWord]) -> list[Answer]:
        """The statements of the sections that may answer, each with how likely its section does."""
        found = [(each, self.told(each, by_words)) for each, by_words in self.promising(question, asked)]
        unknown = self.lacks_rare_word(asked)
        near = sections_near(question, [told for _, told in found], self.language, unknown=unknown)
        chances = {part: round(each.chance(self.language), 4) for part, each in near.items()}
        likely = [(each, told) for each, told in found if chances[told.part] >= LEAST_CHANCE]
        cosines = meaning.cosines(question, [told.text for _, told in likely], self.language)
        alone = meaning.cosines(question, [each.text for each, _ in likely], self.language)
        return [
            Answer(
                each, chance := chances[told.part], round(chance + float(cosine) / 100, 6), told.by_words, float(own)
            )
            for (each, told), cosine, own in zip(likely, cosines, alone, strict=True)
            if own >= LEAST_ALONE
        ]

    def told(self, statement: Statement, by_words: float) -> Told:
        """A statement as its section is compared with a question."""
        page, start = statement.page, statement.start
        return Told(
            (page.url, self.read(page).section_of(start)), self.in_context(statement.text, page, start), by_words
        )

    def promising(self, question: str, asked: Sequence[AskedWord]) -> list[tuple[Statement, float]]:
        """The statements of the parts of passages that promise an answer, the most promising first.

        A part promises what its first statement does with the headings above it, and the words of all of them. Each
        statement has how far it answers by its words. Pages without the names that are asked promise nothing. At most
        120, for to compare a statement takes long; so first ones are compared of the parts whose headings promise most.
        """
        parts: dict[tuple[ResearchPassage, str], list[tuple[Statement, float]]] = defaultdict(list)
        named = {url for url, words in self.words_of_pages.items() if holds_names(asked, words)}
        for passage in self.passages:
            if passage.page.url not in named:
                continue
            read = self.read(passage.page)
            for each in read.statements_in(passage):
                by_words = max(self.by_words(asked, each, self.words[passage]))
                parts[passage, read.heading_of(each.start)].append((each, by_words))
        of_words = {part: _WORDS_OF_PROMISE * fmean(by_words for _, by_words in those) for part, those in parts.items()}
        first = {part: f"{part[1]}: {those[0][0].text}" for part, those in parts.items()}
        chosen = list(parts)
        for most, told in ((2 * _MOST_COMPARED, {part: part[1] for part in parts}), (_MOST_COMPARED, first)):
            near = meaning.cosines(question, [told[part] for part in chosen], self.language)
            promise = {part: float(cosine) + of_words[part] for part, cosine in zip(chosen, near, strict=True)}
            chosen.sort(key=lambda part: -promise[part])
            before = accumulate((len(parts[part]) for part in chosen), initial=0)
            chosen = [part for part, count in zip(chosen, before, strict=False) if count < most]
        return [each for part in chosen for each in parts[part]][:_MOST_COMPARED]

    def in_context(self, text: str, page: Page, place: int) -> str:
        """A text that rests on this place of a page, behind what stands above it."""
        return f"{self.read(page).heading_of(place)}: {text}"

    def relevance_of_section(self, asked: Sequence[AskedWord], page: Page, place: int) -> float:
        """How far the headings above this place of a page answer, with all that stands below the telling one.

        That is the highest one that has a word that tells what is asked about.
        """
        read = self.read(page)
        sections = read.sections_above(place)
        near = frozenset[str]().union(*(words for words, _ in sections))
        telling = next(
            (section for words, section in sections if any(word.is_in(words) for word in anchors(asked))), None
        )
        return relevance(asked, near, read.words_of_section(telling)) if telling else 0.0
