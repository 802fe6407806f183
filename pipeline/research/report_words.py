"""The report's own words, by language in `words/<language>.toml`; what each is for stands in `words/en.toml`."""

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pipeline.sources.address import SourceKind
from pipeline.verifying.values import Verdict

WORDS = Path(__file__).parent / "words"


class ReportWords(NamedTuple):
    """The report's own words in one language; `{…}` are filled in with numbers or names of ours."""

    answer: str
    without: str
    words_found: str
    goes_on: str
    no_answer: str
    disputed: str
    disagree: str
    kinds: dict[SourceKind, str]
    document: str
    side: str
    beside: str
    references: str
    how_to_read: str
    documents: str
    read_on: str
    changed_on: str
    limits: str
    reading_list: str
    contradict: str
    other_language: str
    one_site: str
    each_alone: str
    single_site: str
    pages_unread: str
    pages_unused: str
    orders: str
    ended: str
    not_found: str
    nothing_found: str
    not_named: str
    perhaps: str
    not_told: str
    no_section: str
    no_passage: str
    section_left_out: str
    only_disputed: str
    in_answer: str
    no_result: str
    no_use: str
    left_out: str
    more: str
    notes: str
    nothing: str
    full_stop: str
    quotes: str
    between: str
    verdicts: dict[Verdict, str]
    stops: dict[str, str]


@cache
def report_words(language: str) -> ReportWords:
    """The report's words in the language; English ones where it has none of its own."""
    files = {path.stem: path for path in WORDS.glob("*.toml")}
    return ReportWords(**tomllib.loads(files.get(language, files["en"]).read_text(encoding="utf-8")))
