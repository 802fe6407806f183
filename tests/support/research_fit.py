"""Fit the weights of `pipeline.research.stages._nearness` to questions in everyday words and to the tuned topics.

`python -m tests.support.research_fit FOLDER` reads the pages into FOLDER, prints the weights, and how often sections
answer to which the same weights, fitted to nine tenths of the questions, give a chance on the last tenth.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.research.search._local import LocalSearch
from pipeline.research.stages._answers import Answers
from pipeline.research.stages._nearness import Nearness, Part, sections_near
from pipeline.research.stages._passages import passages_of
from pipeline.sources.store import Store, StoredPage, open_store
from pipeline.text.asking import subject_words
from pipeline.verifying.values import Page
from tests.support.research_key import Corpus, Question, Topic, everyday_questions, topics
from tests.support.research_pages import Pages, is_about, pages_of

_PAGES = 10
_PARTS = 10
_OF_A_TOPIC = {"English": 1.0, "others": 4.0}
"""As how many questions a topic counts. Reports are on topics, whose keys name all places that are about them; but in
English more would give sections a better than even chance that answer questions which no page answers."""
_PULL = 30.0
"""What is added for the square of each weight, in their standard form: the questions are few, and much alike."""

Numbers = npt.NDArray[np.float64]


class Judged:
    """The sections that were compared with a question, and whether each answers it."""

    def __init__(self, question: Question, found: dict[Part, tuple[Nearness, bool]]) -> None:
        self.answered = bool(question.about)
        self.is_topic = isinstance(question, Topic)
        self.near: Numbers = np.array([near for near, _ in found.values()], float)
        self.about: Numbers = np.array([about for _, about in found.values()], float)


def judged(corpus: Corpus, questions: Sequence[Question], above: Path) -> Iterator[Judged]:
    """Each question of a corpus with the sections of the pages that would be read for it."""
    pages = pages_of(corpus, above)
    with open_store(above / f"{corpus}.db") as store:
        search = LocalSearch(pages.folder, store)
        for question in questions:
            results = asyncio.run(search.search(question.question, _PAGES))
            read = [read_page(store, result.url) for result in results]
            words = {word.text for word in subject_words(question.question, question.language)}
            answers = Answers(
                passages_of([page for page in read if page]), question.language, asyncio.run(search.shares(words))
            )
            yield Judged(question, dict(sections(question, answers, pages)))


def read_page(store: Store, url: str) -> Page | None:
    page: StoredPage | None = store.page(url, with_raw=False)
    return page and Page(page.url, page.title, "", page.lang, page.text, page.ts, page.headings, None)


def sections(question: Question, answers: Answers, pages: Pages) -> Iterator[tuple[Part, tuple[Nearness, bool]]]:
    """The sections, each with whether most of its sentences stand in a place that answers."""
    asked = answers.asked(question.question)
    found = answers.promising(question.question, asked)
    about: dict[Part, list[bool]] = {}
    told = [answers.told(statement, by_words) for statement, by_words in found]
    for (statement, _), each in zip(found, told, strict=True):
        name = pages.name_of(statement.page.url)
        places = pages.text_of(statement.page.url).places_of(statement.text)
        about.setdefault(each.part, []).append(any(is_about(question, name, place.blocks[0]) for place in places))
    unknown = answers.lacks_rare_word(asked)
    for part, near in sections_near(question.question, told, question.language, unknown=unknown).items():
        yield part, (near, 2 * sum(about[part]) >= len(about[part]))


def fitted(found: Sequence[Judged], of_a_topic: float = 1.0) -> tuple[Numbers, float]:
    """Weights and bias of a logistic regression in which a question counts by the root of its sections (Newton).

    A topic counts as so many questions.
    """
    near = np.concatenate([each.near for each in found])
    about = np.concatenate([each.about for each in found])
    worth = [of_a_topic if each.is_topic else 1.0 for each in found]
    counts = np.concatenate(
        [np.full(len(each.about), of * len(each.about) ** -0.5) for of, each in zip(worth, found, strict=True)]
    )
    counts /= counts.mean()
    middle, spread = near.mean(axis=0), near.std(axis=0)
    spread[spread == 0] = 1.0
    told = np.column_stack([(near - middle) / spread, np.ones(len(near))])
    pull = np.array([2 * _PULL] * near.shape[1] + [0.0])
    weights = np.zeros(told.shape[1])
    for _ in range(25):
        chance = 1 / (1 + np.exp(-told @ weights))
        slope = told.T @ (counts * (chance - about)) + pull * weights
        bend = (told * (counts * chance * (1 - chance))[:, None]).T @ told + np.diag(pull)
        weights -= np.linalg.solve(bend, slope)
    plain = weights[:-1] / spread
    return plain, float(weights[-1] - plain @ middle)


def chances_of_others(found: Sequence[Judged], of_a_topic: float = 1.0) -> list[Numbers]:
    """The chances of each question's sections by weights that were fitted to others."""
    given: list[Numbers] = [np.zeros(0)] * len(found)
    for part in range(_PARTS):
        weights, bias = fitted([each for at, each in enumerate(found) if at % _PARTS != part], of_a_topic)
        for at in range(part, len(found), _PARTS):
            given[at] = 1 / (1 + np.exp(-found[at].near @ weights - bias))
    return given


CORPORA: dict[str, tuple[Corpus, ...]] = {"English": ("manuals", "articles"), "others": ("handbuch", "handobukku")}
"""The pages in the languages that each of the two models of sentences compares."""


def main(above: Path) -> None:
    for name, corpora in CORPORA.items():
        found = [
            each
            for corpus in corpora
            for each in judged(corpus, [*everyday_questions(corpus), *topics_of(corpus)], above)
            if len(each.about)
        ]
        sys.stdout.writelines(f"{line}\n" for line in (name, *account(found, _OF_A_TOPIC[name])))


def topics_of(corpus: Corpus) -> list[Topic]:
    return [each for each in topics("tuned") if each.corpus == corpus]


def account(found: Sequence[Judged], of_a_topic: float) -> Iterator[str]:
    """The weights, and how often sections answer to which weights that were fitted to others give a chance."""
    found = [found[at] for at in np.random.default_rng(1).permutation(len(found))]
    weights, bias = fitted(found, of_a_topic)
    chances = chances_of_others(found, of_a_topic)
    best = [each.about[np.argmax(chance)] for each, chance in zip(found, chances, strict=True) if each.answered]
    yield f"weights {tuple(np.round(weights, 2).tolist())}, bias {bias:.2f}, of {len(found)} questions"
    yield f"best section answers: {np.mean(best):.0%} of {len(best)} questions that are answered"
    for kind in ("questions", "topics"):
        own = [at for at, each in enumerate(found) if each.is_topic == (kind == "topics")]
        every, about = np.concatenate([chances[at] for at in own]), np.concatenate([found[at].about for at in own])
        for low, high in zip_longest((0.0, 0.1, 0.2, 0.3, 0.5, 0.7), (0.1, 0.2, 0.3, 0.5, 0.7), fillvalue=1.0):
            held = about[(every >= low) & (every < high)]
            share = f"{held.mean():.2f}" if len(held) else "none"
            yield f"{kind}, chance {low:.1f} to {high:.1f}: {share} of {len(held)} sections answer"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
