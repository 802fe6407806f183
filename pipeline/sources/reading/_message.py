"""Whether words that say that there is nothing are the page's message, or stand in prose that speaks of such things."""

import re

from pipeline.sources.reading._absence import NOT_FOUND, is_name_of_nothing, parts_of_title
from pipeline.sources.reading._words import count_words

_WORDS_BEFORE = 8
_WORDS_OF_A_NAME = 3
_WORDS_OF_A_SENTENCE = 5
_LETTERS_OF_A_SITE = 5
_STATUS = re.compile(r"(?<![\w.])(?:404|410)(?![\w.])")
_SENTENCE = re.compile(r"(?:[^.!?。！？\n]|[.!?](?!\s|$))+")


def begins_a_line(text: str) -> bool:
    """Whether a line of the text begins with words of absence, with at most eight words before them."""
    found = filter(None, map(NOT_FOUND.search, text.split("\n")))
    return any(count_words(each.string[: each.start()]) <= _WORDS_BEFORE for each in found)


def has_own_name(title: str, headings: str, host: str) -> bool:
    """Whether a heading is the title, or part of one that does not say that there is nothing, and names this page.

    It has three or more words besides those of absence, and is not the site's name.
    """
    whole, said = title.casefold(), is_name_of_nothing(title)
    parts = [] if said else [part.casefold() for part in parts_of_title(title)]
    labels = [label for label in host.split(".") if len(label) >= _LETTERS_OF_A_SITE]
    return any(
        heading in (whole, *parts)
        and count_words(_STATUS.sub(" ", NOT_FOUND.sub(" ", heading))) >= _WORDS_OF_A_NAME
        and not any(label in heading.replace(" ", "") for label in labels)
        for heading in headings.casefold().split("\n")
    )


def names_itself(title: str, headings: str) -> bool:
    """Whether a heading is the title or a part of it, as that of an article is and that of an error mostly is not."""
    names = {name.casefold() for name in (title, *parts_of_title(title))}
    return any(heading in names for heading in headings.casefold().split("\n"))


def has_prose(text: str, least: int) -> bool:
    """Whether sentences of five or more words that say nothing of absence have so many words."""
    words = 0
    for sentence in _SENTENCE.finditer(text):
        count = count_words(sentence[0])
        if count >= _WORDS_OF_A_SENTENCE and not NOT_FOUND.search(sentence[0]):
            words += count
        if words >= least:
            return True
    return False
