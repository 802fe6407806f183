"""Sentences with what people say of them and of their pages: open data beside the project, and edits made here."""

import gzip
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pipeline.text.words import words_and_numbers
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import Finding, check_sentence
from tests.support.places import DATA, SHARED

CORPORA = SHARED / "corpora"
MADE_HERE = DATA / "verdicts"
PART_OF = "AttributionBench dev, "
"""How the names of the parts of a set begin."""
LANGUAGES = ("english", "german", "japanese")


class Case(NamedTuple):
    """A sentence, the texts of the pages that it cites, and what is known of it."""

    id: str
    text: str
    pages: tuple[str, ...]
    truth: bool | None
    """Whether people say that the pages support it; None for in part."""
    kind: str = ""
    """What was changed in it."""
    lang: str = ""


class Judged(NamedTuple):
    """A case with what is said of it without a model."""

    case: Case
    finding: Finding
    plain: float
    """Share of its content words and numbers that the pages have."""


def judged(case: Case) -> Judged:
    pages = [PageText(text, f"https://a{n}.example/", case.lang) for n, text in enumerate(case.pages)]
    words = frozenset[str]().union(*words_and_numbers(case.text, ""))
    had = sum(any(word in page.index.places for page in pages) for word in words)
    return Judged(case, check_sentence(case.text, pages), had / max(1, len(words)))


def wice() -> Iterator[Case]:
    """Claims of Wikipedia with the article that each cites."""
    truths = {"supported": True, "not_supported": False, "partially_supported": None}
    for row in _lines(CORPORA / "wice" / "dev.jsonl"):
        yield Case(row["meta"]["id"], row["claim"], ("\n".join(row["evidence"]),), truths[row["label"]])


def attribution_bench(source: str = "") -> Iterator[Case]:
    """Sentences of answers with their references; those of one source set, or of all."""
    for row in _lines(CORPORA / "claims" / "attributionbench_dev.jsonl.gz"):
        if source in ("", row["src_dataset"]):
            truth = row["attribution_label"] == "attributable"
            yield Case(row["id"], row["claim"], tuple(row["references"]), truth, row["src_dataset"])


def expert_qa() -> Iterator[Case]:
    """Claims of answers with their evidence, judged by the expert who asked."""
    truths = {"Complete": True, "Incomplete": None, "Partial": None, "Missing": False}
    for number, row in enumerate(_lines(CORPORA / "claims" / "expertqa_domain_val.jsonl.gz")):
        for answer in row["answers"].values():
            for place, claim in enumerate(answer["claims"]):
                if claim["support"] in truths and claim["evidence"]:
                    pages = tuple(claim["evidence"])
                    yield Case(f"expertqa-{number}-{place}", claim["claim_string"], pages, truths[claim["support"]])


def qags() -> Iterator[Case]:
    """Sentences of machines' summaries with the article; the majority of three workers."""
    for number, row in enumerate(_lines(CORPORA / "ratings" / "qags_cnndm.jsonl")):
        for place, each in enumerate(row["summary_sentences"]):
            votes = [response["response"] == "yes" for response in each["responses"]]
            yield Case(f"qags-{number}-{place}", each["sentence"], (row["article"],), 2 * sum(votes) > len(votes))


def edits(file: Path, lang: str = "") -> Iterator[Case]:
    """False edits and true rewordings of the sentences of invented pages."""
    data = json.loads(file.read_text(encoding="utf-8"))
    pages = {name: _joined(sentences, data.get("language", "en")) for name, sentences in data["pages"].items()}
    lang = data.get("language", lang)
    for number, edit in enumerate(data["false_edits"]):
        yield Case(f"{file.stem}-{number}", edit["text"], (pages[edit["page"]],), False, edit["kind"], lang)
    names = list(pages)
    for number, true in enumerate(data["true_rewordings"]):
        if isinstance(true, dict):
            yield Case(f"{file.stem}-true-{number}", true["text"], (pages[true["page"]],), True, "", lang)
        elif not true.startswith("["):  # The sentences of a report: without a mark they are of the first page.
            at = int(true[-3]) - 1 if true.endswith("].") else 0
            yield Case(f"{file.stem}-true-{number}", true, (pages[names[at]],), True, "", lang)


def sentences_of_pages(file: Path) -> Iterator[tuple[str, str, str]]:
    """Each sentence of the invented pages, the whole page, and the language."""
    data = json.loads(file.read_text(encoding="utf-8"))
    for sentences in data["pages"].values():
        for sentence in sentences:
            yield sentence, _joined(sentences, data["language"]), data["language"]


def sets() -> dict[str, Sequence[Case]]:
    found: dict[str, Sequence[Case]] = {}
    if CORPORA.is_dir():
        found["WiCE dev"] = tuple(wice())
        found["AttributionBench dev"] = tuple(attribution_bench())
        for source in ("ExpertQA", "Stanford-GenSearch"):
            found[f"{PART_OF}{source}"] = tuple(attribution_bench(source))
        found["ExpertQA val"] = tuple(expert_qa())
        found["QAGS CNN/DM"] = tuple(qags())
        found["edits, shared"] = tuple(edits(CORPORA / "edits" / "english.json"))
    return found | {f"edits, {name}": tuple(edits(MADE_HERE / f"{name}.json")) for name in LANGUAGES}


def _joined(sentences: Sequence[str], lang: str) -> str:
    return ("" if lang in ("ja", "zh") else " ").join(sentences)


@cache
def _lines(file: Path) -> tuple[dict, ...]:  # type: ignore[type-arg]  # As the files have it.
    """The objects of a JSON Lines file, packed or not; it is read once."""
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return tuple(map(json.loads, text.splitlines()))
