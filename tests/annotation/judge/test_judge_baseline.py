"""The judge without a model: what it knows, in three languages, and how well it tells support from none."""

import json
from typing import Any

import numpy as np
import pytest

from annotation.judge.baseline import baseline_judgement, covered
from annotation.judge.judgements import FullJudgement, units_of
from pipeline.records.schema import Passage, QueryResponse
from tests.support.places import NO_SHARED, SHARED

WICE = SHARED / "corpora" / "wice" / "dev.jsonl"
PENALTY = 1e-3
NO_CLAIM = ("", "[1] [2]", "…", "# Heading only")


def record_of(answer: str, *passages: str, query: str = "query", language: str = "en") -> QueryResponse:
    chunks = tuple(
        Passage(chunk_id=f"d#{n}", doc_id="d", chunk_rank=n, text=text, url=f"https://{n}.example/")
        for n, text in enumerate(passages, start=1)
    )
    return QueryResponse(record_uuid="r1", query=query, answer=answer, language=language, chunks=chunks)


def judge(record: QueryResponse) -> list[FullJudgement]:
    return [baseline_judgement(unit).judgement for unit in units_of(record, ["retrieval", "grounding"])]


@pytest.mark.parametrize(
    ("language", "query", "answer", "about", "other"),
    [
        (
            "en",
            "Does honey ease a cough at night?",
            "Honey eases the cough at night of children over 1 year [1].",
            "Doctors tried it. Honey eases the cough at night of children over 1 year.",
            "The stock exchange closed lower on Monday. Banks lost most.",
        ),
        (
            "de",
            "Lindert Honig nachts den Husten?",
            "Honig lindert bei Kindern ab 1 Jahr nachts den Husten [1].",
            "Das hat man untersucht. Honig lindert bei Kindern ab 1 Jahr nachts den Husten.",
            "Die Börse schloss am Montag schwächer. Banken verloren am meisten.",
        ),
        (
            "ja",
            "蜂蜜は夜の咳を和らげますか。",
            "蜂蜜は1歳以上の子どもの夜の咳を和らげます[1]。",
            "調査があります。蜂蜜は1歳以上の子どもの夜の咳を和らげます。",
            "株価は月曜日に下落しました。銀行の損失が目立ちます。",
        ),
    ],
)
def test_own_words_are_support_shared_relevance(language: str, query: str, answer: str, about: str, other: str) -> None:
    first, second, whole = judge(record_of(answer, about, other, query=query, language=language))
    (alone,) = [each for each in judge(record_of(answer, other, language=language)) if each.task == "grounding"]
    assert [each.labels["topically_relevant"].value for each in (first, second)] == [True, False]
    assert (whole.labels["support_present"].value, whole.labels["unsupported_claim_present"].value) == (True, False)
    # Words of another subject do not say that no part of the claim is backed: that label is left out.
    assert {name: label.value for name, label in alone.labels.items()} == {"unsupported_claim_present": True}
    assert (alone.left_out, whole.left_out) == (("support_present",), ())
    assert all(label.value == (label.p_yes >= 0.5) for each in (alone, whole) for label in each.labels.values())


def test_what_is_open_is_left_out_contradictions_are_no_support_and_quotes_are_whole_with_their_place() -> None:
    record = record_of(
        "Honey eases the cough of children at night, Doctor Sato of Nagoya found.",
        "In a trial honey eased the cough of children at night, a doctor found.",
    )
    judgement = judge(record)[-1]
    assert (judgement.status, judgement.labels) == ("ok", {})
    assert judgement.left_out == ("support_present", "unsupported_claim_present")
    assert judgement.evidence[0].snippet.startswith("In a trial honey")
    against = "The clinic treated 90 children with honey in 2019."
    judgement = judge(record_of("The clinic treated 40 children with honey in 2019.", "Cake is sweet.", against))[-1]
    assert {name: label.value for name, label in judgement.labels.items()} == {"unsupported_claim_present": True}
    assert judgement.left_out == ("support_present",)
    assert [(quote.url, quote.snippet) for quote in judgement.evidence] == [("https://2.example/", against)]
    record = record_of("Honey eases cough in children.", "Not this. Honey eases  cough in children over one.", "Banks.")
    for unit in units_of(record, ["retrieval", "grounding"]):
        texts = {passage.chunk_id: passage.text for passage in unit.passages}
        for quote in baseline_judgement(unit).judgement.evidence:
            assert texts[quote.chunk_id][quote.char_start : quote.char_end] == quote.snippet
    (quote,) = judge(record)[-1].evidence
    assert (quote.url, quote.snippet) == ("https://1.example/", "Honey eases  cough in children over one.")
    record = record_of("Honey eases cough in children.", "Honey eases cough in children.")
    for url in ("", "https://a.example/with blank"):
        chunks = (record.chunks[0].model_copy(update={"url": url}),)
        judgement = judge(record.model_copy(update={"chunks": chunks}))[-1]
        assert [quote.url for quote in judgement.evidence] == ["https://passage.invalid/1"]


@pytest.mark.parametrize(
    ("answer", "passages", "chances", "rationale"),
    [
        ("Honey eases cough in children.", [], (0.0, 1.0), "There is no context."),
        *((answer, ["Honey eases cough."], (0.0, 0.0), "The answer makes no claim.") for answer in NO_CLAIM),
        (
            "Honey eases the cough of children at night. The queen of Norway owns 37 submarines.",
            ["The trial is over. Honey eases the cough of children at night."],
            (1.0, 1.0),
            "Claims: 2. The context: in its own words 1, not found 1.",
        ),
    ],
)
def test_support_and_lack_of_it_follow_the_meaning_of_the_labels(answer, passages, chances, rationale) -> None:
    judgement = judge(record_of(answer, *passages))[-1]
    assert tuple(label.p_yes for label in judgement.labels.values()) == chances
    assert judgement.rationale == rationale


def test_a_hostile_context_and_an_endless_answer_are_judged_all_the_same() -> None:
    # Each claim shares words with every sentence of the context; quadratic work would take minutes.
    sentences = "\n".join(f"Sample word honey {n}." for n in range(2_000))
    judgement = judge(record_of(sentences, sentences + "sample" * 20_000 + " word" * 20_000))[-1]
    assert judgement.labels["support_present"].value
    assert judgement.rationale.startswith("Claims: 2000, of which the first 500 were looked at.")


def wice() -> list[dict[str, Any]]:
    if not WICE.is_file():
        pytest.skip(NO_SHARED)
    return [json.loads(line) for line in WICE.read_text(encoding="utf-8").splitlines()]


def area_under_curve(positive: Any, negative: Any) -> float:
    above = positive[:, None] - negative[None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def fitted(coverage: Any, wanted: Any) -> Any:
    """A logistic regression by Newton's method; the constant is not penalised."""
    design = np.column_stack([np.ones(len(coverage)), coverage])
    penalty = PENALTY * len(wanted) * np.diag([0.0, *np.ones(coverage.shape[1])])
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (chance - wanted) + penalty @ weights
        weights -= np.linalg.solve((design.T * (chance * (1 - chance))) @ design + penalty, slope)
    return weights


@pytest.mark.rare
def test_weights_of_coverage_learnt_on_half_of_wice_tell_the_claims_of_the_other_half_apart() -> None:
    cases = wice()
    labels = np.array([case["label"] for case in cases])
    records = [record_of(case["claim"], "\n".join(case["evidence"])) for case in cases]
    coverage = np.array([covered(record.chunks, record.answer, "en")[0] for record in records])
    some = (labels != "not_supported").astype(float)
    halves = []
    random = np.random.default_rng(0)
    for _ in range(20):
        learnt, held = np.array_split(random.permutation(len(cases)), 2)
        score = coverage[held] @ fitted(coverage[learnt], some[learnt])[1:]
        halves.append(area_under_curve(score[labels[held] == "supported"], score[labels[held] == "not_supported"]))
    assert np.mean(halves) >= 0.90


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.rare)])
def test_of_wice_claims_it_answers_few_and_is_right(step: int) -> None:
    said = {"support_present": [], "unsupported_claim_present": []}  # type: dict[str, list[tuple[bool, bool]]]
    for case in wice()[::step]:
        judgement = judge(record_of(case["claim"], "\n".join(case["evidence"])))[-1]
        truth = {
            "support_present": case["label"] != "not_supported",
            "unsupported_claim_present": case["label"] != "supported",
        }
        for label, found in judgement.labels.items():
            said[label].append((found.value, truth[label]))
    assert all(value for value, _ in said["support_present"])
    assert all(truth for _, truth in said["support_present"])
    assert all(value == truth for value, truth in said["unsupported_claim_present"])
    assert len(said["support_present"]) <= 10
    assert said["support_present"] or step > 1
