"""How good a research report is, from outside: what it finds of a key, and what it says besides.

Only the files of the run are read, and the pages by lxml; what counts as debris or as said before is told by rules of
this module, which the pipeline does not know.

`python -m tests.support.research_measure FOLDER [tuned|held|everyday]` runs every topic of a key, all without a name,
keeps the runs below FOLDER and prints the table; a topic's name instead shows each of its sentences as it is judged.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from pipeline.research.output.report_words import report_words
from pipeline.research.running.environment import open_environment
from pipeline.research.running.options import ResearchOptions
from pipeline.research.stages.run_stages import research
from pipeline.text.sentences import sentence_spans
from tests.support.research_key import NAMES, Fact, Topic, told, topics
from tests.support.research_pages import PROSE, Pages, Place, is_about, letters_of, pages_of

_MARK = re.compile(r"\s*(?:\((C\d{3}(?:, C\d{3})*)\)|\[(\d+(?:, \d+)*)\])\.?$")
_QUOTED = re.compile(r"[“„«「『]([^”“»」』]{12,})[”“»」』]")
_END = re.compile(r"[.!?…。！？][\"'”“’»›)\]」』）]*$")
_MARKUP = re.compile(r"</?[a-z][^>]*>|&(?:[a-z]+|#\d+);|\[\[|\{\{|¶|→|\[(?:\.{3}|…)\]|\]\(|(?:^|\s)[#|*]{1,4}\s")
_CONTENTS = re.compile(r"(?:\. ?){5,}|(?:\b\d{1,2}(?:\.\d{1,2})+\.? .*){3}")
_CAPTION = re.compile(r"(?:Figure|Table|Example|Abbildung|Tabelle|Beispiel|図|表|例) ?\d")
_SIGNS_OF_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]{4,}")
_TERM = re.compile(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2,}|[A-Za-z]{2,}|\d+")
_LEAST_PROSE = 0.6
_LEAST_WORDS, _LEAST_CJK = 3, 8
_SAID_BEFORE, _FEWEST = 0.8, 4


class Statement(NamedTuple):
    """A sentence of a report that cites pages."""

    text: str
    heading: str
    """The heading above it; empty before the first."""
    urls: tuple[str, ...]
    """The pages on which it rests by its citation."""


class Judged(NamedTuple):
    """A statement, and what is to be said against it; empty where nothing is."""

    statement: Statement
    about: bool
    """Whether it is about what was asked: from a place that is, or one of the key's facts."""
    debris: str
    """Why it is none that a person would have written into a report."""
    repeats: str
    """The earlier sentence that says as much."""
    wrong: str
    """Why it is not true of its pages."""


class Measured(NamedTuple):
    """A report measured against its topic's key."""

    topic: Topic
    judged: tuple[Judged, ...]
    found: tuple[Fact, ...]
    seconds: float = 0.0


def read_statements(run: Path, language: str) -> list[Statement]:
    """The cited sentences of the report in a run's folder, as it is shown to people."""
    entries = json.loads((run / "evidence" / "citations.json").read_text(encoding="utf-8"))
    urls = {entry["cid"]: entry["url"] for entry in entries}
    heading, found = "", []
    tokens = MarkdownIt("commonmark").parse((run / "final" / "report.md").read_text(encoding="utf-8"))
    for before, token in pairwise(tokens):
        if token.type != "inline":
            continue
        text = "".join(child.content if child.type != "softbreak" else " " for child in token.children or ())
        if before.type == "heading_open":
            heading = text
        elif mark := _MARK.search(text):
            names = mark[1].split(", ") if mark[1] else [f"C{int(number):03d}" for number in mark[2].split(", ")]
            body = text[: mark.start()]
            cited = tuple(urls[name] for name in names)
            spans = sentence_spans(body, language)
            found += [Statement(body[start:end], heading, cited) for start, end in spans]
    return found


def measure(topic: Topic, run: Path, pages: Pages, seconds: float = 0.0) -> Measured:
    """The report in a run's folder against the topic's key."""
    statements = read_statements(run, topic.language)
    judged = tuple(_judged(topic, statements, at, pages) for at in range(len(statements)))
    sections = [[each.text for each in part] for _, part in groupby(statements, lambda each: each.heading)]
    found = {fact.fact for sentences in sections for fact in told(topic.fact, sentences)}
    return Measured(topic, judged, tuple(fact for fact in topic.fact if fact.fact in found), seconds)


def _judged(topic: Topic, statements: Sequence[Statement], at: int, pages: Pages) -> Judged:
    statement = statements[at]
    places = list(_places_of(statement, pages))
    about = any(is_about(topic, page, place.blocks[0]) for page, place in places)
    return Judged(
        statement,
        about or any(fact.told_in(statement.text) for fact in topic.fact),
        debris_in(statement.text, [place for _, place in places]),
        said_before(statement.text, [each.text for each in statements[:at]]),
        _wrong(topic, statement, stands=bool(places)),
    )


def _places_of(statement: Statement, pages: Pages) -> Iterator[tuple[str, Place]]:
    """The places on its pages, by the page's path; of a sentence that quotes, those of what it quotes."""
    on_pages = [(pages.name_of(url), pages.text_of(url)) for url in statement.urls]
    found = [(page, place) for page, text in on_pages for place in text.places_of(statement.text)]
    quotes = [] if found else _QUOTED.findall(statement.text)
    yield from found
    if all(any(any(text.places_of(quote)) for _, text in on_pages) for quote in quotes):
        yield from ((page, place) for quote in quotes for page, text in on_pages for place in text.places_of(quote))


def _wrong(topic: Topic, statement: Statement, *, stands: bool) -> str:
    if denied := next((fact.fact for fact in topic.fact if fact.denied_in(statement.text)), ""):
        return f"contradicts: {denied}"
    return "" if stands else "stands on none of its pages"


def debris_in(text: str, places: Sequence[Place]) -> str:
    """Why the sentence is markup, contents, code or a fragment; empty where it is a sentence.

    `places` are those on its pages: from one that is prose it may be taken.
    """
    signs = [sign for sign in text if not sign.isspace()]
    words = len(text.split())
    short = len(signs) < _LEAST_CJK if _SIGNS_OF_CJK.search(text) else words < _LEAST_WORDS
    reasons = {
        "markup": _MARKUP.search(text),
        "contents": _CONTENTS.search(text),
        "caption": _CAPTION.match(text),
        "code": sum(sign.isalpha() for sign in signs) < _LEAST_PROSE * len(signs),
        "too short": short,
        "no end": not _END.search(text),
    }
    if told_by_text := next((reason for reason, found in reasons.items() if found), ""):
        return told_by_text
    against = [_against(place) for place in places]
    return "" if "" in against or not against else against[0]


def _against(place: Place) -> str:
    kinds = {block.kind for block in place.blocks}
    if kinds != {"text"} and (len(place.blocks) > 1 or not kinds <= set(PROSE)):
        return " and ".join(sorted(kinds))
    return "" if place.begins else "begins within a sentence"


def said_before(text: str, earlier: Sequence[str]) -> str:
    """The earlier sentence that has nearly all of this one's words and numbers; empty where none has."""
    own = _terms(text)
    if len(own) < _FEWEST:
        return next((each for each in earlier if letters_of(each) == letters_of(text)), "")
    return next((each for each in earlier if len(own & _terms(each)) >= _SAID_BEFORE * len(own)), "")


def _terms(text: str) -> frozenset[str]:
    """What a sentence is about: beginnings of its longer words, its numbers; of Japanese pairs of signs."""
    if not _SIGNS_OF_CJK.search(text):
        return frozenset(word.casefold()[:6] for word in _WORD.findall(text))
    terms = _TERM.findall(text)
    return frozenset(term[at : at + 2].casefold() for term in terms for at in range(len(term) - 1))


def run_topic(topic: Topic, pages: Pages, runs_dir: Path) -> Measured:
    """The topic researched over the pages without a model, by the product's own entry, and measured."""
    options = ResearchOptions(
        topic=topic.question,
        run_id=topic.name,
        runs_dir=runs_dir,
        search="local",
        documents=pages.folder,
        model="extractive",
    )

    async def run() -> None:
        async with open_environment(options, {}) as place:
            await research(options, place)

    began = time.monotonic()
    asyncio.run(run())
    return measure(topic, runs_dir / topic.name, pages, time.monotonic() - began)


class Shares(NamedTuple):
    """What came of topics together."""

    found: float
    """Of the facts, those that the reports tell."""
    about: float
    """Of the sentences, those about the topic."""
    debris: float
    repeated: float
    wrong: int
    """Sentences that are not true of their pages."""
    off: int
    """Sentences on topics that the pages do not hold."""


def shares(measured: Sequence[Measured]) -> Shares:
    """The reports pooled; those on topics that the pages hold decide, but for `off` and `wrong`."""
    held = [each for each in measured if each.topic.fact]
    judged = [each for one in held for each in one.judged]
    facts = sum(len(each.topic.fact) for each in held)
    of = max(len(judged), 1)
    return Shares(
        sum(len(each.found) for each in held) / max(facts, 1),
        sum(each.about for each in judged) / of,
        sum(bool(each.debris) for each in judged) / of,
        sum(bool(each.repeats) for each in judged) / of,
        sum(bool(each.wrong) for one in measured for each in one.judged),
        sum(len(each.judged) for each in measured if not each.topic.fact),
    )


def table(measured: Sequence[Measured]) -> Iterator[str]:
    """A line for each topic, and one for all together, columns parted by tabs."""
    yield "topic\tfacts\tfound\tsentences\ton topic\tdebris\trepeated\twrong\tseconds"
    for each in measured:
        counts = (
            len(each.topic.fact),
            len(each.found),
            len(each.judged),
            sum(one.about for one in each.judged),
            sum(bool(one.debris) for one in each.judged),
            sum(bool(one.repeats) for one in each.judged),
            sum(bool(one.wrong) for one in each.judged),
        )
        yield "\t".join((each.topic.name, *map(str, counts), f"{each.seconds:.0f}"))
    found, about, debris, repeated, wrong, off = shares(measured)
    yield (
        f"together\tfacts {found:.0%}\ton topic {about:.0%}\tdebris {debris:.1%}\trepeated {repeated:.1%}\t"
        f"wrong {wrong}\tabsent {off}"
    )
    yield _head_line([each for each in measured if each.topic.fact])


def _head_line(measured: Sequence[Measured]) -> str:
    """What the short answers at the reports' heads come to."""
    words = {each.topic.language: report_words(each.topic.language) for each in measured}
    first = {language: (each.answer, each.may_answer) for language, each in words.items()}
    heads = [
        [one for one in each.judged if one.statement.heading.startswith(first[each.topic.language])]
        for each in measured
    ]
    told_there = [
        list(told(each.topic.fact, [one.statement.text for one in head]))
        for each, head in zip(measured, heads, strict=True)
    ]
    return (
        f"at the head\tsentences {sum(map(len, heads))}\ton topic {sum(one.about for head in heads for one in head)}\t"
        f"heads with a fact {sum(map(bool, told_there))} of {len(heads)}"
    )


def account(measured: Measured) -> Iterator[str]:
    """Each sentence with what is said against it, and each fact that is missing."""
    for each in measured.judged:
        told_against = [
            *([] if each.about else ["off topic"]),
            *([f"debris: {each.debris}"] if each.debris else []),
            *([f"repeats: {each.repeats[:60]}"] if each.repeats else []),
            *([f"wrong: {each.wrong}"] if each.wrong else []),
        ]
        yield f"{'; '.join(told_against) or 'good'}\t{each.statement.heading}\t{each.statement.text}"
    for fact in measured.topic.fact:
        yield f"{'found' if fact in measured.found else 'missing'}\t{fact.fact}"


def _main(above: Path, wanted: str) -> None:
    known = {name: topics(name) for name in NAMES}
    chosen = {name: [each for each in of if wanted in ("", name, each.name)] for name, of in known.items()}
    for name, of in chosen.items():
        measured = []
        for topic in of:
            measured.append(run_topic(topic, pages_of(topic.corpus, above / "pages"), above / "runs"))
            if wanted == topic.name:
                sys.stdout.writelines(f"{line}\n" for line in account(measured[-1]))
        if measured:
            sys.stdout.writelines(f"{line}\n" for line in (name, *table(measured)))


if __name__ == "__main__":
    _main(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "")
