"""The report laid out: Markdown for people, the same as data, and its sources under their ids.

Source: pipeline/contracts/research.md.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from urllib.parse import quote, urldefrag

from pipeline.errors import InputError
from pipeline.research.contracts import Citation, Reference, Report
from pipeline.research.output.artefacts import MAX_SOURCES, CitationEntry, ParagraphLine
from pipeline.research.values import BETWEEN, Intake, Plan, Verified, Written, plan_language
from pipeline.text.normal_form import normalise
from pipeline.text.urls import source_domain
from pipeline.verifying.values import Checked, Page, Paragraph, Quote, Verdict

_HEADINGS = {
    "en": "Where sources disagree",
    "de": "Worin Quellen einander widersprechen",
    "ja": "出典が食い違う点",
    "zh": "来源说法不一之处",
}
"""Of the section behind the others, by the report's language; other languages have the English one."""


class _ReportWords(NamedTuple):
    """The report's own words in one language; `{…}` are filled in with numbers or names of ours."""

    references: str
    how_to_read: str
    read_on: str
    left_out: str
    nothing_found: str
    no_section: str
    more: str
    ended: str
    notes: str
    nothing: str
    pages_unused: str
    full_stop: str
    verdicts: dict[Verdict, str]
    stops: dict[str, str]


ENGLISH = _ReportWords(
    references="References",
    how_to_read="Every paragraph above ends in the sources that hold all of it, or one side of a disagreement each; "
    "{mark} is the first of this list. Each sentence was checked against the stored text of these pages.",
    read_on="read on {date}",
    left_out="What was left out",
    nothing_found="Insufficient evidence: no statement on this topic could be checked against a page.",
    no_section="Nothing on “{section}”: no statement about it could be checked against a page.",
    more="{count} more are listed in `verification.md`.",
    ended="The research ended before it had done all it wanted: {reason}.",
    notes="How the text came about",
    nothing="Nothing.",
    pages_unused="Pages that were read and are not cited: {count}.",
    full_stop=".",
    verdicts={
        "supported": "not needed",
        "cannot_tell": "it cannot be told from its pages",
        "not_found": "its pages do not support it",
        "contradicted": "a page says otherwise",
    },
    stops={
        "seconds": "the time that `--max-seconds` allows was over",
        "tokens": "the tokens that `--max-tokens` allows were used",
        "cost": "the cost that `--max-cost` allows was reached",
        "fetches": "the sources that `--budget` allows were read",
    },
)
_GERMAN = _ReportWords(
    references="Quellen",
    how_to_read="Jeder Absatz oben endet mit den Quellen, in denen er ganz steht, bei Widersprüchen je eine Seite; "
    "{mark} ist die erste dieser Liste. Jeder Satz wurde am gespeicherten Text dieser Seiten geprüft.",
    read_on="gelesen am {date}",
    left_out="Was weggelassen wurde",
    nothing_found="Zu wenig Belege: Keine Aussage zu diesem Thema ließ sich an einer Seite prüfen.",
    no_section="Nichts zu „{section}“: Keine Aussage dazu ließ sich an einer Seite prüfen.",
    more="{count} weitere stehen in `verification.md`.",
    ended="Die Recherche endete, bevor alles Gewünschte getan war: {reason}.",
    notes="Wie der Text entstand",
    nothing="Nichts.",
    pages_unused="Seiten, die gelesen wurden und nicht zitiert werden: {count}.",
    full_stop=".",
    verdicts={
        "supported": "nicht gebraucht",
        "cannot_tell": "aus ihren Seiten geht nicht hervor, ob sie stimmt",
        "not_found": "ihre Seiten belegen sie nicht",
        "contradicted": "eine Seite sagt etwas anderes",
    },
    stops={
        "seconds": "die Zeit, die `--max-seconds` erlaubt, war um",
        "tokens": "die Tokens, die `--max-tokens` erlaubt, waren verbraucht",
        "cost": "die Kosten, die `--max-cost` erlaubt, waren erreicht",
        "fetches": "die Quellen, die `--budget` erlaubt, waren gelesen",
    },
)
_JAPANESE = _ReportWords(
    references="参考文献",
    how_to_read="上の各段落の末尾には、その内容がすべて (食い違いは片方ずつ) 載っている出典があります。{mark} は"
    "この一覧の最初の出典です。各文は、保存したページの本文と照合されています。",
    read_on="{date} 閲覧",
    left_out="省いたもの",
    nothing_found="根拠が不十分です。ページと照合できる記述がありませんでした。",
    no_section="「{section}」については、ページと照合できる記述がありませんでした。",
    more="ほか {count} 件は `verification.md` にあります。",
    ended="調査は途中で終わりました: {reason}。",
    notes="本文の作られ方",
    nothing="ありません。",
    pages_unused="{count} ページは読みましたが引用していません。",
    full_stop="。",
    verdicts={
        "supported": "不要",
        "cannot_tell": "ページからは判断できない",
        "not_found": "ページが裏付けていない",
        "contradicted": "別のことを述べるページがある",
    },
    stops={
        "seconds": "`--max-seconds` の時間を使い切りました",
        "tokens": "`--max-tokens` のトークンを使い切りました",
        "cost": "`--max-cost` の費用に達しました",
        "fetches": "`--budget` の数の出典を読み終えました",
    },
)
_CHINESE = _ReportWords(
    references="参考文献",
    how_to_read="以上每个段落的末尾列出包含其全部内容的来源（分歧之处各载一方）；{mark} 是本列表的第一个来源。"
    "每个句子都与所存网页的文本核对过。",
    read_on="{date} 读取",
    left_out="未采用的内容",
    nothing_found="证据不足：没有任何陈述能与网页核对。",
    no_section="关于“{section}”，没有任何陈述能与网页核对。",
    more="另有 {count} 条列在 `verification.md` 中。",
    ended="研究提前结束：{reason}。",
    notes="文本的形成",
    nothing="没有。",
    pages_unused="读取了 {count} 个网页但未引用。",
    full_stop="。",
    verdicts={
        "supported": "不需要",
        "cannot_tell": "从网页无法判断",
        "not_found": "网页不支持",
        "contradicted": "有网页持不同说法",
    },
    stops={
        "seconds": "`--max-seconds` 允许的时间已用完",
        "tokens": "`--max-tokens` 允许的令牌已用完",
        "cost": "已达到 `--max-cost` 允许的费用",
        "fetches": "`--budget` 允许的来源已读完",
    },
)
_REPORT_WORDS = {"en": ENGLISH, "de": _GERMAN, "ja": _JAPANESE, "zh": _CHINESE}


def _report_words(language: str) -> _ReportWords:
    """The report's words in the language; English ones where it has none of its own."""
    return _REPORT_WORDS.get(language, ENGLISH)


_MARKUP = re.compile(r"[\\`*\[\]<>|~$&!#]|(?<![^\W_])_|_(?![^\W_])|\^(?=\[)")
_ADDRESS = re.compile(r"(?<=\w):(?=//)|(?<=\bwww)\.|(?<=\w)@(?=\w)", re.IGNORECASE)
_CITATION = re.compile(r"(?<=[(（])(?=C[0-9]{3})|(?=【)")
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


def lay_out(
    intake: Intake,
    plan: Plan,
    verified: Verified,
    written: Written,
    pages: Sequence[Page],
    account: Account | None = None,
    form: CitationForm = "c",
) -> LaidOut:
    """The report from its paragraphs. The same values give the same bytes.

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
    words = _report_words(plan_language(plan))
    outline, sections = _body_of(plan, written.paragraphs, numbers, form)
    parts = [
        f"# {plain_markdown(written.title)}",
        *sections,
        _references_of([by_url[url] for url in urls], words, form),
        _back_matter(plan, written, len(pages) - len(urls), account, words),
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
    plan: Plan, paragraphs: Sequence[Paragraph], numbers: Mapping[str, int], form: CitationForm
) -> tuple[list[str], list[str]]:
    """The headings of the sections that have paragraphs, the one on disagreements last, and these in Markdown."""
    outline, sections = [], []
    disputed = _HEADINGS.get(plan_language(plan), _HEADINGS["en"])
    for index, section in enumerate((*plan.sections, disputed)):
        blocks = [
            f"{plain_markdown(each.text)} {_mark_of(sorted(numbers[url] for url in each.urls), form)}"
            for each in paragraphs
            if each.section == index
        ]
        if blocks:
            outline.append(_heading_of(section))
            sections.append("\n\n".join([f"## {plain_markdown(outline[-1])}", *blocks]))
    return outline, sections


def _heading_of(section: str) -> str:
    """The section's heading: of a side of the topic its name alone, for the topic stands above."""
    heading = section.rpartition(BETWEEN)[2] or section
    return heading[:1].upper() + heading[1:]


def _mark_of(numbers: Sequence[int], form: CitationForm) -> str:
    """The citation mark of these sources."""
    if form == "n":
        return f"[{', '.join(map(str, numbers))}]"
    return f"({', '.join(map(cid, numbers))})"


def _references_of(pages: Sequence[Page], words: _ReportWords, form: CitationForm) -> str:
    """The list of sources with titles, sites and the day on which each was read."""
    lines = [f"## {words.references}"]
    if pages:
        lines.append(words.how_to_read.replace("{mark}", _mark_of([1], form)))
    entries = []
    for number, page in enumerate(pages, start=1):
        day = words.read_on.replace("{date}", page.fetched_at[:10])
        label = f"{cid(number)} " if form == "c" else ""
        entries.append(f"{number}. {label}{link_to(_title_of(page), page.url)} · {source_domain(page.url)} · {day}")
    return "\n\n".join([*lines, *(["\n".join(entries)] if entries else [])])


def _title_of(page: Page) -> str:
    """The page's title, or its site where it has none."""
    title = " ".join(page.title.split()) or source_domain(page.url)
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1].rstrip()}…"


def _back_matter(plan: Plan, written: Written, unused: int, account: Account, words: _ReportWords) -> str:
    """What was left out and why, why the run ended, and how the text came about."""
    lines = []
    if not written.paragraphs:
        lines.append(words.nothing_found)
    covered = {paragraph.section for paragraph in written.paragraphs}
    lines += [
        words.no_section.replace("{section}", plain_markdown(_heading_of(section)))
        for index, section in enumerate(plan.sections)
        if index not in covered and written.paragraphs
    ]
    lines += [_left_out_line(checked, words) for checked in written.left_out[:_MOST_LEFT_OUT]]
    if len(written.left_out) > _MOST_LEFT_OUT:
        lines.append(words.more.replace("{count}", str(len(written.left_out) - _MOST_LEFT_OUT)))
    if unused > 0:
        lines.append(words.pages_unused.replace("{count}", str(unused)))
    if account.stop_reason:
        lines.append(words.ended.replace("{reason}", _stop_words(account.stop_reason, words)))
    parts = [f"### {words.left_out}", "\n".join(f"- {line}" for line in lines or [words.nothing])]
    if account.notes:
        parts += [f"### {words.notes}", "\n".join(f"- {plain_markdown(note)}" for note in account.notes)]
    return "\n\n".join(parts)


def _stop_words(reason: str, words: _ReportWords) -> str:
    """Why the run ended, in words; the reason itself where there are none for it."""
    return words.stops.get(reason) or plain_markdown(reason)


def _left_out_line(checked: Checked, words: _ReportWords) -> str:
    """A claim that is not in the report, and why."""
    # Problems are worded in English; `verification.md`, which is English throughout, has them all.
    told = "; ".join(checked.problems) if words is ENGLISH else ""
    why = told or words.verdicts[checked.verdict]
    return f"“{plain_markdown(checked.claim.text)}”: {plain_markdown(why)}{words.full_stop}"


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
    """The quotes of a page that the report rests on, in its order."""
    names = [name for paragraph in written.paragraphs for name in paragraph.claim_ids if url in paragraph.urls]
    return [each for name in names if name in claims for each in claims[name].claim.quotes if each.url == url]


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
