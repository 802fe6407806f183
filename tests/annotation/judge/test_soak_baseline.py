"""What the judge without a model says of people's claims, and how often it is right: open data beside the project."""

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from annotation.judge.baseline import baseline_judgement
from annotation.judge.judgements import units_of
from exports.statistics.distributions import wilson_interval
from tests.annotation.judge.test_judge_baseline import record_of
from tests.support.places import NO_SHARED, SHARED

CORPORA = SHARED / "corpora"
Case = tuple[str, list[str], bool, bool]
"""A claim, the texts that it is held against, and whether people call it supported, in part at least and wholly."""


def wice() -> Iterator[Case]:
    for line in (CORPORA / "wice" / "dev.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        text = "\n".join(case["evidence"])
        yield case["claim"], [text], case["label"] != "not_supported", case["label"] == "supported"


def attribution() -> Iterator[Case]:
    with gzip.open(CORPORA / "claims" / "attributionbench_dev.jsonl.gz", "rt", encoding="utf-8") as file:
        for case in map(json.loads, file):
            is_backed = case["attribution_label"] == "attributable"
            yield case["claim"], case["references"], is_backed, is_backed


def qags() -> Iterator[Case]:
    for line in (CORPORA / "ratings" / "qags_cnndm.jsonl").read_text(encoding="utf-8").splitlines():
        case: dict[str, Any] = json.loads(line)
        for sentence in case["summary_sentences"]:
            is_backed = sum(each["response"] == "yes" for each in sentence["responses"]) >= 2
            yield sentence["sentence"], [case["article"]], is_backed, is_backed


@pytest.mark.soak
@pytest.mark.skipif(not CORPORA.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize("cases", [wice, attribution, qags])
def test_what_the_baseline_says_of_support_is_mostly_right(cases: Callable[[], Iterator[Case]]) -> None:
    answers: dict[tuple[str, bool], list[bool]] = {}
    n = 0
    for claim, texts, in_part, wholly in cases():
        (unit,) = units_of(record_of(claim, *(text or " " for text in texts)), ["grounding"])
        n += 1
        for label, found in baseline_judgement(unit).judgement.labels.items():
            truth = in_part if label == "support_present" else not wholly
            answers.setdefault((label, found.value), []).append(found.value == truth)
    for (label, value), right in sorted(answers.items()):
        low, high = wilson_interval(sum(right), len(right))
        share = sum(right) / len(right)
        said = f"{label} {'yes' if value else 'no'}: said {len(right)} of {n}, right {sum(right)}"
        sys.stdout.write(f"{cases.__name__} {said} = {share:.2f} [{low:.2f}, {high:.2f}]\n")
    assert sum(answers["support_present", True]) / len(answers["support_present", True]) >= 0.85
