"""The statements of pages that answer a question, the best first, none twice: reports without a model are of these."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from pipeline.research.stages._asked import AskedWord, anchors, asked_words, rarity, relevance, share_of, side_of
from pipeline.research.stages._likeness import Said, said, says_again, stems_of
from pipeline.research.stages._nearness import Told, sections_near
from pipeline.research.stages._page_statements import PageStatements, Statement, page_statements
from pipeline.research.stages._passages import ResearchPassage
from pipeline.research.stages._statements import names_error
from pipeline.text import meaning
from pipeline.verifying.values import Page

MOST_CLAIMS = 8
"""Statements of a section."""
_LEAST_BESIDE_BEST = 0.7
"""Share of the best answer's relevance that others of a report must have."""
_LEAST_CLEAR, _NAMED = 0.3, 0.7
"""Chance to answer, and relevance by words, from which a statement answers however much likelier others do."""
_LEAST_OF_BEST = 0.8
"""Share of the best statement's score that others must have, or their sections of the best section's."""
_LEAST_OF_COMMON = 0.5
"""What a word counts at least that is common on the pages read, where nothing is known of others."""
_OWN_WORTH = 0.5
_HEADING_WORTH = 0.3
_OPENING_WORTH = 0.15
_FIRST_WORTH = 0.1
_BEST_LENGTH = range(60, 260)
_LENGTH_WORTH = 0.05
"""What a statement's own words, the heading right above it, its first words, its place at the beginning of a paragraph
and its length count beside its relevance."""
_ENOUGH_PASSAGES = 4
"""Passages from which the share of them that has a word says how common it is."""
_MOST_COMPARED = 120
"""Statements, those first whose headings promise most, that are compared by meaning."""
_WORDS_OF_PROMISE = 0.6
"""What words count beside headings that promise an answer by what they mean."""
_LEAST_CHANCE = 0.2
"""Chance from which a section may answer."""
_LEAST_ALONE = 0.1
"""Cosine that a statement must have without the headings above it, below which anything may stand."""
_LEAST_BY_WORDS = 0.5
"""Relevance from which words alone, with no meaning known, make an answer of a statement or of its section."""
_LEAST_TELLING = 0.35
"""Weight that the most telling word of a question must have where words alone decide."""
_ON_ERRORS = ("error", "exception", "fehler", "ausnahme", "エラー", "例外", "错误", "异常")


class Answer(NamedTuple):
    """A statement that answers a question."""

    statement: Statement
    """The statement."""
    own: float
    """How far it answers by itself with the headings above it, or how likely its section does, from 0 to 1."""
    score: float
    """By which answers are ordered."""
    section: float = 0.0
    """How far these headings do by words with all that stands below them, from 0 to 1."""
    side: int = -1
    """Which side of a choice it speaks of, by the number of its phrase; -1 where nothing is to choose."""
    by_words: float = 0.0
    """How far it answers by its words where its meaning counts, from 0 to 1."""

    @property
    def relevance(self) -> float:
        """How far it answers, from 0 to 1: by itself, or as a part of its section."""
        return max(self.own, self.section)


def answers_beside(best: float, relevance_: float, by_words: float, language: str) -> bool:
    """Whether a statement is an answer beside the best one: not much less likely one, or naming what is asked."""
    clear = language in meaning.LANGUAGES and relevance_ >= _LEAST_CLEAR and by_words >= _NAMED
    return clear or relevance_ >= _LEAST_BESIDE_BEST * best


class Answers:
    """The statements of passages, asked for any number of questions; none is given twice."""

    def __init__(
        self, passages: Sequence[ResearchPassage], language: str, shares: Mapping[str, float] | None = None
    ) -> None:
        """Ask these passages; `shares` are the shares of all pages that hold a word, where they are known."""
        self.passages = passages
        self.language = language
        self.shares = shares
        self.given: list[Said] = []
        self.pages: dict[str, PageStatements] = {}
        self.by_meaning = language in meaning.LANGUAGES

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
    def vocabulary(self) -> frozenset[str]:
        """The content words of all passages."""
        return frozenset[str]().union(*self.words.values())

    def asked(self, question: str) -> list[AskedWord]:
        """The words of the question, as the passages have them.

        Where nobody knows how common a word is among all pages, one that stands in many passages read counts less, but
        no less than half; the words of a title that is not everybody's are what pages were found for, and count whole.
        """
        asked = asked_words(question, self.language, self.vocabulary, self.shares)
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

    def relevance_of(self, question: str, text: str, page: Page, place: int) -> float:
        """How far a text that rests on this place of a page answers the question, from 0 to 1."""
        asked = self.asked(question)
        read = self.read(page)
        near = read.content(text) | read.words_above(place)
        around = next((words for each, words in self.words.items() if each.holds(page, place)), near)
        by_words = max(relevance(asked, near, around), self.relevance_of_section(asked, page, place))
        if not self.by_meaning:
            return by_words
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
        return round(sections_near(question, found)[part].chance, 4)

    def give(self, question: str, most: int = MOST_CLAIMS) -> list[Answer]:
        """The statements that answer the question, the best first, so many at most; none that says what was given."""
        if most <= 0:
            return []
        found = sorted(
            self.answers(question),
            key=lambda each: (-each.score, each.statement.page.url, each.statement.start),
        )
        topic = stems_of(question, self.language)
        chosen: list[Answer] = []
        for answer in self.near_best(found):
            if len(chosen) < most and self.take(answer.statement.text, topic):
                chosen.append(answer)
        return chosen

    def near_best(self, found: Sequence[Answer]) -> list[Answer]:
        """The answers that are not far from the best one on their side, in order."""
        sides: dict[int, list[Answer]] = defaultdict(list)
        for each in found:
            sides[each.side].append(each)
        if self.by_meaning:
            best = {side: max(each.own for each in those) for side, those in sides.items()}
            return [each for each in found if answers_beside(best[each.side], each.own, each.by_words, self.language)]
        own = {side: max(each.own for each in those) for side, those in sides.items()}
        sections = {side: max(each.section for each in those) for side, those in sides.items()}
        return [
            each
            for each in found
            if each.own >= _LEAST_OF_BEST * own[each.side]
            or each.section >= max(_LEAST_BY_WORDS, _LEAST_OF_BEST * sections[each.side])
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
        """All statements that answer the question, with their scores."""
        asked = self.asked(question)
        on_errors = any(word in question.casefold() for word in _ON_ERRORS)
        found = self.near_in_meaning(question, asked) if self.by_meaning else self.near_in_words(asked)
        for answer in found:
            if on_errors or not names_error(answer.statement.text):
                yield answer._replace(side=side_of(asked, answer.statement.words | answer.statement.headings))

    def score(self, asked: Sequence[AskedWord], statement: Statement, relevance_: float) -> float:
        """By what a statement is ordered that answers by its words."""
        score = relevance_ + _OWN_WORTH * share_of(asked, statement.words)
        score += _HEADING_WORTH * share_of(asked, statement.heading)
        score += _OPENING_WORTH * bool(share_of(asked, statement.opening)) + _FIRST_WORTH * statement.first
        return round(score + _LENGTH_WORTH * (len(statement.text) in _BEST_LENGTH), 6)

    def near_in_words(self, asked: Sequence[AskedWord]) -> Iterator[Answer]:
        """The statements of passages with asked words that, with their sections, answer by half of these or more.

        None where each of these words stands on so many pages that it tells nothing.
        """
        if self.shares and max((word.weight for word in asked), default=0.0) < _LEAST_TELLING:
            return
        for passage in self.passages:
            around = self.words[passage]
            if not relevance(asked, around, around):
                continue
            for statement in self.read(passage.page).statements_in(passage):
                own, section = self.by_words(asked, statement, around)
                if max(own, section) >= _LEAST_BY_WORDS:
                    yield Answer(statement, own, self.score(asked, statement, max(own, section)), section)

    def by_words(self, asked: Sequence[AskedWord], statement: Statement, around: frozenset[str]) -> tuple[float, float]:
        """How far a statement, among these words of its passage, and its section answer by their words."""
        own = relevance(asked, statement.words | statement.headings, around & statement.section)
        return own, self.relevance_of_section(asked, statement.page, statement.start)

    def near_in_meaning(self, question: str, asked: Sequence[AskedWord]) -> list[Answer]:
        """The statements of the sections that may answer, each with how likely its section does."""
        found = [(each, self.told(each, by_words)) for each, by_words in self.promising(question, asked)]
        near = sections_near(question, [told for _, told in found])
        chances = {part: round(each.chance, 4) for part, each in near.items() if each.chance >= _LEAST_CHANCE}
        likely = [(each, told, chances[told.part]) for each, told in found if told.part in chances]
        cosines = meaning.cosines(question, [told.text for _, told, _ in likely])
        alone = meaning.cosines(question, [each.text for each, _, _ in likely])
        return [
            Answer(each, chance, round(chance + float(cosine) / 100, 6), by_words=told.by_words)
            for (each, told, chance), cosine, own in zip(likely, cosines, alone, strict=True)
            if own >= _LEAST_ALONE
        ]

    def told(self, statement: Statement, by_words: float) -> Told:
        """A statement as its section is compared with a question."""
        page, start = statement.page, statement.start
        return Told(
            (page.url, self.read(page).section_of(start)), self.in_context(statement.text, page, start), by_words
        )

    def promising(self, question: str, asked: Sequence[AskedWord]) -> list[tuple[Statement, float]]:
        """The statements of passages whose headings, with their words, promise an answer, the most promising first.

        Each has how far it answers by its words. At most 120, for to compare a statement takes long.
        """
        parts: dict[tuple[ResearchPassage, str], list[tuple[Statement, float]]] = defaultdict(list)
        for passage in self.passages:
            read = self.read(passage.page)
            for each in read.statements_in(passage):
                by_words = max(self.by_words(asked, each, self.words[passage]))
                parts[passage, read.heading_of(each.start)].append((each, by_words))
        promise = {
            part: float(cosine) + _WORDS_OF_PROMISE * fmean(by_words for _, by_words in parts[part])
            for part, cosine in zip(parts, meaning.cosines(question, [heading for _, heading in parts]), strict=True)
        }
        order = sorted(parts, key=lambda part: -promise[part])
        return [each for part in order for each in parts[part]][:_MOST_COMPARED]

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
