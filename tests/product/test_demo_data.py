import csv
import json
from importlib.resources import files
from itertools import chain, combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from annotation.argilla.labels import LABELS, TASKS, broken_rules
from exports.cli.demo import ANSWER as RESEARCH
from exports.cli.demo import document_name, read_jury, research_library, with_research
from pipeline.core.schema import PROVIDERS, Answer, ProviderName
from pipeline.providers import read_payload
from pipeline.records.run import passages
from pipeline.records.schema import QueryResponse
from pipeline.text.words import detect_language

DATA = files("exports") / "demo_data"
NARRATIVES = list(csv.DictReader((DATA / "narratives.csv").read_text(encoding="utf-8").splitlines()))
VERDICTS: dict[str, Any] = json.loads((DATA / "verdicts.json").read_text(encoding="utf-8"))
JURY: dict[str, Any] = json.loads((DATA / "annotators.json").read_text(encoding="utf-8"))
LANGUAGE = {row["narrative_id"]: detect_language(row["prompt"]) for row in NARRATIVES}
ANSWERS: list[tuple[ProviderName, str]] = [(name, row["narrative_id"]) for name in PROVIDERS for row in NARRATIVES]
LIBRARY = Path(str(DATA / "library"))


def payload(provider: str, narrative_id: str) -> str:
    return (DATA / "payloads" / provider / f"{narrative_id}.json").read_text(encoding="utf-8")


def read(provider: ProviderName, narrative_id: str) -> Answer:
    return read_payload(provider, payload(provider, narrative_id))


def judged(entry: dict[str, Any], task: str) -> list[tuple[dict[str, bool], list[str]]]:
    """The labels of each unit of the task, with those that people disagree about."""
    labels, hard = entry.get(task, []), entry.get("hard", {}).get(task)
    if task == "retrieval" and isinstance(labels, dict):
        return [(labels[name], hard.get(name, [])) for name in labels]
    if task == "retrieval":
        return list(zip(labels, hard or [[]] * len(labels), strict=True))
    return [(labels, hard or [])] if labels else []


def units(task: str) -> list[tuple[dict[str, bool], list[str]]]:
    return [unit for entry in VERDICTS.values() for unit in judged(entry, task)]


def test_twelve_narratives_in_three_languages_are_answered_by_every_provider_and_some_cut_short() -> None:
    assert [row["narrative_id"] for row in NARRATIVES] == [f"N{number:03}" for number in range(1, 13)]
    assert list(LANGUAGE.values()) == ["en"] * 5 + ["de"] * 4 + ["ja"] * 3
    assert {row["narrative_type"] for row in NARRATIVES} == {"misinformation", "true", "satire", "mixed"}
    for provider in PROVIDERS:
        stored = sorted(entry.name for entry in (DATA / "payloads" / provider).iterdir())
        assert stored == [f"{row['narrative_id']}.json" for row in NARRATIVES]
    assert sorted(VERDICTS) == sorted(["/".join(answer) for answer in ANSWERS] + [RESEARCH])
    assert json.loads(payload("openai", "N008"))["incomplete_details"] == {"reason": "max_output_tokens"}
    assert json.loads(payload("gemini", "N006"))["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert VERDICTS["openai/N008"]["generation"]["incomplete"]
    assert VERDICTS["gemini/N006"]["generation"]["incomplete"]


@pytest.mark.parametrize(("provider", "narrative_id"), ANSWERS, ids=["/".join(answer) for answer in ANSWERS])
def test_an_answer_is_placed_in_its_language_cites_hosts_and_has_a_verdict_on_each_passage(
    provider: ProviderName, narrative_id: str
) -> None:
    answer = read(provider, narrative_id)
    assert len(answer.text) > 50
    assert set(answer.citations) == {occurrence.url for occurrence in answer.occurrences}
    # Sonar lists every result as a citation, the ones that its text never names included.
    unplaced = {occurrence.url for occurrence in answer.occurrences if occurrence.start is None}
    assert unplaced == set() or (provider, narrative_id, len(unplaced)) == ("perplexity", "N003", 1)
    is_other = (provider, narrative_id) == ("grok", "N006")
    assert detect_language(answer.text) == ("en" if is_other else LANGUAGE[narrative_id])
    assert all(domain and "google.com" not in domain for domain in answer.domains)
    assert all(urlsplit(url).scheme == "https" for url in answer.citations)
    entry = VERDICTS[f"{provider}/{narrative_id}"]
    found = passages(provider, answer)
    assert (len(entry.get("retrieval", [])), "grounding" in entry) == (len(found), bool(found))
    assert not found or provider in ["claude", "perplexity"]
    assert not found or entry["grounding"]["source_cited"] == bool(answer.citations)


def test_offsets_frame_markers_and_passages_are_as_long_as_the_providers_make_them() -> None:
    for row in NARRATIVES:
        for provider, opening, closing in [("openai", "([", "))"), ("grok", "[[", ")")]:
            part = json.loads(payload(provider, row["narrative_id"]))["output"][-1]["content"][0]
            for note in part["annotations"]:
                marker = part["text"][note["start_index"] : note["end_index"]]
                assert marker.startswith(opening)
                assert marker.endswith(f"]({note['url']}{closing}")
        candidate = json.loads(payload("gemini", row["narrative_id"]))["candidates"][0]
        text = candidate["content"]["parts"][0]["text"].encode()
        grounding = candidate.get("groundingMetadata", {"groundingSupports": [], "groundingChunks": []})
        for support in grounding["groundingSupports"]:
            segment = support["segment"]
            assert text[segment.get("startIndex", 0) : segment["endIndex"]].decode() == segment["text"]
            assert max(support["groundingChunkIndices"]) < len(grounding["groundingChunks"])
    quotes = [place.cited_text for row in NARRATIVES for place in read("claude", row["narrative_id"]).occurrences]
    results = [result for row in NARRATIVES for result in read("perplexity", row["narrative_id"]).search_results]
    assert max(map(len, quotes)) <= 150
    assert all(not result.snippet or 200 <= len(result.snippet) <= 400 for result in results)


@pytest.mark.parametrize("task", TASKS)
def test_verdicts_hold_the_labels_of_the_task_vary_and_break_no_rule_however_people_split(task: str) -> None:
    assert units(task)
    for labels, hard in units(task):
        assert tuple(labels) == LABELS[task]
        assert all(type(value) is bool for value in labels.values())
        assert set(hard) <= set(labels)
        for flipped in chain.from_iterable(combinations(hard, size) for size in range(len(hard) + 1)):
            answered = {label: value ^ (label in flipped) for label, value in labels.items()}
            assert broken_rules(task, answered) == ()
    for label in LABELS[task]:
        verdicts = [labels[label] for labels, _ in units(task)]
        contested = sum(label in hard for _, hard in units(task))
        assert min(verdicts.count(True), verdicts.count(False)) >= 2
        assert 0 < contested <= len(verdicts) / 4


def test_four_annotators_with_names_of_their_own_rarely_slip_and_leave_notes_in_three_languages() -> None:
    people = JURY["annotators"]
    assert len({one["username"] for one in people}) == len(people) == 4
    assert all(one.keys() == {"username", "first_name", "last_name", "care"} for one in people)
    assert all(0.9 <= one["care"] <= 1 for one in people)
    assert {note["language"] for note in JURY["notes"]} == {"en", "de", "ja"}
    for note in JURY["notes"]:
        assert note["task"] in VERDICTS[note["answer"]]
        assert note["language"] == LANGUAGE[note["answer"].split("/")[1]]
        assert note["text"]


@pytest.fixture(scope="module")
def researched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, QueryResponse]:
    folder = tmp_path_factory.mktemp("research")
    return folder, research_library(LIBRARY, folder)


def test_what_butter_and_the_clinic_say_is_in_the_list_of_verdicts(researched: tuple[Path, QueryResponse]) -> None:
    (folder,) = (path for path in researched[0].iterdir() if (path / "evidence").is_dir())
    body, _, _ = (folder / "final" / "report.md").read_text(encoding="utf-8").partition("## References")
    for words in ("Butter cools a burn at once", "is the best first aid for a kitchen burn"):
        assert body.count(words) == 1
    check = json.loads((folder / "evidence" / "verify.json").read_text(encoding="utf-8"))
    assert check["passed"]
    assert check["total_paragraphs"] == body.count("\n### ") == 5
    folder, record = researched
    cited = {document_name(source.url) for source in record.sources}
    verdicts = VERDICTS[RESEARCH]["retrieval"]
    assert set(verdicts) == {path.stem for path in LIBRARY.rglob("*.md")}
    # Two of its documents contradict each other, which is what the jury is to find.
    assert {"first-aid-for-burns", "grandmothers-advice"} <= cited
    assert (record.language, {source.state for source in record.sources}) == ("en", {"read"})
    ordered = with_research(read_jury(DATA), record).verdicts[RESEARCH]
    assert ordered["retrieval"] == [verdicts[document_name(chunk.url)] for chunk in record.chunks]
    assert len(ordered["hard"]["retrieval"]) == len(record.chunks) == len(cited)
    assert research_library(LIBRARY, folder) == record
