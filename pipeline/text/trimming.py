"""A quote cut to a length at a place where a reader would pause (seed 002 §4.2; English, German, Japanese, Chinese)."""

import unicodedata

from pipeline.text.normal_form import reference_at, starts_to_show
from pipeline.text.sentences import sentence_spans

# A cut that leaves less than this share of what is allowed is worse than one inside a sentence or a word.
LEAST_SHARE = 0.5
# Whether a mark ends a sentence shows in what follows it.
LOOK_AHEAD = 60

JOINER = "\u200d"
SKIN_TONES = range(0x1F3FB, 0x1F400)
FLAG_LETTERS = range(0x1F1E6, 0x1F200)
# Longer chains of marks on one letter are no writing but an attack on the screen.
LONGEST_GRAPHEME = 40


def trim_snippet(snippet: str, limit: int = 320) -> str:
    """The quote where it fits, else its beginning of at most `limit` code points, ended at a natural boundary.

    That is the end of a sentence, else a space, either only in the second half; else the end of a letter as a reader
    sees it. No HTML entity is split. Empty where nothing visible fits.
    """
    if len(snippet) <= limit:
        return snippet
    text = snippet[starts_to_show(snippet) :]
    if len(text) <= limit:
        return text
    least = int(limit * LEAST_SHARE)
    cut = last_sentence_end(text, limit, least) or last_space(text, limit, least) or last_letter_end(text, limit)
    return text[: reference_at(text, cut)].rstrip()


def last_sentence_end(text: str, limit: int, least: int) -> int:
    """The last end of a sentence at most `limit` and at least `least` code points in; 0 where there is none.

    A full stop after a digit ends none here: in German, and in numbered headings, it mostly belongs to the number.
    """
    spans = sentence_spans(text[: limit + LOOK_AHEAD])
    ends = [end for _, end in spans[:-1] if least <= end <= limit]
    return next((end for end in reversed(ends) if not (text[end - 1] == "." and text[end - 2 : end - 1].isdigit())), 0)


def last_space(text: str, limit: int, least: int) -> int:
    """The last place before white space at most `limit` and at least `least` code points in; 0 where there is none."""
    return next((at for at in range(limit, max(least, 1) - 1, -1) if text[at].isspace()), 0)


def last_letter_end(text: str, limit: int) -> int:
    """The last place at most `limit` code points in that splits no letter as a reader sees it, nor an emoji."""
    for cut in range(limit, max(0, limit - LONGEST_GRAPHEME), -1):
        if not continues(text, cut):
            return cut
    return limit


def continues(text: str, at: int) -> bool:
    """Whether `text[at]` goes on with the letter before it. Source: Unicode Annex 29, its rules in short."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or JOINER in (before, after) or ord(after) in SKIN_TONES:
        return True
    if ord(before) in FLAG_LETTERS and ord(after) in FLAG_LETTERS:
        flags = len(text[:at]) - len(text[:at].rstrip("".join(map(chr, FLAG_LETTERS))))
        return flags % 2 == 1
    return is_jamo(after) and (is_jamo(before) or "\uac00" <= before <= "\ud7a3")


def is_jamo(letter: str) -> bool:
    """Whether it is a part of a Korean syllable that may be drawn together with the one before it."""
    return "\u1100" <= letter <= "\u11ff"
