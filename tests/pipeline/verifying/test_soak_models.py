"""What a model adds to the words, and what keeps a bad one from being believed: models by rule on what people judged.

`reads` knows what people say and quotes the nearest sentences; `invents` calls all supported and quotes nothing that is
there; `agrees` calls all supported and quotes the nearest sentences, which is the most that a model can get through.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import pytest

from exports.statistics.distributions import wilson_interval
from pipeline.models.completion import Structured
from pipeline.text.words import words_and_numbers
from pipeline.verifying.model_verdicts import OpenQuestion, VerdictAnswer, decide, open_question
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import check_sentence
from pipeline.verifying.values import Verdict
from tests.support.places import NO_SHARED
from tests.support.verdict_data import CORPORA, PART_OF, Case, sets

Reader = Literal["rules", "reads", "invents", "agrees"]
READERS: tuple[Reader, ...] = get_args(Reader)
INVENTED = "It is said by everybody who was asked that this is so indeed"


class Cell(NamedTuple):
    """How often `supported` is said of cases of one kind."""

    said: int
    of: int

    def __str__(self) -> str:
        low, high = wilson_interval(self.said, self.of)
        return f"{self.said / self.of:.3f} [{low:.3f}, {high:.3f}] of {self.of}"


def nearest(question: OpenQuestion) -> tuple[str, ...]:
    """The three sentences of its passages that hold most of a claim together."""
    left = set[str]().union(*words_and_numbers(question.text, ""))
    sentences = {
        each: frozenset[str]().union(*words_and_numbers(each, ""))
        for passage in question.passages
        for each in PageText(passage.text).sentences
    }
    found: list[str] = []
    while sentences and len(found) < 3:
        best = max(sentences, key=lambda each: len(left & sentences[each]))
        left -= sentences.pop(best)
        found.append(best)
    return tuple(found)


def verdicts(case: Case) -> dict[Reader, Verdict]:
    """What comes of a case with each of the models."""
    pages = [PageText(text, f"https://a{number}.example/", case.lang) for number, text in enumerate(case.pages)]
    finding = check_sentence(case.text, pages)
    question = open_question(case.text, pages, finding)
    if question is None:
        return dict.fromkeys(READERS, finding.verdict)
    quotes = nearest(question)
    knows = VerdictAnswer(verdict="supported", quotes=quotes) if case.truth else VerdictAnswer(verdict="cannot_tell")
    answers: dict[Reader, VerdictAnswer] = {
        "reads": knows,
        "invents": VerdictAnswer(verdict="supported", quotes=(INVENTED,)),
        "agrees": VerdictAnswer(verdict="supported", quotes=quotes),
    }
    told = {name: decide(question, Structured(said, "ok", "", ())).verdict for name, said in answers.items()}
    return {"rules": finding.verdict, **told}


def measured(cases: Iterable[Case]) -> dict[tuple[bool, Reader], Cell]:
    """How often each of the models gets `supported` through, of what people support wholly and of all else."""
    said, of = Counter[tuple[bool, Reader]](), Counter[bool]()
    for case in cases:
        if not any(case.pages):
            continue
        truth = case.truth is True
        of[truth] += 1
        said.update((truth, name) for name, verdict in verdicts(case).items() if verdict == "supported")
    return {(truth, name): Cell(said[truth, name], of[truth]) for truth in of for name in READERS}


def shown(name: str, cells: dict[tuple[bool, Reader], Cell]) -> Sequence[str]:
    kinds = {True: "wholly supported", False: "in part or not supported"}
    return [f"{name}, {kinds[truth]}, {reader}: {cell}" for (truth, reader), cell in cells.items()]


@pytest.mark.parametrize("language", ["english", "german", "japanese"])
def test_of_false_edits_a_model_that_invents_its_quotes_gets_nothing_through(language: str) -> None:
    cells = measured(sets()[f"edits, {language}"])
    assert cells[False, "invents"] == cells[False, "rules"]
    assert cells[False, "reads"].said <= cells[False, "rules"].said
    assert cells[False, "agrees"].said <= 0.7 * cells[False, "agrees"].of
    assert cells[True, "reads"].said > cells[True, "rules"].said


@pytest.mark.soak
@pytest.mark.skipif(not CORPORA.is_dir(), reason=NO_SHARED)
def test_soak_what_each_model_gets_through() -> None:
    for name, cases in sets().items():
        if name.startswith(PART_OF):
            continue
        chosen = sorted(cases, key=lambda case: hashlib.sha256(case.id.encode()).digest())[:700]
        cells = measured(chosen)
        sys.stdout.write("".join(f"{line}\n" for line in shown(name, cells)))
        for truth, reader in cells:
            if reader == "invents":
                assert cells[truth, reader] == cells[truth, "rules"]
            if reader == "reads" and not truth:
                assert cells[truth, reader].said <= cells[truth, "rules"].said
