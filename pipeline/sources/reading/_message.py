"""Whether words that say that there is nothing are the page's message, or stand in prose that speaks of such things."""

import re
from collections.abc import Iterator

from pipeline.sources.reading._absence import NOT_FOUND, is_name_of_nothing, parts_of_title
from pipeline.sources.reading._words import count_words

_WORDS_BEFORE = 6
_WORDS_OF_ITS_SENTENCE = 30
_WORDS_ABOVE = 40
_WORDS_OF_A_NAME = 3
_WORDS_OF_PROSE = 5
_STATUS = re.compile(r"(?<![\w.])(?:404|410)(?![\w.])")
_SENTENCE = re.compile(r"(?:[^.!?。！？]|[.!?](?!\s|$))+[.!?。！？]*")


def message_in(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first place where the pattern is a message by itself; None where it stands in running prose, or nowhere.

    A message begins its line, with at most six words before it in its sentence and six in sentences before that, in a
    sentence of at most 30 words, and has at most 40 words above it.
    """
    above = 0
    for line in text.split("\n"):
        if above > _WORDS_ABOVE:
            return None
        found = pattern.search(line)
        if found and _begins(line, found):
            return found
        above += count_words(line)
    return None


def _begins(line: str, found: re.Match[str]) -> bool:
    """Whether what was found begins the line, but for an excuse before it."""
    for sentence in _SENTENCE.finditer(line):
        if found.start() < sentence.end():
            before = count_words(line[: sentence.start()]), count_words(line[sentence.start() : found.start()])
            return max(before) <= _WORDS_BEFORE and count_words(sentence[0]) <= _WORDS_OF_ITS_SENTENCE
    return True


def is_about_absence(title: str, headings: str) -> bool:
    """Whether the page's heading, or its title where it has none, says something of such messages.

    It has the words of one, and three or more besides.
    """
    return any(
        (NOT_FOUND.search(name) or _STATUS.search(name))
        and not is_name_of_nothing(name.strip(), whole=True)
        and count_words(_STATUS.sub(" ", NOT_FOUND.sub(" ", name))) >= _WORDS_OF_A_NAME
        for name in (headings or title).split("\n")
    )


def has_name_of_its_own(title: str, headings: str, host: str) -> bool:
    """Whether a heading of three or more words stands in the title too, and is no message and not the site's name."""
    labels = [label for label in host.lower().split(".") if len(label) >= _WORDS_OF_PROSE]
    parts = {part.casefold() for part in (title.strip(), *parts_of_title(title))}
    return any(
        heading.casefold() in parts
        and count_words(heading) >= _WORDS_OF_A_NAME
        and not NOT_FOUND.search(heading)
        and not any(label in heading.lower().replace(" ", "") for label in labels)
        for heading in headings.split("\n")
    )


def prose_words(text: str, names: str) -> int:
    """Number of words in sentences of five or more that are no name of the page and say nothing of absence."""
    told = set(names.split("\n"))
    return sum(map(count_words, _own_sentences(line for line in text.split("\n") if line not in told)))


def _own_sentences(lines: Iterator[str]) -> Iterator[str]:
    """The sentences of prose that say nothing of absence."""
    for line in lines:
        for sentence in _SENTENCE.findall(line):
            if count_words(sentence) >= _WORDS_OF_PROSE and not NOT_FOUND.search(sentence):
                yield sentence
