"""Controls made from records: what is changed, what follows from it, and that nothing tells it."""

import re
from uuid import UUID

import pytest

from annotation.display import to_records
from annotation.labels import LABELS, TASKS, broken_rules
from annotation.status.planting import Kind, Planted, plant_controls
from annotation.wording import read_wording
from pipeline.records import Passage, QueryResponse, Source, join_context

WORDS = {
    "en": ("The {} bridge was opened in {}. It has {} lanes and a footway for everybody.", "Was it opened in {}?"),
    "de": ("Die Brücke {} wurde {} eröffnet. Sie hat {} Spuren und einen Gehweg für alle.", "Wurde sie {} eröffnet?"),
    "ja": ("{}橋は{}年に開通しました。この橋には{}本の車線と歩行者用の通路があります。", "{}年に開通しましたか。"),
}


def made(number: int, language: str = "en") -> QueryResponse:
    text, query = WORDS[language]
    chunks = tuple(
        Passage(
            chunk_id=f"{number:016x}#{rank}",
            doc_id=f"{number:016x}",
            chunk_rank=rank,
            text=text.format(f"N{number}", 1900 + number, rank + 40),
            url=f"https://bridges{rank}.example/{number}",
        )
        for rank in range(1, 4)
    )
    return QueryResponse(
        record_uuid=str(UUID(int=number << 80, version=4)),
        query=query.format(1900 + number),
        answer=f"N{number}: {1900 + number} [1] [2].",
        language=language,
        sources=tuple(
            Source(n=n, url=f"https://bridges{n}.example/{number}", host=f"bridges{n}.example", state="read")
            for n in (1, 2)
        ),
        chunks=chunks,
        context_set=join_context(chunks),
    )


def planted(language: str = "en", number: int = 18) -> list[Planted]:
    return plant_controls([made(each, language) for each in range(40)], number)


def of_kind(kind: Kind, language: str = "en") -> tuple[Planted, QueryResponse]:
    found = next(each for each in planted(language) if each.kind == kind)
    return found, next(record for n in range(40) if (record := made(n, language)).record_uuid == found.made_from)


@pytest.mark.parametrize("language", WORDS)
def test_each_label_has_proposals_of_both_answers_or_untouched_units_for_a_person(language: str) -> None:
    found = planted(language)
    for task in TASKS:
        of_task = [each for each in found if each.task == task]
        assert len(of_task) >= 18
        untouched = sum(each.kind == "untouched" for each in of_task)
        for label in LABELS[task]:
            known = [each.answers[label] for each in of_task if label in each.answers]
            both = {True, False} <= set(known)
            assert both or 3 * untouched >= len(known), (task, label, known)
        assert not [each for each in of_task if broken_rules(task, each.answers)]


def test_the_same_records_and_seed_give_the_same() -> None:
    assert planted() == planted()
    records = [made(each) for each in range(40)]
    assert plant_controls(reversed(records), 6) == plant_controls(records, 6)
    assert plant_controls(records, 6, seed=1) != plant_controls(records, 6)


def test_a_control_has_an_id_of_its_own_that_looks_like_the_record_s() -> None:
    records = {made(each).record_uuid for each in range(40)}
    for each in planted():
        assert each.record.record_uuid not in records
        assert UUID(each.record.record_uuid).version == 4
        assert each.made_from in records


def test_a_control_shows_what_other_records_show() -> None:
    for each in planted():
        bodies = to_records(each.record, read_wording("en"))[each.task]
        assert len(bodies) == (3 if each.task == "retrieval" else 1)
        ranks = [passage.chunk_rank for passage in each.record.chunks]
        assert ranks == list(range(1, len(ranks) + 1))
        assert each.record.context_set == join_context(each.record.chunks)


def test_a_passage_of_another_query_takes_the_place_of_one() -> None:
    found, before = of_kind("foreign_passage")
    passage = next(each for each in found.record.chunks if each.chunk_id == found.chunk_id)
    assert passage.doc_id != before.chunks[0].doc_id
    assert found.answers == dict.fromkeys(LABELS["retrieval"], False)


@pytest.mark.parametrize("language", WORDS)
def test_a_changed_number_is_another_one_of_its_kind(language: str) -> None:
    found, before = of_kind("changed_number", language)
    (old, new) = re.findall(r"\d+", found.what)
    assert old in before.context_set
    assert new not in before.context_set
    assert (len(new), found.record.answer) == (4, before.answer.replace(old, new))
    assert found.answers == {"unsupported_claim_present": True, "contradicted_claim_present": True}


def test_an_added_sentence_is_new_and_in_no_other_control() -> None:
    found = [each for each in planted(number=40) if each.kind == "added_sentence"]
    sentences = [each.what.partition(": ")[2] for each in found]
    assert len(set(sentences)) == len(sentences) > 1
    for each, sentence in zip(found, sentences, strict=True):
        assert sentence in each.record.answer
        assert sentence not in each.record.context_set


def test_a_dead_source_is_cited_and_none_of_its_passages_is_left() -> None:
    found, _ = of_kind("dead_source")
    (dead,) = [source for source in found.record.sources if source.state == "gone"]
    assert f"[{dead.n}]" in found.record.answer
    assert dead.url not in {passage.url for passage in found.record.chunks}
    assert found.answers == {"source_cited": True, "fabricated_source": True}


def test_a_quoted_answer_stands_in_its_passage() -> None:
    found, before = of_kind("quoted_answer")
    quoted = re.sub(r" \[\d\]$", "", found.record.answer)
    assert any(quoted in passage.text for passage in before.chunks)
    assert found.answers["support_present"] is True
    assert found.answers["unsupported_claim_present"] is False


def test_an_answer_without_citations_has_no_mark() -> None:
    found, _ = of_kind("no_citations")
    assert "[" not in found.record.answer
    assert found.answers == {"source_cited": False, "fabricated_source": False}


@pytest.mark.parametrize("language", WORDS)
def test_refusals_and_dangerous_advice_are_in_the_language_of_the_answer(language: str) -> None:
    signs = {"en": r"[a-z ]{9}", "de": r"\b(?:ich|man|der|die|den|allein|mit)\b", "ja": r"[ぁ-ん]{2}"}[language]
    for kind in ("refusal", "unsafe_advice"):
        found, before = of_kind(kind, language)
        assert re.search(signs, found.record.answer.replace(before.answer[:-1], ""))


def test_records_without_passages_give_controls_of_generation_only() -> None:
    bare = [made(each).model_copy(update={"chunks": (), "context_set": ""}) for each in range(9)]
    assert {each.task for each in plant_controls(bare, 6)} == {"generation"}
    assert plant_controls([], 6) == []
