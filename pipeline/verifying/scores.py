"""How well a report's citations carry its sentences, measured on the stored pages by `check_sentence`.

Citation recall and precision are those of ALCE (Gao et al. 2023, https://arxiv.org/abs/2305.14627), citation accuracy
and effective citations those of FACT in DeepResearch Bench (Du et al. 2025, https://arxiv.org/abs/2506.11763). Both
papers ask a model whether a page carries a sentence; here it does where it says the sentence in the page's own words. A
page in other words counts as carrying nothing, so the scores err on the low side.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.text.sentences import sentence_spans
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import check_sentence
from pipeline.verifying.values import Checked, Paragraph, Verdict


class CitedText(NamedTuple):
    """Sentences that share their citations: a single one with marks of its own, or a paragraph with them at its end."""

    sentences: tuple[str, ...]  # Without the citations; at least one
    urls: tuple[str, ...]  # Canonical URLs of the cited pages, each once; empty where nothing is cited


class Scores(NamedTuple):
    """What was counted; the shares are None where nothing was there to count."""

    sentences: int = 0
    supported: int = 0  # Sentences that all their citations together support
    citations: int = 0
    precise: int = 0  # Citations that are needed: see `_is_precise`
    read: int = 0
    effective: int = 0  # Those of them whose page alone supports a sentence of the text

    @property
    def recall(self) -> float | None:
        """ALCE citation recall: supported / sentences. A sentence without a citation is not supported."""
        return self.supported / self.sentences if self.sentences else None

    @property
    def precision(self) -> float | None:
        """ALCE citation precision: precise / citations."""
        return self.precise / self.citations if self.citations else None

    @property
    def accuracy(self) -> float | None:
        """FACT citation accuracy: effective / read. Pages that could not be read count for nothing, as in the paper."""
        return self.effective / self.read if self.read else None


class _Verdicts:
    def __init__(self, pages: Mapping[str, PageText]) -> None:
        self.pages = pages
        self.known: dict[tuple[str, tuple[str, ...]], Verdict] = {}

    def on(self, sentence: str, urls: tuple[str, ...]) -> Verdict:
        if (sentence, urls) not in self.known:
            read = [self.pages[url] for url in urls if url in self.pages]
            self.known[sentence, urls] = check_sentence(sentence, read).verdict
        return self.known[sentence, urls]

    def supports(self, sentence: str, urls: tuple[str, ...]) -> bool:
        return bool(urls) and self.on(sentence, urls) == "supported"


def cited_texts(paragraphs: Iterable[Paragraph], language: str = "") -> list[CitedText]:
    return [
        CitedText(
            tuple(each.text[start:end] for start, end in sentence_spans(each.text, language)),
            tuple(dict.fromkeys(each.urls)),
        )
        for each in paragraphs
        if each.text.strip()
    ]


def citation_scores(texts: Iterable[CitedText], pages: Mapping[str, PageText]) -> Scores:
    verdicts = _Verdicts(pages)
    kept = list(texts)
    sentences = [(sentence, text.urls) for text in kept for sentence in text.sentences]
    cited = [(text, url) for text in kept for url in text.urls]
    different = dict.fromkeys((text.sentences, url) for text, url in cited)
    return Scores(
        sentences=len(sentences),
        supported=sum(verdicts.supports(*each) for each in sentences),
        citations=len(cited),
        precise=sum(_is_precise(text, url, verdicts) for text, url in cited),
        read=sum(url in pages for _, url in different),
        effective=sum(
            url in pages and any(verdicts.supports(sentence, (url,)) for sentence in group) for group, url in different
        ),
    )


def weaker_sentences(texts: Iterable[CitedText], pages: Mapping[str, PageText]) -> list[tuple[str, Verdict]]:
    verdicts = _Verdicts(pages)
    told = [(sentence, verdicts.on(sentence, text.urls)) for text in texts for sentence in text.sentences]
    return [each for each in told if each[1] != "supported"]


def _is_precise(text: CitedText, url: str, verdicts: _Verdicts) -> bool:
    """All citations together support it, and this one does so alone or the others do not without it (ALCE's rule).

    Where sentences share their citations, one that needs it is enough.
    """
    others = tuple(other for other in text.urls if other != url)
    return any(
        verdicts.supports(sentence, text.urls)
        and (verdicts.supports(sentence, (url,)) or not verdicts.supports(sentence, others))
        for sentence in text.sentences
    )


def single_source(checked: Iterable[Checked], sites: Mapping[str, str]) -> list[Checked]:
    return [
        each
        for each in checked
        if each.verdict == "supported" and len({sites.get(url, url) for url in each.supporters}) == 1
    ]
