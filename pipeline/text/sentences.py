"""Where the sentences of a text begin and end: English and German by rules, Japanese and Chinese by their marks.

`sentencex`, which was tried first, takes minutes for 350 kB of Japanese without a newline, parts "der 2. Teil" and cuts
「…。」 from the と that carries the sentence on. Every step here looks at a bounded stretch, so the time is linear.
"""

import re
import unicodedata

from pipeline.text.normal_form import reference_at, starts_to_show
from pipeline.text.words import LISTS, content_words

_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)

_SPACED_STOP = r"[.!?…।؟۔]"
_FULL_STOPS = "。｡！？"
_CLOSING = r"[\"'”’“»›)\]」』）〉》】〕]"
_NOTE_MARK = r"[ ]?\[\d{1,4}\]"
_STOP = re.compile(rf"(?P<stops>(?>(?:{_SPACED_STOP}|[{_FULL_STOPS}])+))(?P<closing>(?>(?:{_CLOSING}|{_NOTE_MARK})*))")
_LINE = re.compile(r"[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]++")
_LETTERS_BEFORE = re.compile(r"(?<!\w)(?:[^\W\d_]\.[ \u00a0\u202f]?){1,3}[^\W\d_]$")
_WORD_AFTER = re.compile(r"\s*[\"'“”„«‘(\[]*([^\W_]+)")
_WRITTEN_WITHOUT_BLANKS = re.compile(r"[\u3001-\u30ff\u3400-\u9fff\uff01-\uff9f]")
_OPENING_ORDINAL = re.compile(r"\s*(?:\(?\d{1,3}|[a-zA-Z])$")
_CARRIES_ON = re.compile(r"\s*(?:[、，,とをがはもにへので]|って|など|から|まで)")
_FIRST_WORD = re.compile(r"[^\W\d_][\w+-]*+(?!:)")
"""The word that a line begins with; behind that of a program which tells something of its own stands a colon."""
_LOOK_BACK = 24

_NEVER_LAST, _LAST_BEFORE_OPENERS, _OPENERS, _LAST_UNLESS_A_NUMBER_FOLLOWS, _GERMAN_MONTHS = (
    frozenset(LISTS["sentences"][name].split())
    for name in ("never_last", "may_end", "openers", "before_a_number", "german_months")
)
_ORDINALS_HAVE_A_STOP = frozenset(("", "de", "da", "no", "nb", "fi", "cs", "sk", "sl", "hr", "pl", "hu", "et", "lv"))
_LAST_DAY = 31


def sentence_spans(text: str, language: str = "") -> list[tuple[int, int]]:
    """First code point and the one after the last of each sentence, in order; together they hold all but blanks.

    A newline ends a sentence unless a small letter follows, the line before does not end as a sentence does, and is no
    heading with the word that follows ("Shortcuts for cron", "cron recognizes …"): text is taken to be one paragraph a
    line. Marks such as `[3]` stay with the sentence before them. `language` is an ISO 639-1 code: of German and its
    like, or where it is empty, numbers up to 31 are read as ordinals ("3. Oktober").
    """
    spans: list[tuple[int, int]] = []
    for start, end in _paragraphs(text, language):
        first = start
        for stop in _STOP.finditer(text, start, end):
            before = text[max(first, stop.start() - _LOOK_BACK) : stop.start()]
            after = text[stop.end() : min(end, stop.end() + 40)]
            if _ends_sentence(before, stop, after, language):
                _keep(spans, text, first, stop.end())
                first = stop.end()
        _keep(spans, text, first, end)
    return spans


def _is_named_above(text: str, start: int, language: str = "") -> bool:
    """Whether a line starts here whose first word, and no common one, stands in a short line above: its heading."""
    if text[start - 1 : start] != "\n":
        return False
    above = text[text.rfind("\n", 0, start - 1) + 1 : start - 1].rstrip()
    word = _FIRST_WORD.match(text, start)
    # A wrapped line of prose has more words.
    if word is None or above.endswith((",", ";", ":", "-", "(", "/")) or len(above.split(None, 8)) > 8:
        return False
    return not set(content_words(above, language)).isdisjoint(content_words(word[0], language))


def _paragraphs(text: str, language: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for line in _LINE.finditer(text):
        start, end = line.span()
        goes_on = found and text[start].islower() and text[found[-1][1] : start] in ("\n", "\r\n", "\r")
        if goes_on and not (_ends_line(text, *found[-1]) or _is_named_above(text, start, language)):
            start = found.pop()[0]
        found.append((start, end))
    return found


def _ends_line(text: str, start: int, end: int) -> bool:
    begin = max(start, end - _LOOK_BACK)
    stop = next((each for each in _STOP.finditer(text, begin, end) if each.end() == end), None)
    if stop is None:
        return text.endswith("\u00b6", start, end)
    return stop[0] != "." or _ends_behind_word(text[begin : end - 1], "", "")


def _keep(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end].lstrip()
    if piece:
        begin = end - len(piece)
        spans.append((begin, begin + len(piece.rstrip())))


def _ends_sentence(before: str, stop: re.Match[str], after: str, language: str) -> bool:
    if not after.strip():
        return True
    last = stop["stops"][-1]
    if last in _FULL_STOPS or (last in "!?…" and _WRITTEN_WITHOUT_BLANKS.match(after)):
        return not (stop["closing"] and _CARRIES_ON.match(after))
    if not after[0].isspace() or _word_after(after)[:1].islower():
        return False
    if stop["stops"] != "." or stop["closing"]:
        return True
    return not _OPENING_ORDINAL.fullmatch(before) and _ends_behind_word(before, _word_after(after), language)


def _ends_behind_word(before: str, following: str, language: str) -> bool:
    """Whether a single `.` ends the sentence: not behind an abbreviation, an initial or an ordinal."""
    opens = not following or following.lower() in _OPENERS
    words = before.split()
    word = words[-1].lstrip("(„“\"'«[").lower() if words and not before[-1].isspace() else ""
    letters = _LETTERS_BEFORE.search(before) if len(word) == 1 or "." in word else None
    if letters:
        word = "".join(letters[0].split()).lower()
    if word in _NEVER_LAST:
        return False
    if word in _LAST_UNLESS_A_NUMBER_FOLLOWS:
        return not following[:1].isdigit()
    if word.isdecimal() and int(word) <= _LAST_DAY and following.lower() in _GERMAN_MONTHS:
        return False
    if word.isdecimal():
        return opens or language not in _ORDINALS_HAVE_A_STOP or int(word) > _LAST_DAY
    if letters and word not in _LAST_BEFORE_OPENERS:
        return opens and letters[0][0].isupper()
    is_initial = len(word) == 1 and word.isalpha()
    return opens or not (is_initial or word in _LAST_BEFORE_OPENERS)


def _word_after(after: str) -> str:
    found = _WORD_AFTER.match(after)
    return found[1] if found else ""


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
    # A cut that leaves less than half of it is worse than one inside a sentence or a word.
    least = limit // 2
    cut = _last_sentence_end(text, limit, least)
    cut = cut or next((at for at in range(limit, max(least, 1) - 1, -1) if text[at].isspace()), 0)
    # Longer chains of marks on one letter are no writing but an attack on the screen.
    letters = range(limit, max(0, limit - 40), -1)
    cut = cut or next((at for at in letters if not _continues(text, at)), limit)
    return text[: reference_at(text, cut)].rstrip()


def _last_sentence_end(text: str, limit: int, least: int) -> int:
    """The last end of a sentence at most `limit` and at least `least` code points in; 0 where there is none."""
    # Whether a mark ends a sentence shows in what follows it.
    spans = sentence_spans(text[: limit + 60])
    ends = [end for _, end in spans[:-1] if least <= end <= limit]
    return next((end for end in reversed(ends) if not (text[end - 1] == "." and text[end - 2 : end - 1].isdigit())), 0)


def _continues(text: str, at: int) -> bool:
    """Unicode Annex 29, its rules in short."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or "\u200d" in (before, after) or ord(after) in _SKIN_TONES:
        return True
    if ord(before) in _FLAG_LETTERS and ord(after) in _FLAG_LETTERS:
        flags = len(text[:at]) - len(text[:at].rstrip("".join(map(chr, _FLAG_LETTERS))))
        return flags % 2 == 1
    # Parts of a Korean syllable are drawn together.
    return "\u1100" <= after <= "\u11ff" and ("\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3")
