"""Anybody's report, out of Markdown, a research run or CSV v2: which sentence cites which source."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.citations import marks as citation_marks
from pipeline.citations.addresses import canonical_url, inline_references
from pipeline.core.errors import InputError
from pipeline.csv.file import is_answers_file, read_answers
from pipeline.providers.answer import ARTEFACT
from pipeline.records.citation_form import CITATIONS, RESEARCH_RUN, read_stored, resolved_earlier, to_one_form
from pipeline.text.markdown import CELLS, HARD, SOFT, Block, Piece, plain_words, read_blocks
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import detect_language
from pipeline.verifying import values
from pipeline.verifying.values import CitedSentence, ReadReport

_LINE_ENDS = re.compile(f"[{HARD}{SOFT}]")
_UNSPACED = "[\u3000-\u30ff\u3400-\u9fff\uff01-\uffef]"
_BETWEEN = " \t,;，、；" + HARD + SOFT  # What may stand between the marks at a paragraph's end


def read_report(text: str, known: Mapping[str, str] | None = None) -> ReadReport:
    """The report's sentences with the URLs that they cite, its sources, and the marks that lead nowhere.

    A mark belongs to the sentence that it stands in or behind. A paragraph that ends in `(C001)` cites that for those
    of its sentences that have no mark, and so does a block of nothing but marks for the block above it; whether other
    marks at a paragraph's end do too is left open: `paragraph_urls` has what they would cite. A number means the entry
    of the next source list below it, else of the one above. `known` gives the URLs of an answer's numbers that no list
    has; its last line may hold marks that belong nowhere.

    Source: pipeline/contracts/research.md#paragraphs for `(C001)` and `[n]`, Markdown for `[^n]` and links.
    """
    text = re.sub("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]", "", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = citation_marks.with_markdown_lists(inline_references(ARTEFACT.sub("", text)))
    blocks = read_blocks(text)
    language = detect_language(text[:5_000])
    lists = citation_marks.read_lists(text, blocks, cites_numbers=bool(citation_marks.MARK.search(text)))
    listed = {index for entry in lists.entries for index in range(entry.line, entry.end)}
    cited = [
        sentence
        for section in citation_marks.sections(blocks)
        for sentence in _section_sentences(section, listed, lists.ids, language, marks_stand_alone=known is None)
    ]
    return _to_report(cited, Lookup(lists, known or {}))


def _section_sentences(
    section: citation_marks.Section, listed: Container[int], ids: Container[str], language: str, marks_stand_alone: bool
) -> list[CitedSentence]:
    """A line `Source: …` cites for all sentences above it that have no mark.

    With `marks_stand_alone` a block of nothing but marks does so too.
    """
    found: list[list[CitedSentence]] = []
    said = [section.heading] if section.heading and _says_something(section.heading) else []
    is_listed = section.is_about_sources
    for block in [*said, *section.blocks]:
        pieces = [stretch for piece in block.pieces for stretch in _unlisted(piece, listed)]
        here = [
            each
            for piece in pieces
            for each in _cited_sentences(
                piece, is_listed or (section.lists_sources and "://" in piece.text), ids, language
            )
        ]
        if pieces and pieces[0].is_head:
            here[1:] = [each if each.marks else each._replace(shared=here[0].marks) for each in here[1:]]
        last_line = citation_marks.listed_on_line(pieces[-1].text.rpartition("\n")[2]) if pieces else None
        is_listed = section.is_about_sources or last_line == ""
        is_source_line = bool(last_line) and len(pieces) == 1 and "\n" not in pieces[0].text
        marks = tuple(
            mark for each in here for mark in each.marks if is_source_line or (mark.ids and not each.is_listing)
        )
        if (marks_stand_alone or is_source_line) and found and marks and not any(each.text for each in here):
            above = [each._replace(marks=each.marks or marks) if each.text else each for each in found[-1]]
            found[-1] = [*above, *here]
        else:
            found.append(here)
    return [each for here in found for each in here]


def _says_something(heading: Block) -> bool:
    """Whether a heading cites: a bold paragraph, or one that a line of dashes below it made a heading, is text then."""
    words = "".join(citation_marks.without_citations(piece.text).text for piece in heading.pieces)
    cites = any(mark.ids for piece in heading.pieces for mark in citation_marks.find_marks(piece.text))
    return cites and re.search(r"[.!?。．！？]\W*$", words) is not None


def _unlisted(piece: Piece, listed: Container[int]) -> list[Piece]:
    if piece.is_row:
        is_left_out = piece.line in listed or (piece.is_head and not citation_marks.find_marks(piece.text))
        return [] if is_left_out else [piece]
    stretches: list[Piece] = []
    lines = piece.text.split("\n")
    start = 0
    for index in range(len(lines) + 1):
        if index == len(lines) or piece.line + index in listed:
            if index > start:
                stretches.append(Piece("\n".join(lines[start:index]).lstrip(" \t"), piece.line + start))
            start = index + 1
    return stretches


def _cited_sentences(piece: Piece, names_sources: bool, ids: Container[str], language: str) -> Iterator[CitedSentence]:
    plain = citation_marks.without_citations(piece.text, ids)
    spans = [(0, len(plain.text))] if piece.is_row else sentence_spans(plain.text, language)
    if names_sources or not spans or _only_links(plain):
        yield from _listed_sources(plain, 0, piece.line)
        return
    starts = [start for start, _ in spans]
    marks: list[list[citation_marks.Mark]] = [[] for _ in spans]
    for position, mark in plain.marks:
        marks[max(0, bisect_left(starts, position) - 1)].append(mark)
    closing = _closing_marks(plain)
    cids = tuple(mark for mark in closing if mark.ids and citation_marks.CID.fullmatch(mark.ids[0]))
    last_line = max(map(plain.text.rfind, (HARD, SOFT)))
    if citation_marks.listed_on_line(plain.text[last_line + 1 :]) is not None:
        cids = tuple(mark for position, mark in plain.marks if position > last_line)
    line, counted = piece.line, 0
    for (start, end), own in zip(spans, marks, strict=True):
        line, counted = line + len(_LINE_ENDS.findall(plain.text, counted, start)), start
        words = _LINE_ENDS.sub(" ", re.sub(f"(?<={_UNSPACED}){SOFT}(?={_UNSPACED})", "", plain.text[start:end]))
        if piece.is_row:
            words = CELLS.join(filter(None, map(str.strip, words.split(CELLS.strip()))))
        if citation_marks.listed_on_line(words) is not None:
            yield from _listed_sources(plain, start, line)
            return
        yield CitedSentence(words, tuple(own) or cids, line, () if own else closing)


def _listed_sources(plain: citation_marks.PlainText, start: int, line: int) -> Iterator[CitedSentence]:
    """What stands in a source list from this character on, by line, without text."""
    positions = [position for position, _ in plain.marks]
    for words in _LINE_ENDS.split(plain.text[start:]):
        end = start + len(words)
        own = plain.marks[bisect_left(positions, start) : bisect_right(positions, end)]
        names_some = re.search(r"\w{2}", words) is not None and citation_marks.listed_on_line(words) != ""
        yield CitedSentence("", tuple(mark for _, mark in own), line, is_listing=names_some)
        start, line = end + 1, line + 1


def _closing_marks(plain: citation_marks.PlainText) -> tuple[citation_marks.Mark, ...]:
    found: list[citation_marks.Mark] = []
    end = len(plain.text)
    for position, mark in reversed(plain.marks):
        end_signs = "" if found else ".。!?！？…\"'”’」』)）"
        if mark.shown or plain.text[position:end].strip(_BETWEEN + end_signs):
            break
        found.insert(0, mark)
        end = position
    return tuple(found)


def _only_links(plain: citation_marks.PlainText) -> bool:
    rest: list[str] = []
    position = 0
    for end, mark in plain.marks:
        rest.append(plain.text[position : end - len(plain_words(mark.shown))])
        position = end
    return re.search(r"[^\W_]{2}|[\u3040-\u30ff\u3400-\u9fff]", "".join([*rest, plain.text[position:]])) is None


class Target(NamedTuple):
    id: str
    url: str  # Canonical URL; empty where it leads nowhere
    title: str = ""
    reason: values.UnresolvedReason | None = None


class Lookup:
    def __init__(self, lists: citation_marks.SourceLists, known: Mapping[str, str]) -> None:
        self.lists, self.known = lists, known

    def target(self, written: str, line: int) -> Target:
        entry = self.lists.find(written, line)
        if entry and entry.url:
            return _resolved(written, entry.url, entry.title)
        known = self.known.get(citation_marks.other_form(written))
        return _resolved(written, known, "") if known else Target(written, "", reason="no_url" if entry else "no_entry")

    def targets(self, mark: citation_marks.Mark, line: int) -> list[Target]:
        if mark.url:
            return [_resolved("", mark.url, mark.shown)]
        return [self.target(written, line) for written in mark.ids]


def _resolved(written: str, url: str, title: str) -> Target:
    try:
        return Target(written, canonical_url(url), title)
    except InputError:
        return Target(written or url, "", title, "not_a_url")


def _to_report(cited: Iterable[CitedSentence], lookup: Lookup) -> ReadReport:
    sentences: list[values.Sentence] = []
    sources: dict[str, list[Target]] = {}
    counts: Counter[str] = Counter()
    nowhere: dict[tuple[str, values.UnresolvedReason], list[int]] = {}
    uncited: list[Target] = []
    without_url = sum(not entry.url for entry in lookup.lists.entries)
    for each in cited:
        targets = [target for mark in each.marks for target in lookup.targets(mark, each.line)]
        if not each.text:
            uncited += targets
            without_url += each.is_listing and not any(target.url for target in targets)
            continue
        urls = tuple(dict.fromkeys(target.url for target in targets if target.url))
        counts.update(urls)
        for target in targets:
            if target.url:
                sources.setdefault(target.url, []).append(target)
        for target in dict.fromkeys(targets):
            if target.reason:
                nowhere.setdefault((target.id, target.reason), []).append(each.line + 1)
        ids = tuple(dict.fromkeys(target.id for target in targets if target.id))
        shared = [target.url for mark in each.shared for target in lookup.targets(mark, each.line) if target.url]
        sentences.append(values.Sentence(each.text, urls, ids, each.line + 1, urls or tuple(dict.fromkeys(shared))))
    uncited += [_resolved(entry.id, entry.url, entry.title) for entry in lookup.lists.entries if entry.url]
    for target in uncited:
        if target.url:
            sources.setdefault(target.url, []).append(target)
    return ReadReport(
        tuple(sentences),
        tuple(
            values.ListedSource(
                url=url,
                title=next((each.title for each in targets if each.title), ""),
                ids=tuple(dict.fromkeys(each.id for each in targets if each.id)),
                sentences=counts[url],
            )
            for url, targets in sources.items()
        ),
        tuple(
            values.UnresolvedMark(id=lost, reason=reason, line=lines[0], sentences=len(lines))
            for (lost, reason), lines in nowhere.items()
        ),
        without_url,
    )


class SubmittedReport(NamedTuple):
    answer_id: str | None  # The answer's id; None for a report
    report: ReadReport


def submitted_file(path: Path) -> Path:
    """The file that is meant: of the folder of a finished research run its report; InputError where there is none."""
    report = path / "final" / "report.md"
    if path.is_dir() and report.is_file():
        return report
    if not path.is_file():
        what = "is a folder without `final/report.md`" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {what}. Name a report in Markdown, a CSV v2 file, or a finished research run.")
    return path


def read_submitted(file: Path) -> Iterator[SubmittedReport]:
    """The report, or every answer of the file; InputError where it is not UTF-8, no CSV v2, or has no sentence."""
    if not is_answers_file(file):
        try:
            report = read_report(file.read_bytes().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            advice = "Save the report as text in UTF-8."
            raise InputError(f"{str(file)!r} is not UTF-8: {error.reason} at byte {error.start}. {advice}") from error
        if not report.sentences:
            raise InputError(f"{str(file)!r} has no sentence outside headings, code and source lists to verify.")
        yield SubmittedReport(None, report)
        return
    targets = resolved_earlier(file.parent / CITATIONS)
    for stored in read_answers(file):
        text = stored.answer_text if stored.model_name == RESEARCH_RUN else to_one_form(read_stored(stored)).text
        known = {str(number): targets.get(url, url) for number, url in enumerate(stored.citations, start=1)}
        yield SubmittedReport(stored.answer_id, read_report(text, known))
