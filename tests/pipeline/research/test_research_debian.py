"""Whole runs without a model on the loopback web of Debian's documentation, their citations looked up independently.

What a cited page says is told by lxml's text of its raw HTML, and a sentence is on it word for word or not at all:
nothing of our own extraction or verification decides.
"""

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt

from pipeline.research.artefacts import RunFolder
from pipeline.research.audit import audit_run
from pipeline.research.options import ResearchOptions
from pipeline.research.run import Environment, search_provider
from pipeline.research.stages import research
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.store import open_store
from pipeline.text.sentences import sentence_spans
from tests.support.debian_web import debian_page_list, debian_web, url_of
from tests.support.scripted_search import ScriptedSearch, debian_search
from tests.support.web import Web

Topics = Mapping[str, Sequence[str]]
TOPICS: Topics = {
    "en": (
        "How does APT verify the authenticity of packages, and what are the risks of third-party repositories?",
        "Backups of a Debian server",
        "How are packages configured and upgraded in Debian?",
    ),
    "de": (
        "Wie werden Pakete mit APT installiert und aktualisiert?",
        "Was leistet eine Firewall und wie wird sie in Debian eingerichtet?",
    ),
    "ja": ("Debianのパッケージ管理", "Debianのインストール手順"),
}
ONE: Topics = {"en": TOPICS["en"][:1]}
LEAST_SENTENCES = 8  # of each topic


class Finished(NamedTuple):
    language: str
    topic: str
    folder: RunFolder


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with debian_web() as web:
        yield web


@pytest.fixture(scope="module", params=["one", pytest.param("all", marks=pytest.mark.rare)])
def runs(request: pytest.FixtureRequest, web: Web, tmp_path_factory: pytest.TempPathFactory) -> list[Finished]:
    """A run of one topic, or those of all topics in every language."""
    runs_dir = tmp_path_factory.mktemp("runs")
    with ScriptedSearch(debian_search(web)) as server:
        return asyncio.run(run_all(web, server.base_url, runs_dir, TOPICS if request.param == "all" else ONE))


async def run_all(web: Web, search_url: str, runs_dir: Path, wanted: Topics) -> list[Finished]:
    finished = []
    with open_store(runs_dir / "store.sqlite") as store:
        async with (
            web.client() as client,
            Fetcher(client, FetchPolicy(delay=0.0, backoff=0.0)) as fetcher,
            Extractor() as extractor,
        ):
            search = search_provider("tavily", store, {"TAVILY_API_KEY": "tvly-1"}, base_url=search_url)
            environment = Environment(store, fetcher, extractor, search)
            for language, topics in wanted.items():
                for number, topic in enumerate(topics, start=1):
                    options = ResearchOptions(
                        topic=topic,
                        lang=language,
                        run_id=f"{language}{number}",
                        runs_dir=runs_dir,
                        search="tavily",
                        model="extractive",
                        per_domain_cap=10,
                    )
                    await research(options, environment)
                    finished.append(Finished(language, topic, RunFolder(runs_dir / options.run_id)))
    return finished


def plain(text: str) -> str:
    """The letters and digits of the text, in one form: what parts cells and marks items is ours."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text))


def cited_sentences(finished: Finished) -> Iterator[tuple[str, list[str]]]:
    """Each sentence of the report's body with the URLs that its paragraph cites."""
    urls = {entry.cid: entry.url for entry in finished.folder.read_citations()}
    for paragraph in finished.folder.read_paragraphs():
        for start, end in sentence_spans(paragraph.text, finished.language):
            yield paragraph.text[start:end], [urls[cid] for cid in paragraph.cite_ids]


def body_paragraphs(markdown: str) -> list[str]:
    """The paragraphs before the list of sources, as Markdown shows them."""
    tokens = MarkdownIt("commonmark").parse(markdown)
    headings = [at for at, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"]
    return [
        "".join(child.content for child in token.children or ())
        for token, before in zip(tokens[1 : headings[-1]], tokens, strict=False)
        if token.type == "inline" and before.type == "paragraph_open"
    ]


def test_sentences_of_the_reports_stand_on_the_pages_that_they_cite(runs: list[Finished], web: Web) -> None:
    pages = {url_of(web, page): plain(page.text) for page in debian_page_list()}
    pairs = [
        (plain(sentence), url, finished.language, sentence)
        for finished in runs
        for sentence, urls in cited_sentences(finished)
        for url in urls
    ]
    wrong = [(language, url, sentence) for form, url, language, sentence in pairs if form not in pages[url]]
    accuracy = 1 - len(wrong) / len(pairs)
    assert len(pairs) >= LEAST_SENTENCES * len(runs)
    assert accuracy >= 0.95, f"{accuracy:.3f} of {len(pairs)} pairs; not there: {wrong}"
    assert {language for _, _, language, _ in pairs} == {finished.language for finished in runs}


def test_every_paragraph_of_a_report_ends_in_citations_and_the_audit_passes(runs: list[Finished]) -> None:
    for finished in runs:
        paragraphs = body_paragraphs(finished.folder.read_report_md())
        assert paragraphs, finished.topic
        assert all(re.search(r"\((?:C\d{3})(?:, C\d{3})*\)$", paragraph) for paragraph in paragraphs), paragraphs
        check = finished.folder.read_verify()
        assert check is not None
        assert check.passed
        assert audit_run(finished.folder).passed
        assert check.total_paragraphs == len(paragraphs)
        report = finished.folder.read_report()
        assert report is not None
        cited = [entry.url for entry in finished.folder.read_citations()]
        assert [reference.url for reference in report.references] == cited
