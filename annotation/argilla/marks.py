"""Marks on a context: which characters of which original passage stand behind a selection in Argilla's page.

The page gives a mark as two offsets into the field's one text node, in UTF-16 units. That text is not the original, so
beside each record it is kept where each passage begins in it and which of its runs of characters are which of the
original's, as long as anybody's marks rest on it. Source: annotation/contracts/datasets.md#marks.
"""

import html
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from annotation.argilla.display import HIDDEN, hidden_metadata, original_text, passage_bodies
from annotation.argilla.tasks import MARKED_FIELD
from pipeline.records.schema import CONTEXT_SEPARATOR

_PASSAGES = "passages"
"""In the hidden metadata of a record that may be marked: its passages, in the order in which they are shown."""
_STANDS_FOR = frozenset({("━", "─"), *((end, "\n") for end in "\r\v\f\x85\u2028\u2029")})
"""What is shown for another character of the original; all else is shown as it is, or not at all."""

Run = tuple[int, int, int]
"""Where a run of characters begins in the shown passage, where in the original, and how long it is in both."""


class MarkedPassage(NamedTuple):
    """One passage of a context that may be marked."""

    chunk_id: str  # its id; empty where nobody knows it any more
    doc_id: str  # id of its page; empty like `chunk_id`
    chunk_rank: int
    text: str


class MarkedWords(NamedTuple):
    passage: MarkedPassage
    start: int  # where they begin in its original text, in code points
    end: int

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.end]


class Marked(NamedTuple):
    parts: tuple[MarkedWords, ...]
    is_whole: bool


def add_passages(body: dict[str, Any], passages: Sequence[MarkedPassage]) -> None:
    """`passages` are in the order in which it shows them.

    argilla-server 2.8.0 refuses a mark that ends beyond the field's length in code points, though the page counts in
    UTF-16 units: spaces at the end, which nobody sees, make up for it.
    """
    shown = shown_text(body)
    missing = len(shown.encode("utf-16-le")) // 2 - len(body["fields"][MARKED_FIELD])
    body["fields"][MARKED_FIELD] += " " * max(0, missing)
    context, place, kept = original_text(body, "grounding", "context_set"), 0, []
    for passage, (start, end) in zip(passages, passage_bodies(shown), strict=False):
        described = {**passage._asdict(), "start": start, "runs": _runs(shown[start:end], passage.text)}
        if context.startswith(passage.text, place):  # which it says already
            described |= {"text": [place, place + len(passage.text)]}
        place += len(passage.text) + len(CONTEXT_SEPARATOR)
        kept.append(described)
    body["metadata"][HIDDEN][_PASSAGES] = kept


def can_be_marked(record: Mapping[str, Any]) -> bool:
    return _PASSAGES in ((record.get("metadata") or {}).get(HIDDEN) or {})


def carried_passages(record: Mapping[str, Any], known: Sequence[tuple[int, str, str]]) -> list[MarkedPassage]:
    """The passages of a grounding record that could not be marked in the dataset it comes from.

    `known` are rank, `chunk_id` and `doc_id` of each; where they are others than those shown, ids are empty.
    """
    texts = original_text(record, "grounding", "context_set").split(CONTEXT_SEPARATOR)
    if len(texts) != len(passage_bodies(shown_text(record))):
        return []
    fitting = sorted(known) if len(known) == len(texts) else [(rank, "", "") for rank in range(1, len(texts) + 1)]
    return [
        MarkedPassage(chunk_id, doc_id, rank, text)
        for (rank, chunk_id, doc_id), text in zip(fitting, texts, strict=True)
    ]


def shown_text(record: Mapping[str, Any]) -> str:
    """The context as the page shows it: the text node that marks are offsets into."""
    return html.unescape(record["fields"][MARKED_FIELD])


def marked_words(record: Mapping[str, Any], marks: Sequence[tuple[int, int]]) -> list[Marked]:
    """What each mark, given by its offsets in the page, is on: headings and what is between passages are cut off."""
    shown = shown_text(record)
    context = original_text(record, "grounding", "context_set")
    passages = []
    for kept in hidden_metadata(record).get(_PASSAGES) or ():
        text = kept["text"] if isinstance(kept["text"], str) else context[slice(*kept["text"])]
        passage = MarkedPassage(kept["chunk_id"], kept["doc_id"], kept["chunk_rank"], text)
        passages.append((passage, kept["start"], kept["runs"]))
    found = []
    for start, end in marks:
        first, last = _code_points(shown, start), _code_points(shown, end, up=True)
        parts = [
            (words, begins + runs[0][0] <= first and last <= begins + runs[-1][0] + runs[-1][2])
            for passage, begins, runs in passages
            if (words := _words(passage, runs, first - begins, last - begins))
        ]
        is_whole = [whole for _, whole in parts] == [True]
        trimmed = [words if is_whole else _trimmed(words) for words, _ in parts]
        found.append(Marked(tuple(words for words in trimmed if words.text), is_whole))
    return found


def is_on_words(shown: str, start: int, end: int) -> bool:
    """Whether a mark is on a word of a passage, not on headings or space alone; without headings every mark is."""
    bodies = passage_bodies(shown)
    first, last = _code_points(shown, start), _code_points(shown, end, up=True)
    return not bodies or any(shown[max(begin, first) : min(finish, last)].strip() for begin, finish in bodies)


def _words(passage: MarkedPassage, runs: Sequence[Run], start: int, end: int) -> MarkedWords | None:
    touched = [
        (original + max(start, shown) - shown, original + min(end, shown + length) - shown)
        for shown, original, length in runs
        if shown < end and start < shown + length
    ]
    return MarkedWords(passage, touched[0][0], touched[-1][1]) if touched and start < end else None


def _trimmed(words: MarkedWords) -> MarkedWords:
    text = words.text
    start = words.start + len(text) - len(text.lstrip())
    return words._replace(start=start, end=max(start, words.end - len(text) + len(text.rstrip())))


def _code_points(text: str, units: int, up: bool = False) -> int:
    """The place in code points of one in UTF-16 units; within a character that has two of them, before or after it."""
    if text.isascii():
        return units
    before = text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore")
    halved = len(before.encode("utf-16-le")) < 2 * min(units, len(text.encode("utf-16-le")) // 2)
    return len(before) + (up and halved)


def _runs(shown: str, original: str) -> list[Run]:
    """Each shown character is the next of the original that it can be: what is dropped is unlike what follows it."""
    if shown == original:
        return [(0, 0, len(shown))] if shown else []
    pairs: list[tuple[int, int]] = []
    place = 0
    for position, sign in enumerate(shown):
        while place < len(original) and original[place] != sign and (original[place], sign) not in _STANDS_FOR:
            place += 1
        if place == len(original):
            break
        pairs.append((position, place))
        place += 2 if original.startswith("\r\n", place) else 1
    starts = [
        number
        for number, (before, after) in enumerate(pairwise([(-2, -2), *pairs]))
        if (before[0] + 1, before[1] + 1) != after
    ]
    return [(*pairs[first], last - first) for first, last in pairwise([*starts, len(pairs)])]
