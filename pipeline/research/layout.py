"""The report laid out: Markdown for people, the same as data, and its sources under their ids."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import quote, urldefrag

from pipeline.citations.addresses import source_domain
from pipeline.core.errors import InputError
from pipeline.research import values
from pipeline.research.artefacts import MAX_SOURCES, CitationEntry, ParagraphLine
from pipeline.research.contracts import Citation, Reference, Report, is_document
from pipeline.research.full_text import FullText, search_words
from pipeline.sources.headings import headings_above
from pipeline.sources.passages import lines_of
from pipeline.text.asking import is_general, names_subject, subject_words
from pipeline.text.normal_form import normalise
from pipeline.text.words import detect_language
from pipeline.verifying.rules import disagreements, single_source
from pipeline.verifying.values import Checked, Page, Paragraph, Quote

_MARKUP = re.compile(r"[\\`*\[\]<>|~$&!#]|(?<![^\W_])_|_(?![^\W_])|\^(?=\[)")
_ADDRESS = re.compile(r"(?<=\w):(?=//)|(?<=\bwww)\.|(?<=\w)@(?=\w)", re.IGNORECASE)
_CITATION = re.compile(r"(?<=[(（\[［【])(?=C[0-9]{3})|(?<=[\[［【])(?=\^|[0-9]{1,3}(?![0-9]))")
_LINE_START = re.compile(r"(?P<mark>[-+=])|(?P<number>[0-9]{1,9})(?=[.)](?:\s|$))")
_BIDI_CONTROL = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_WORD_JOINER = "\u2060"


def plain_markdown(text: str) -> str:
    """The text in one line, so written that Markdown shows it as it is; what turns its direction around is left out.

    Where no backslash helps, in e-mail addresses and before what looks like a citation, a word joiner parts it.
    """
    words = " ".join(_BIDI_CONTROL.sub("", text).split())
    words = _ADDRESS.sub(lambda found: f"{found[0]}{_WORD_JOINER}", words)
    words = _MARKUP.sub(lambda found: f"\\{found[0]}", words)
    words = _CITATION.sub(_WORD_JOINER, words)
    if found := _LINE_START.match(words):
        begin = f"\\{found['mark']}" if found["mark"] else f"{found['number']}{_WORD_JOINER}"
        return begin + words[found.end() :]
    return words


def link_to(text: str, url: str) -> str:
    return f"[{plain_markdown(text)}](<{url}>)" if re.search(r"[()\\]", url) else f"[{plain_markdown(text)}]({url})"


CitationForm = Literal["c", "n"]
_MOST_LEFT_OUT = 10
_MOST_NAMED = 3
_WORD = re.compile(r"[^\W\d_]{4,}")
_NEARLY = 0.85  # Likeness, as difflib counts it, from which a word may be another one misspelt
_INDENT = "  "  # Blanks before a passage's further lines: who reads a report line by line sees that they go on
_LONGEST_FRAGMENT = 200


class LaidOut(NamedTuple):
    markdown: str
    report: Report
    citations: tuple[CitationEntry, ...]  # `evidence/citations.json`: C001 is the source that the report cites first
    paragraphs: tuple[ParagraphLine, ...]


class Account(NamedTuple):
    notes: Sequence[str] = ()
    stop_reason: str = ""
    queries: Sequence[values.AskedQuery] = ()
    """What was searched for, in order; empty in runs of earlier versions, which kept no record."""
    unread: int = 0
    has_model: bool = True  # Whether a model took part; without one the report is a reading list


def lay_out(
    intake: values.Intake,
    plan: values.Plan,
    verified: values.Verified,
    written: values.Written,
    pages: Sequence[Page],
    account: Account | None = None,
    form: CitationForm = "c",
) -> LaidOut:
    """The report from its paragraphs, or the reading list from its passages; the same values give the same bytes."""
    urls = list(dict.fromkeys(url for paragraph in written.paragraphs for url in paragraph.urls))
    if len(urls) > MAX_SOURCES:
        raise InputError(f"The report cites {len(urls):,} sources; {MAX_SOURCES} can be numbered. Lower `--budget`.")
    by_url = {page.url: page for page in pages}
    cited = {url: by_url[url] for url in urls}
    words = values.report_words(values.plan_language(plan))
    made = _Layout(intake, plan, verified, written, pages, account or Account(), form, words, cited)
    parts = made.parts()
    markdown = [
        f"# {plain_markdown(written.title)}",
        *(text for _, text in parts),
        made.references(),
        made.back_matter(),
    ]
    lines = (ParagraphLine(text=each.text, cite_ids=tuple(map(cid, made.numbers(each)))) for each in written.paragraphs)
    entries = tuple(made.entry(number, page) for number, page in enumerate(cited.values(), start=1))
    return LaidOut("\n\n".join(markdown) + "\n", made.data(parts), entries, tuple(lines))


def cid(number: int) -> str:
    return f"C{number:03d}"


class _Layout(NamedTuple):
    intake: values.Intake
    plan: values.Plan
    verified: values.Verified
    written: values.Written
    pages: Sequence[Page]
    account: Account
    form: CitationForm
    words: values.ReportWords
    cited: Mapping[str, Page]  # The cited pages by URL, in the order of their numbers

    def numbers(self, paragraph: Paragraph) -> list[int]:
        order = {url: number for number, url in enumerate(self.cited, start=1)}
        return sorted(order[url] for url in paragraph.urls)

    def parts(self) -> list[tuple[str, str]]:
        """Each part with its heading; where nothing answers a heading says so, for a paragraph could cite nothing."""
        words = self.words
        answer = (
            words.answer if any(each.section == values.ANSWER for each in self.written.paragraphs) else words.no_answer
        )
        if unknown := _words_on_no_page(self.plan, self.pages):
            answer = words.without.replace("{heading}", answer).replace("{names}", words.between.join(unknown))
        headings = [(values.ANSWER, answer)] if self.written.has_head else []
        headings += enumerate([*map(values.title_of, self.plan.sections), words.disputed])
        parts = []
        for index, heading in headings:
            blocks = [self.block(each) for each in self.written.paragraphs if each.section == index]
            if blocks or index == values.ANSWER:
                parts.append((heading, "\n\n".join([f"## {plain_markdown(heading)}", *blocks])))
        return parts

    def block(self, paragraph: Paragraph) -> str:
        """A paragraph and its citation; its lines are parted by hard breaks, so that the citation covers them all."""
        lines = f"\\\n{_INDENT}".join(
            _code_span(line) if is_code else plain_markdown(line) for line, is_code in lines_of(paragraph.text)
        )
        heading = f"### {plain_markdown(paragraph.heading)}\n\n" if paragraph.heading else ""
        return f"{heading}{lines} {_mark_of(self.numbers(paragraph), self.form)}"

    def references(self) -> str:
        words, entries = self.words, []
        for number, page in enumerate(self.cited.values(), start=1):
            dates = words.read_on.replace("{date}", page.fetched_at[:10])
            if page.changed:
                dates += f" · {words.changed_on.replace('{date}', page.changed)}"
            label = f"{cid(number)} " if self.form == "c" else ""
            link = link_to(_page_title(page), page.url)
            entries.append(f"{number}. {label}{link} · {source_domain(page.url)} · {dates}")
        if not entries:
            return f"## {words.references}"
        how = words.how_to_read.replace("{mark}", _mark_of([1], self.form))
        how = f"{how} {words.documents}" if any(map(is_document, self.cited)) else how
        return "\n\n".join([f"## {words.references}", how, "\n".join(entries)])

    def back_matter(self) -> str:
        words, paragraphs = self.words, self.written.paragraphs
        disputed = {name for paragraph in paragraphs for name in paragraph.disputed_ids}
        dropped = [checked for checked in self.written.left_out if checked.claim.id not in disputed]
        left_out = self.left_out_lines(dropped[:_MOST_LEFT_OUT])
        if len(dropped) > _MOST_LEFT_OUT:
            left_out.append(words.more.replace("{count}", str(len(dropped) - _MOST_LEFT_OUT)))
        unknown = _words_on_no_page(self.plan, self.pages, names_only=self.account.has_model)
        unsaid = [word for word in self.words_unsaid() if word not in unknown]
        vain = self.open_sections()
        for line, asked in ((words.not_named, self.spelt(unknown)), (words.not_told, unsaid)):
            if asked:
                vain.append(line.replace("{names}", self.first_of(map(plain_markdown, asked), 8)))
        vain += self.vain_queries()
        limits, not_found = (words.limits, self.limit_lines()), (words.not_found, vain)
        parts = [
            *([limits, not_found] if paragraphs else [not_found, limits]),
            (words.left_out, left_out or [words.nothing]),
            (words.notes, [plain_markdown(note) for note in self.account.notes]),
        ]
        return "\n\n".join(
            f"### {heading}\n\n" + "\n".join(f"- {line}" for line in lines) for heading, lines in parts if lines
        )

    def limit_lines(self) -> list[str]:
        words, has_model = self.words, self.account.has_model
        stated = {name for paragraph in self.written.paragraphs for name in paragraph.claim_ids}
        sites = {page.url: page.site for page in self.pages}
        alone = sum(each.claim.id in stated for each in single_source(self.verified.claims, sites))
        lines = [] if has_model else [words.reading_list]
        if stated and not has_model:
            languages = sorted({page.lang for page in self.cited.values() if page.lang})
            own = detect_language(" ".join(paragraph.text for paragraph in self.written.paragraphs))
            # A page may be half in another language than its own.
            if languages and self.intake.lang not in (own, *languages):
                line = words.other_language.replace("{pages}", ", ".join(languages))
                lines.append(line.replace("{asked}", plain_markdown(self.intake.lang)))
            lines += self.contradicting()
        if stated and len({sites.get(url, url) for url in self.cited}) == 1:
            lines.append(words.one_site)
        elif alone and has_model:
            sentence = words.each_alone if alone == len(stated) else words.single_site
            lines.append(sentence.replace("{all}", str(len(stated))).replace("{count}", str(alone)))
        unused = len(self.pages) - len(self.cited)
        for sentence, count in ((words.pages_unread, self.account.unread), (words.pages_unused, unused)):
            if count > 0:
                lines.append(sentence.replace("{count}", str(count)))
        ordering = [page for page in self.pages if _orders(page)]
        if ordering:
            named = (f"{plain_markdown(_page_title(page))} ({source_domain(page.url)})" for page in ordering)
            lines.append(words.orders.replace("{pages}", self.first_of(named, _MOST_NAMED)))
        if reason := self.account.stop_reason:
            lines.append(words.ended.replace("{reason}", words.stops.get(reason) or plain_markdown(reason)))
        return lines

    def contradicting(self) -> list[str]:
        order = {url: number for number, url in enumerate(self.cited, start=1)}
        lines = []
        for found in disagreements(self.verified.claims)[:_MOST_NAMED]:
            sides = [f"{self.quoted(side[0].text)} {_mark_of([order[side[0].url]], 'c')}" for side in found.sides]
            lines.append(self.words.contradict.replace("{sides}", " – ".join(sides)))
        return lines

    def open_sections(self) -> list[str]:
        words, paragraphs, has_model = self.words, self.written.paragraphs, self.account.has_model
        dropped = {checked.claim.section for checked in self.written.left_out if checked.verdict == "supported"}
        if has_model and not paragraphs and not dropped:
            return [words.nothing_found]
        section_of = {checked.claim.id: checked.claim.section for checked in self.verified.claims}
        stated = {section_of.get(name) for paragraph in paragraphs for name in paragraph.claim_ids}
        disputed = {section_of.get(name) for paragraph in paragraphs for name in paragraph.disputed_ids}
        covered = {paragraph.section for paragraph in paragraphs}
        lines = []
        for index, section in enumerate(self.plan.sections):
            if index not in covered:
                nothing = words.section_left_out if index in dropped else words.no_section
                nothing = nothing if has_model else words.no_passage
                otherwise = words.only_disputed if index in disputed else nothing
                line = words.in_answer if index in stated else otherwise
                lines.append(line.replace("{section}", plain_markdown(values.title_of(section))))
        return lines

    def spelt(self, names: Sequence[str]) -> list[str]:
        """The names, each with the word of the pages that is written nearly so, if there is one: `Pyton`, `Python`."""
        texts = (f"{page.title}\n{page.text}" for page in self.pages if names)
        known = {each.casefold(): each for text in texts for each in _WORD.findall(text)}
        near = [get_close_matches(name.casefold(), known, 1, _NEARLY) for name in names]
        return [
            self.words.perhaps.replace("{name}", name).replace("{near}", known[found[0]]) if found else name
            for name, found in zip(names, near, strict=True)
        ]

    def words_unsaid(self) -> list[str]:
        """The words asked, but general ones, that no sentence of the report has, nor a heading above it."""
        if not self.written.paragraphs:
            return []
        by_url = {page.url: page for page in self.pages}
        stated = {name for each in self.written.paragraphs for name in (*each.claim_ids, *each.disputed_ids)}
        said = [each.text for each in self.written.paragraphs]
        for claim in (each.claim for each in self.verified.claims if each.claim.id in stated):
            for quoted in claim.quotes:
                if page := by_url.get(quoted.url):
                    said += [page.title, *headings_above(page.headings, quoted.start)]
        return _lacking(self.plan, said)

    def vain_queries(self) -> list[str]:
        vain = [query for query in self.account.queries if self.cited.keys().isdisjoint(query.urls)]
        lines = []
        for sentence, has_results in ((self.words.no_result, False), (self.words.no_use, True)):
            queries = dict.fromkeys(each.query for each in vain if bool(each.urls) == has_results)
            if queries:
                lines.append(sentence.replace("{queries}", self.first_of(map(self.quoted, queries), 6)))
        return lines

    def left_out_lines(self, dropped: Sequence[Checked]) -> list[str]:
        """The claims that are not in the report, each with why; below the reason where several have the same."""
        words = self.words
        of_reason: dict[str, list[str]] = defaultdict(list)
        for checked in dropped:
            # Problems are worded in English; `verification.md`, which is English throughout, has them all.
            why = "; ".join(checked.problems) if words == values.report_words("en") else ""
            why = why or words.verdicts["contradicted" if checked.against else checked.verdict]
            of_reason[plain_markdown(why)].append(self.quoted(checked.claim.text))
        return [
            f"{texts[0]}: {why}{words.full_stop}"
            if len(texts) == 1
            else "\n  - ".join([f"{why[:1].upper()}{why[1:]}:", *texts])
            for why, texts in of_reason.items()
        ]

    def quoted(self, text: str) -> str:
        return f"{self.words.quotes[0]}{plain_markdown(text)}{self.words.quotes[1]}"

    def first_of(self, texts: Iterable[str], most: int) -> str:
        shown = list(texts)
        more = f" … (+{len(shown) - most})" if len(shown) > most else ""
        return f"{self.words.between.join(shown[:most])}{more}"

    def data(self, parts: Sequence[tuple[str, str]]) -> Report:
        claims = {checked.claim.id for checked in self.verified.claims}
        urls = {name: each.urls for each in self.written.paragraphs for name in each.claim_ids if name in claims}
        return Report(
            topic=self.intake.topic,
            outline=tuple(heading for heading, _ in parts),
            sections=tuple(text for _, text in parts),
            citations=tuple(Citation(claim_id=name, urls=cited) for name, cited in urls.items()),
            references=tuple(
                Reference(n=number, url=page.url, title=" ".join(page.title.split()) or None)
                for number, page in enumerate(self.cited.values(), start=1)
            ),
            stop_reason=self.account.stop_reason or None,
        )

    def entry(self, number: int, page: Page) -> CitationEntry:
        """A cited source, with place and digest of its first quote, of what is disputed too; none where it has none."""
        claims = {checked.claim.id: checked for checked in self.verified.claims}
        quotes: list[Quote] = []
        for paragraph in (each for each in self.written.paragraphs if page.url in each.urls):
            stated = [claims[name] for name in (*paragraph.claim_ids, *paragraph.disputed_ids) if name in claims]
            quotes += [quote for each in stated for quote in each.claim.quotes]
            quotes += [quote for each in stated if each.claim.id in paragraph.disputed_ids for quote in each.against]
        first = next((quote.text for quote in quotes if quote.url == page.url), "")
        digest = hashlib.sha256(normalise(first).encode("utf-8", "replace")).hexdigest()
        return CitationEntry(
            cid=cid(number),
            url=page.url,
            title=page.title,
            locator=text_fragment(page.url, first),
            fetched_at=datetime.fromisoformat(page.fetched_at),
            quote_hash=f"sha256:{digest}" if first else None,
            local_path=None,
        )


def _code_span(line: str) -> str:
    """A line of code as Markdown shows it letter by letter: https://spec.commonmark.org/0.31.2/#code-spans."""
    text = _BIDI_CONTROL.sub("", line)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    around = " " if text.startswith(("`", " ")) or text.endswith("`") else ""
    return f"{fence}{around}{text}{around}{fence}"


def _mark_of(numbers: Sequence[int], form: CitationForm) -> str:
    return f"[{', '.join(map(str, numbers))}]" if form == "n" else f"({', '.join(map(cid, numbers))})"


def _page_title(page: Page) -> str:
    return cut(" ".join(page.title.split()) or source_domain(page.url), 160)


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _words_on_no_page(plan: values.Plan, pages: Sequence[Page], *, names_only: bool = True) -> list[str]:
    """The names, or all words but general ones, that the plan asks and no page has; none without pages."""
    if not pages:
        return []
    language = values.plan_language(plan)
    asked = [word for section in plan.sections for word in subject_words(section, language)]
    names = {word.text for word in asked if names_subject(word, language)}
    lacking = _lacking(plan, [f"{page.title}\n{page.text}" for page in pages])
    return [word for word in lacking if not names_only or word.casefold() in names]


def _lacking(plan: values.Plan, texts: Iterable[str]) -> list[str]:
    """The words that the plan asks, but general ones, that none of the texts has in any form, as they are asked."""
    index = FullText()
    index.add(("", "", text) for text in texts)
    asked = " ".join(plan.sections)
    words = {word.query: word.word for section in plan.sections for word in search_words(section)}
    lacking = dict.fromkeys(word for query, word in words.items() if not (is_general(word) or index.holding(query)))
    return [found[0] if (found := re.search(re.escape(word), asked, re.I)) else word for word in lacking]


_ORDERS = re.compile(values.PATTERNS["page"]["orders"], re.IGNORECASE)


@lru_cache(maxsize=64)  # a run lays its report out three times, and long pages take long
def _orders(page: Page) -> bool:
    return bool(_ORDERS.search(page.text))


def text_fragment(url: str, quoted: str) -> str:
    """The URL with a fragment that shows the quote in a browser: https://wicg.github.io/scroll-to-text-fragment/."""
    if not quoted:
        return url
    lines = [line for line in quoted.split("\n") if line.strip()]
    begin, end = lines[0].strip(), lines[-1].strip()
    if len(lines) == 1 and len(begin) <= _LONGEST_FRAGMENT:
        shown = _encoded(begin)
    else:
        shown = f"{_encoded(begin[: _LONGEST_FRAGMENT // 4])},{_encoded(end[-_LONGEST_FRAGMENT // 4 :])}"
    base, fragment = urldefrag(url)
    return f"{base}#{fragment}:~:text={shown}"


def _encoded(text: str) -> str:
    """The text as a text fragment takes it: `-`, `,` and `&` have a meaning of their own there."""
    return quote(text.strip(), safe="").replace("-", "%2D")
