"""The report laid out: Markdown for people, the same as data, and its sources under their ids.

Source: pipeline/contracts/research.md.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import quote, urldefrag

from pipeline.errors import InputError
from pipeline.research.artefacts import MAX_SOURCES, CitationEntry, ParagraphLine
from pipeline.research.contracts import Citation, Reference, Report
from pipeline.research.documents import is_document
from pipeline.research.full_text import FullText, search_words
from pipeline.research.report_words import ENGLISH, ReportWords, report_words
from pipeline.research.values import ANSWER, AskedQuery, Intake, Plan, Verified, Written, plan_language
from pipeline.sources.headings import headings_above
from pipeline.sources.passages import lines_of
from pipeline.text.asking import is_general, names_subject, subject_words
from pipeline.text.normal_form import normalise
from pipeline.text.urls import source_domain
from pipeline.text.words import detect_language
from pipeline.verifying.rules import disagreements
from pipeline.verifying.scores import single_source
from pipeline.verifying.values import Checked, Page, Paragraph, Quote

_MARKUP = re.compile(r"[\\`*\[\]<>|~$&!#]|(?<![^\W_])_|_(?![^\W_])|\^(?=\[)")
_ADDRESS = re.compile(r"(?<=\w):(?=//)|(?<=\bwww)\.|(?<=\w)@(?=\w)", re.IGNORECASE)
_CITATION = re.compile(r"(?<=[(（\[［【])(?=C[0-9]{3})|(?<=[\[［【])(?=\^|[0-9]{1,3}(?![0-9]))")
_LINE_START = re.compile(r"(?P<mark>[-+=])|(?P<number>[0-9]{1,9})(?=[.)](?:\s|$))")
_BIDI_CONTROL = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_WORD_JOINER = "\u2060"


def plain_markdown(text: str) -> str:
    """The text in one line, so written that Markdown shows it as it is.

    HTML, links, images, formulas, lists and headings stay letters; what turns the direction of text around is left out,
    for it would reach into the words behind it. Where no backslash helps, in e-mail addresses and
    before what looks like a citation, an invisible word joiner parts it.
    """
    words = " ".join(_BIDI_CONTROL.sub("", text).split())
    words = _ADDRESS.sub(lambda found: f"{found[0]}{_WORD_JOINER}", words)
    words = _MARKUP.sub(lambda found: f"\\{found[0]}", words)
    words = _CITATION.sub(_WORD_JOINER, words)
    return _LINE_START.sub(_begin_line, words, count=1) if _LINE_START.match(words) else words


def _begin_line(found: re.Match[str]) -> str:
    """What begins a list or an underline, so that it begins none."""
    return f"\\{found['mark']}" if found["mark"] else f"{found['number']}{_WORD_JOINER}"


def link_to(text: str, url: str) -> str:
    """A link to a canonical URL with the text as its words."""
    return f"[{plain_markdown(text)}](<{url}>)" if re.search(r"[()\\]", url) else f"[{plain_markdown(text)}]({url})"


CitationForm = Literal["c", "n"]
"""How report.md cites: `(C001, C002)` or `[1, 2]`."""
_MOST_LEFT_OUT = 10
_MOST_QUERIES = 6
_MOST_NAMED = 3
"""Pages named in a line."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_NEARLY = 0.85
"""Likeness, as difflib counts it, from which a word may be another one misspelt."""
_MOST_WORDS = 8
"""Words named in a line."""
_INDENT = "  "
"""Blanks before a passage's further lines: who reads a report line by line sees that they go on."""
_LONGEST_FRAGMENT = 200
_TITLE_LENGTH = 160


class LaidOut(NamedTuple):
    """The report in all its forms."""

    markdown: str
    """`final/report.md`."""
    report: Report
    """`final/report.json`."""
    citations: tuple[CitationEntry, ...]
    """`evidence/citations.json`: C001 is the source that the report cites first."""
    paragraphs: tuple[ParagraphLine, ...]
    """`drafts/paragraphs.jsonl`, in the order of the report."""


class Account(NamedTuple):
    """What a reader is told beside the paragraphs."""

    notes: Sequence[str] = ()
    """How the text came about, in whole sentences: what the model did not do, what was not read."""
    stop_reason: str = ""
    """Why the run ended early; empty where it did not."""
    queries: Sequence[AskedQuery] = ()
    """What was searched for, in order; empty in runs of earlier versions, which kept no record."""
    unread: int = 0
    """Pages that were found and could not be read."""
    has_model: bool = True
    """Whether a model took part; without one the report is a reading list."""


def lay_out(
    intake: Intake,
    plan: Plan,
    verified: Verified,
    written: Written,
    pages: Sequence[Page],
    account: Account | None = None,
    form: CitationForm = "c",
) -> LaidOut:
    """The report from its paragraphs, or the reading list from its passages. The same values give the same bytes.

    Every body paragraph ends in its citations; all behind the heading of the references is about the report.

    Raises:
        InputError: it cites more than 999 sources.
    """
    account = account or Account()
    by_url = {page.url: page for page in pages}
    claims = {checked.claim.id: checked for checked in verified.claims}
    urls = list(dict.fromkeys(url for paragraph in written.paragraphs for url in paragraph.urls))
    if len(urls) > MAX_SOURCES:
        raise InputError(f"The report cites {len(urls):,} sources; {MAX_SOURCES} can be numbered. Lower `--budget`.")
    numbers = {url: number for number, url in enumerate(urls, start=1)}
    words = report_words(plan_language(plan))
    outline, sections = _body_of(plan, written, numbers, words, form, _words_on_no_page(plan, pages))
    parts = [
        f"# {plain_markdown(written.title)}",
        *sections,
        _references_of([by_url[url] for url in urls], words, form),
        _back_matter(intake, plan, verified, written, pages, account, words, numbers),
    ]
    entries = (_citation_entry(numbers[url], by_url[url], _quotes_on(url, written, claims)) for url in urls)
    lines = (
        ParagraphLine(text=each.text, cite_ids=tuple(map(cid, sorted(numbers[url] for url in each.urls))))
        for each in written.paragraphs
    )
    report = _report_of(intake, outline, sections, written.paragraphs, claims, [by_url[url] for url in urls], account)
    return LaidOut("\n\n".join(parts) + "\n", report, tuple(entries), tuple(lines))


def cid(number: int) -> str:
    """The id of the source with this number: `C001` for 1."""
    return f"C{number:03d}"


def _body_of(
    plan: Plan,
    written: Written,
    numbers: Mapping[str, int],
    words: ReportWords,
    form: CitationForm,
    on_no_page: Sequence[str],
) -> tuple[list[str], list[str]]:
    """The headings of the parts that there are, and these in Markdown: answer, sections, what sources disagree about.

    Where nothing answers a heading says so: a paragraph could cite nothing for it.
    """
    stated = {paragraph.section for paragraph in written.paragraphs}
    heading = words.answer if ANSWER in stated else words.no_answer
    if on_no_page:
        heading = words.without.replace("{heading}", heading).replace("{names}", words.between.join(on_no_page))
    parts = [(ANSWER, heading)] if written.has_head else []
    parts += [(index, title_of(section)) for index, section in enumerate(plan.sections)]
    parts.append((len(plan.sections), words.disputed))
    outline, sections = [], []
    for index, heading in parts:
        blocks = [
            _block_of(each, _mark_of(sorted(numbers[url] for url in each.urls), form))
            for each in written.paragraphs
            if each.section == index
        ]
        if blocks or index == ANSWER:
            outline.append(heading)
            sections.append("\n\n".join([f"## {plain_markdown(heading)}", *blocks]))
    return outline, sections


def _block_of(paragraph: Paragraph, mark: str) -> str:
    """A paragraph in Markdown with its citation at the end, below its own heading where it has one.

    A passage of several lines is one paragraph with hard line breaks, so that its citation covers all of it.
    """
    lines = f"\\\n{_INDENT}".join(
        _code_span(line) if is_code else plain_markdown(line) for line, is_code in lines_of(paragraph.text)
    )
    heading = f"### {plain_markdown(paragraph.heading)}\n\n" if paragraph.heading else ""
    return f"{heading}{lines} {mark}"


def _code_span(line: str) -> str:
    """A line of code as Markdown shows it letter by letter.

    Source: https://spec.commonmark.org/0.31.2/#code-spans
    """
    text = _BIDI_CONTROL.sub("", line)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    around = " " if text.startswith(("`", " ")) or text.endswith("`") else ""
    return f"{fence}{around}{text}{around}{fence}"


def title_of(topic: str) -> str:
    """The topic, or a section's question, in one line, with a capital letter."""
    words = " ".join(topic.split())
    return words[:1].upper() + words[1:]


def _mark_of(numbers: Sequence[int], form: CitationForm) -> str:
    if form == "n":
        return f"[{', '.join(map(str, numbers))}]"
    return f"({', '.join(map(cid, numbers))})"


def _references_of(pages: Sequence[Page], words: ReportWords, form: CitationForm) -> str:
    """The list of sources with titles, sites, and the days on which each was read and, where known, last changed."""
    lines = [f"## {words.references}"]
    if pages:
        told = words.how_to_read.replace("{mark}", _mark_of([1], form))
        lines.append(f"{told} {words.documents}" if any(is_document(page.url) for page in pages) else told)
    entries = []
    for number, page in enumerate(pages, start=1):
        dates = words.read_on.replace("{date}", page.fetched_at[:10])
        if page.changed:
            dates += f" · {words.changed_on.replace('{date}', page.changed)}"
        label = f"{cid(number)} " if form == "c" else ""
        entries.append(f"{number}. {label}{link_to(_page_title(page), page.url)} · {source_domain(page.url)} · {dates}")
    return "\n\n".join([*lines, *(["\n".join(entries)] if entries else [])])


def _page_title(page: Page) -> str:
    """The page's title, or its site where it has none."""
    title = " ".join(page.title.split()) or source_domain(page.url)
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1].rstrip()}…"


def _back_matter(
    intake: Intake,
    plan: Plan,
    verified: Verified,
    written: Written,
    pages: Sequence[Page],
    account: Account,
    words: ReportWords,
    numbers: Mapping[str, int],
) -> str:
    """What the report cannot do, what was looked for in vain, what was left out, and how the text came about."""
    told = {name for paragraph in written.paragraphs for name in paragraph.disputed_ids}
    dropped = [checked for checked in written.left_out if checked.claim.id not in told]
    left_out = _left_out_lines(dropped[:_MOST_LEFT_OUT], words)
    if len(dropped) > _MOST_LEFT_OUT:
        left_out.append(words.more.replace("{count}", str(len(dropped) - _MOST_LEFT_OUT)))
    limits = (words.limits, _limit_lines(intake, verified, written, pages, account, words, numbers))
    on_no_page = _words_on_no_page(plan, pages, names_only=account.has_model)
    untold = [word for word in _words_untold(plan, verified, written, pages) if word not in on_no_page]
    vain = _open_sections(plan, verified, written, words, has_model=account.has_model)
    for line, asked in ((words.not_named, _spelt(on_no_page, pages, words)), (words.not_told, untold)):
        if asked:
            names = _first_of([plain_markdown(word) for word in asked], _MOST_WORDS, words)
            vain.append(line.replace("{names}", names))
    vain += _vain_queries(written, account, words)
    parts = [
        *([limits, (words.not_found, vain)] if written.paragraphs else [(words.not_found, vain), limits]),
        (words.left_out, left_out or [words.nothing]),
        (words.notes, [plain_markdown(note) for note in account.notes]),
    ]
    return "\n\n".join(
        f"### {heading}\n\n" + "\n".join(f"- {line}" for line in lines) for heading, lines in parts if lines
    )


def _limit_lines(
    intake: Intake,
    verified: Verified,
    written: Written,
    pages: Sequence[Page],
    account: Account,
    words: ReportWords,
    numbers: Mapping[str, int],
) -> list[str]:
    """What a reader should know before relying on the report."""
    stated = {name for paragraph in written.paragraphs for name in paragraph.claim_ids}
    cited = {url for paragraph in written.paragraphs for url in paragraph.urls}
    sites = {page.url: page.site for page in pages}
    alone = sum(each.claim.id in stated for each in single_source(verified.claims, sites))
    lines: list[str] = []
    if not account.has_model:
        lines.append(words.reading_list)
    if stated and not account.has_model:
        languages = sorted({page.lang for page in pages if page.url in cited and page.lang})
        told = detect_language(" ".join(paragraph.text for paragraph in written.paragraphs))
        if languages and intake.lang not in (told, *languages):  # a page may be half in another language than its own
            line = words.other_language.replace("{pages}", ", ".join(languages))
            lines.append(line.replace("{asked}", plain_markdown(intake.lang)))
        lines += _contradicting(verified, words, numbers)
    if stated and len({sites.get(url, url) for url in cited}) == 1:
        lines.append(words.one_site)
    elif alone and account.has_model:
        sentence = words.each_alone if alone == len(stated) else words.single_site
        lines.append(sentence.replace("{all}", str(len(stated))).replace("{count}", str(alone)))
    for sentence, count in ((words.pages_unread, account.unread), (words.pages_unused, len(pages) - len(cited))):
        if count > 0:
            lines.append(sentence.replace("{count}", str(count)))
    ordering = [f"{plain_markdown(_page_title(page))} ({source_domain(page.url)})" for page in pages if _orders(page)]
    if ordering:
        lines.append(words.orders.replace("{pages}", _first_of(ordering, _MOST_NAMED, words)))
    if account.stop_reason:
        lines.append(
            words.ended.replace("{reason}", words.stops.get(account.stop_reason) or plain_markdown(account.stop_reason))
        )
    return lines


def _contradicting(verified: Verified, words: ReportWords, numbers: Mapping[str, int]) -> list[str]:
    """A line for each two passages of a reading list that contradict each other, with their sentences."""
    told = []
    for found in disagreements(verified.claims)[:_MOST_NAMED]:
        sides = [f"{_quoted(side[0].text, words)} {_mark_of([numbers[side[0].url]], 'c')}" for side in found.sides]
        told.append(words.contradict.replace("{sides}", " – ".join(sides)))
    return told


def _open_sections(
    plan: Plan, verified: Verified, written: Written, words: ReportWords, *, has_model: bool
) -> list[str]:
    """The sections about which the report says nothing, or nothing beyond its answer."""
    dropped = {checked.claim.section for checked in written.left_out if checked.verdict == "supported"}
    if has_model and not written.paragraphs and not dropped:
        return [words.nothing_found]
    section_of = {checked.claim.id: checked.claim.section for checked in verified.claims}
    stated = {section_of.get(name) for paragraph in written.paragraphs for name in paragraph.claim_ids}
    disputed = {section_of.get(name) for paragraph in written.paragraphs for name in paragraph.disputed_ids}
    covered = {paragraph.section for paragraph in written.paragraphs}
    lines = []
    for index, section in enumerate(plan.sections):
        if index not in covered:
            nothing = words.section_left_out if index in dropped else words.no_section
            nothing = nothing if has_model else words.no_passage
            otherwise = words.only_disputed if index in disputed else nothing
            line = words.in_answer if index in stated else otherwise
            lines.append(line.replace("{section}", plain_markdown(title_of(section))))
    return lines


def _words_on_no_page(plan: Plan, pages: Sequence[Page], *, names_only: bool = True) -> list[str]:
    """The names, or all words but general ones, that the plan asks and no page has; none without pages."""
    if not pages:
        return []
    lacking = _lacking(plan, [f"{page.title}\n{page.text}" for page in pages])
    language = plan_language(plan)
    asked = [word for section in plan.sections for word in subject_words(section, language)]
    names = {word.text for word in asked if names_subject(word, language)}
    return [word for word in lacking if not names_only or word.casefold() in names]


def _spelt(names: Sequence[str], pages: Sequence[Page], words: ReportWords) -> list[str]:
    """The names, each with the word of the pages that is written nearly so, where there is one: `Pyton`, `Python`."""
    if not names:
        return []
    known = {each.casefold(): each for page in pages for each in _WORD.findall(f"{page.title}\n{page.text}")}
    told = []
    for name in names:
        near = get_close_matches(name.casefold(), known, 1, _NEARLY)
        told.append(words.perhaps.replace("{name}", name).replace("{near}", known[near[0]]) if near else name)
    return told


def _words_untold(plan: Plan, verified: Verified, written: Written, pages: Sequence[Page]) -> list[str]:
    """The words asked that stand in no sentence of the report nor above one on its page; none without sentences.

    So half of a question of two topics does not vanish unsaid. Words that fit any question are left out.
    """
    if not written.paragraphs:
        return []
    by_url = {page.url: page for page in pages}
    stated = {name for each in written.paragraphs for name in (*each.claim_ids, *each.disputed_ids)}
    told = [each.text for each in written.paragraphs]
    quotes = (quoted for each in verified.claims if each.claim.id in stated for quoted in each.claim.quotes)
    for quoted in quotes:
        if page := by_url.get(quoted.url):
            told += [page.title, *headings_above(page.headings, quoted.start)]
    return _lacking(plan, told)


def _lacking(plan: Plan, texts: Iterable[str]) -> list[str]:
    """The words that the plan asks, but general ones, that none of the texts has in any form, as they are asked."""
    index = FullText()
    index.add(("", "", text) for text in texts)
    asked = " ".join(plan.sections)
    words = {word.query: word.word for section in plan.sections for word in search_words(section)}
    lacking = dict.fromkeys(word for query, word in words.items() if not (is_general(word) or index.holding(query)))
    return [found[0] if (found := re.search(re.escape(word), asked, re.I)) else word for word in lacking]


def _vain_queries(written: Written, account: Account, words: ReportWords) -> list[str]:
    """What was searched for without any result, and what without a result that is cited."""
    cited = {url for paragraph in written.paragraphs for url in paragraph.urls}
    vain = [query for query in account.queries if cited.isdisjoint(query.urls)]
    lines = []
    for sentence, queries in (
        (words.no_result, [query for query in vain if not query.urls]),
        (words.no_use, [query for query in vain if query.urls]),
    ):
        if queries:
            texts = [_quoted(text, words) for text in dict.fromkeys(each.query for each in queries)]
            lines.append(sentence.replace("{queries}", _first_of(texts, _MOST_QUERIES, words)))
    return lines


def _first_of(texts: Sequence[str], most: int, words: ReportWords) -> str:
    """The first of the texts in a line, with how many more there are."""
    more = f" … (+{len(texts) - most})" if len(texts) > most else ""
    return f"{words.between.join(texts[:most])}{more}"


_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|your)\b.{0,30}"
    r"\b(?:instructions?|prompts?)\b"
    r"|\byou are (?:now )?an? (?:[\w-]+ )?(?:AI|assistant|(?:large )?language model|chatbot|LLM)\b"
    r"|\b(?:ignorieren?|vergiss|vergessen|missachten?)\b.{0,40}\b(?:Anweisung|Instruktion|Vorgabe|Prompt)\w*"
    r"|\bdu bist (?:jetzt |nun )?ein\w* (?:KI|Sprachmodell|Assistent|Chatbot)"
    r"|\bSie sind (?:jetzt |nun )?eine? (?:KI|Sprachmodell)"
    r"|(?:以前|これまで|上記|前|すべて|全て)の.{0,8}(?:指示|命令|プロンプト)を?.{0,4}(?:無視|忘れ)"
    r"|あなたは.{0,10}(?:AI|アシスタント|言語モデル)"
    r"|忽略.{0,10}(?:指示|指令|提示)|你是.{0,10}(?:AI|助手|语言模型)",
    re.IGNORECASE,
)
"""How pages order the machine about that reads them, in usual wordings of English, German, Japanese and Chinese."""


@lru_cache(maxsize=64)  # a run lays its report out three times, and long pages take long
def _orders(page: Page) -> bool:
    """Whether the page gives orders to the machine that reads it ("Ignore all previous instructions …")."""
    return bool(_ORDERS.search(page.text))


def _left_out_lines(dropped: Sequence[Checked], words: ReportWords) -> list[str]:
    """The claims that are not in the report, each with why; below the reason where several have the same."""
    of_reason: dict[str, list[str]] = defaultdict(list)
    for checked in dropped:
        # Problems are worded in English; `verification.md`, which is English throughout, has them all.
        told = "; ".join(checked.problems) if words is ENGLISH else ""
        why = told or words.verdicts["contradicted" if checked.against else checked.verdict]
        of_reason[plain_markdown(why)].append(_quoted(checked.claim.text, words))
    return [
        f"{texts[0]}: {why}{words.full_stop}"
        if len(texts) == 1
        else "\n  - ".join([f"{why[:1].upper()}{why[1:]}:", *texts])
        for why, texts in of_reason.items()
    ]


def _quoted(text: str, words: ReportWords) -> str:
    """The text in quotation marks of the language."""
    return f"{words.quotes[0]}{plain_markdown(text)}{words.quotes[1]}"


def _report_of(
    intake: Intake,
    outline: Sequence[str],
    sections: Sequence[str],
    paragraphs: Sequence[Paragraph],
    claims: Mapping[str, Checked],
    pages: Sequence[Page],
    account: Account,
) -> Report:
    """The report as data; `pages` are those that it cites, in order."""
    cited = {name: paragraph.urls for paragraph in paragraphs for name in paragraph.claim_ids if name in claims}
    return Report(
        topic=intake.topic,
        outline=tuple(outline),
        sections=tuple(sections),
        citations=tuple(Citation(claim_id=name, urls=urls_of) for name, urls_of in cited.items()),
        references=tuple(
            Reference(n=number, url=page.url, title=" ".join(page.title.split()) or None)
            for number, page in enumerate(pages, start=1)
        ),
        stop_reason=account.stop_reason or None,
    )


def _quotes_on(url: str, written: Written, claims: Mapping[str, Checked]) -> list[Quote]:
    """The quotes of a page that the report rests on, in its order; of what is disputed those of both sides."""
    quotes: list[Quote] = []
    for paragraph in written.paragraphs:
        told = [claims[name] for name in (*paragraph.claim_ids, *paragraph.disputed_ids) if name in claims]
        if url in paragraph.urls:
            quotes += [quote for each in told for quote in each.claim.quotes]
            quotes += [quote for each in told if each.claim.id in paragraph.disputed_ids for quote in each.against]
    return [quote for quote in quotes if quote.url == url]


def _citation_entry(number: int, page: Page, quotes: Sequence[Quote]) -> CitationEntry:
    """A cited source, with the place and the digest of the first quote of it; none where it supports only."""
    first = quotes[0].text if quotes else ""
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


def text_fragment(url: str, quoted: str) -> str:
    """The URL with a fragment by which a browser shows the quote; the URL alone where there is no quote.

    Source: https://wicg.github.io/scroll-to-text-fragment/ , a long quote by its beginning and end.
    """
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
