"""The keys of what good reports hold fit the pages they were written from, and no others."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache, partial

import pytest

from pipeline.text.sentences import sentence_spans
from tests.support.research_key import NAMES, Corpus, Topic, everyday_questions, told, topics
from tests.support.research_pages import PROSE, Block, Pages, PageText, is_about, pages_of

TOPICS = [topic for name in NAMES for topic in topics(name)]
KNOWN = [topic for topic in TOPICS if topic.fact]
ABSENT = [topic for topic in TOPICS if not topic.fact]
by_name = pytest.mark.parametrize("topic", KNOWN, ids=lambda topic: topic.name)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Corpus], Pages]:
    """The pages of a corpus, laid out once; the test is skipped where they are not here."""
    return cache(partial(pages_of, above=tmp_path_factory.mktemp("corpora")))


def texts_of(pages: Pages) -> Iterator[tuple[str, PageText]]:
    return ((pages.name_of(url), pages.text_of(url)) for url in pages.by_url)


def sentences_of(block: Block, language: str) -> list[str]:
    return [block.text[start:end] for start, end in sentence_spans(block.text, language)]


def test_each_key_has_every_language_the_articles_and_a_topic_that_its_pages_do_not_hold() -> None:
    for key, absent in ((topics("tuned"), 6), (topics("held"), 2), (topics("everyday"), 2)):
        assert {topic.language for topic in key} == {"en", "de", "ja"}
        assert "articles" in {topic.corpus for topic in key}
        assert sum(not topic.fact for topic in key) == absent
        assert all(5 <= len(topic.fact) <= 8 for topic in key if topic.fact)
    assert len({topic.name for topic in TOPICS}) == len(TOPICS) == 70


@by_name
def test_each_fact_stands_where_the_key_says(topic: Topic, corpora: Callable[[Corpus], Pages]) -> None:
    missing = []
    for fact in topic.fact:
        blocks = [
            block
            for page, text in texts_of(corpora(topic.corpus))
            if fnmatchcase(page, fact.page)
            for block in text.blocks
            if is_about(topic, page, block)
        ]
        if not any(list(told([fact], sentences_of(block, topic.language))) for block in blocks):
            missing.append(fact.fact)
    assert not missing


@by_name
def test_no_fact_is_found_on_pages_about_something_else(topic: Topic, corpora: Callable[[Corpus], Pages]) -> None:
    elsewhere = [
        f"{fact.fact} on {page}: {block.text[:200]}"
        for page, text in texts_of(corpora(topic.corpus))
        for block in text.blocks
        if block.kind in PROSE and not is_about(topic, page, block)
        if (perhaps := [fact for fact in topic.fact if fact.told_in(block.text)])
        for fact in told(perhaps, sentences_of(block, topic.language))
        if not any(fnmatchcase(page, also) for also in fact.also)
    ]
    assert not elsewhere


@by_name
def test_no_page_denies_a_fact(topic: Topic, corpora: Callable[[Corpus], Pages]) -> None:
    denied = [
        f"{fact.fact} by {page}: {sentence}"
        for page, text in texts_of(corpora(topic.corpus))
        for block in text.blocks
        for fact in topic.fact
        if fact.denied_in(block.text)
        for sentence in sentences_of(block, topic.language)
        if fact.denied_in(sentence)
    ]
    assert not denied


@by_name
def test_facts_are_found_in_other_words_and_not_in_the_question(topic: Topic) -> None:
    for fact in topic.fact:
        assert fact.told_in(fact.reworded), fact.fact
        assert not fact.denied_in(fact.reworded), fact.fact
        assert fact.denied_in(fact.contrary) == bool(fact.false), fact.fact
        assert not fact.told_in(topic.question), fact.fact


@by_name
def test_headings_of_the_key_stand_on_its_pages(topic: Topic, corpora: Callable[[Corpus], Pages]) -> None:
    for about in topic.about:
        pages = [text for page, text in texts_of(corpora(topic.corpus)) if fnmatchcase(page, about.page)]
        assert len(pages) == 1, about.page
        headings = {heading for block in pages[0].blocks for heading in block.headings}
        assert set(about.under) <= headings


@pytest.mark.parametrize("topic", ABSENT, ids=lambda topic: topic.name)
def test_the_name_of_an_absent_topic_is_on_no_page(topic: Topic, corpora: Callable[[Corpus], Pages]) -> None:
    named = [page for page, text in texts_of(corpora(topic.corpus)) if topic.name in str(text.blocks).casefold()]
    assert not named


def test_a_key_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="extra"):
        Topic.model_validate({"name": "a", "question": "b", "language": "en", "corpus": "manuals", "facts": []})


@pytest.mark.parametrize("corpus", ["manuals", "handbuch", "handobukku"])
def test_what_answers_a_question_in_everyday_words_stands_on_its_pages(
    corpus: Corpus, corpora: Callable[[Corpus], Pages]
) -> None:
    questions = everyday_questions(corpus)
    texts = list(texts_of(corpora(corpus)))
    missing = [
        (question.question, about)
        for question in questions
        for about in question.about
        if not any(
            is_about(question.model_copy(update={"about": (about,)}), page, block)
            for page, text in texts
            if page == about.page
            for block in text.blocks
        )
    ]
    assert questions
    assert not missing
