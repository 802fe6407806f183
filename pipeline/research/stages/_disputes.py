"""The passages of a report on what pages disagree about: both sides in their own words, and who they are."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from pipeline.research.search.documents import is_document
from pipeline.sources.kinds import SourceKind, source_kind
from pipeline.text.urls import source_domain
from pipeline.text.words import without_marks
from pipeline.verifying.disagreement import Disagreement
from pipeline.verifying.values import Page, Paragraph, Quote

MOST_SHOWN = 5
"""Disagreements in a report; `verification.md` has the others."""
_MOST_OF_A_SIDE = 2
_LONGEST_SIDE = 300
_LONGEST_NAME = 80
_BLANK_BEFORE_STOP = re.compile(r" (?=[.,;。、])")


class _Words(NamedTuple):
    """What a passage says in one language; `{…}` are filled in."""

    disagree: str
    kinds: Mapping[SourceKind, str]
    document: str
    """A file of the user's, whose name tells nothing more."""
    read_on: str
    changed_on: str
    side: str
    between: str


def _kinds(*words: str) -> dict[SourceKind, str]:
    """The words for kinds of sources, in their order."""
    return dict(zip(get_args(SourceKind), words, strict=True))


_ENGLISH = _Words(
    "Pages disagree: ",
    _kinds("public office", "research", "its maker", "manual", "web page", "discussion", "shop", "list of links"),
    "document", "read on {date}", "last changed on {date}", "{name} ({about}): “{words}”", ", ",
)  # fmt: skip
_WORDS = {
    "en": _ENGLISH,
    "de": _Words(
        "Seiten widersprechen einander: ",
        _kinds("Behörde", "Forschung", "Hersteller", "Handbuch", "Webseite", "Diskussion", "Shop", "Linkliste"),
        "Dokument", "gelesen am {date}", "zuletzt geändert am {date}", "{name} ({about}): „{words}“", ", ",
    ),
    "ja": _Words(
        "ページの記述が食い違っています：",
        _kinds("公的機関", "研究", "提供元", "マニュアル", "ウェブページ", "掲示板など", "ショップ", "リンク集"),
        "文書", "{date} 閲覧", "{date} 最終更新", "{name}（{about}）：「{words}」", "、",
    ),
    "zh": _Words(
        "网页说法不一：",
        _kinds("官方机构", "研究", "提供方", "手册", "网页", "讨论", "商店", "链接列表"),
        "文档", "{date} 读取", "{date} 最后更改", "{name}（{about}）：“{words}”", "，",
    ),
}  # fmt: skip


def dispute_paragraphs(
    found: Sequence[Disagreement], pages: Sequence[Page], section: int, language: str
) -> list[Paragraph]:
    """A paragraph for each disagreement, at most 5, in order, in the report's language.

    `section` is the index behind the plan's last one. The paragraphs state no claim: they say who says what.
    """
    by_url = {page.url: page for page in pages}
    words = _WORDS.get(language, _ENGLISH)
    known = [each for each in found if all(quote.url in by_url for side in each.sides for quote in side)]
    return [_paragraph(each, by_url, section, words) for each in known[:MOST_SHOWN]]


def _paragraph(found: Disagreement, pages: Mapping[str, Page], section: int, words: _Words) -> Paragraph:
    quotes = [quote for side in found.sides for quote in side[:_MOST_OF_A_SIDE]]
    text = words.disagree + " ".join(_said_by(quote, pages[quote.url], words) for quote in quotes)
    return Paragraph(section, text, (), tuple(quote.url for quote in quotes), found.claim_ids)


def _said_by(quote: Quote, page: Page, words: _Words) -> str:
    """What a page says, behind its title, or its host where it has none, what kind of source it is, and its date."""
    name = " ".join(page.title.split()) or source_domain(page.url)
    said = _BLANK_BEFORE_STOP.sub("", " ".join(without_marks(quote.text).split()))
    dated, day = (words.changed_on, page.changed) if page.changed else (words.read_on, page.fetched_at[:10])
    kind = source_kind(page.url)
    told = words.document if kind == "page" and is_document(page.url) else words.kinds[kind]
    about = words.between.join((told, dated.replace("{date}", day)))
    return words.side.format(name=_cut(name, _LONGEST_NAME), about=about, words=_cut(said, _LONGEST_SIDE))


def _cut(text: str, longest: int) -> str:
    """The text, with an ellipsis for what is beyond the longest length."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
