import csv
import json
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from annotation.argilla.labels import LABELS, TASKS, broken_rules
from exports.cli.demo import research_library
from pipeline.core.schema import PROVIDERS, Answer, ProviderName
from pipeline.providers import read_payload
from pipeline.records.run import passages
from pipeline.records.schema import QueryResponse
from pipeline.text.words import detect_language

DATA = files("exports") / "demo_data"
NARRATIVES = list(csv.DictReader((DATA / "narratives.csv").read_text(encoding="utf-8").splitlines()))
SAID: dict[str, dict[str, dict[str, Any]]] = json.loads((DATA / "responses.json").read_text(encoding="utf-8"))
RESEARCH = "pipeline/butter_or_cool_water"
LANGUAGE = {row["narrative_id"]: detect_language(row["prompt"]) for row in NARRATIVES}
ANSWERS: list[tuple[ProviderName, str]] = [(name, row["narrative_id"]) for name in PROVIDERS for row in NARRATIVES]
LIBRARY = Path(str(DATA / "library"))


def payload(provider: str, narrative_id: str) -> str:
    return (DATA / "payloads" / provider / f"{narrative_id}.json").read_text(encoding="utf-8")


def read(provider: ProviderName, narrative_id: str) -> Answer:
    return read_payload(provider, payload(provider, narrative_id))


def responses(task: str) -> list[list[dict[str, Any]]]:
    """What people say of each unit of the task."""
    return [[*who.values()] for units in SAID.values() for unit, who in units.items() if unit.split()[0] == task]


def test_twelve_narratives_in_three_languages_are_answered_by_every_provider_and_some_cut_short() -> None:
    assert [row["narrative_id"] for row in NARRATIVES] == [f"N{number:03}" for number in range(1, 13)]
    assert list(LANGUAGE.values()) == ["en"] * 5 + ["de"] * 4 + ["ja"] * 3
    assert {row["narrative_type"] for row in NARRATIVES} == {"misinformation", "true", "satire", "mixed"}
    for provider in PROVIDERS:
        stored = sorted(entry.name for entry in (DATA / "payloads" / provider).iterdir())
        assert stored == [f"{row['narrative_id']}.json" for row in NARRATIVES]
    assert SAID.keys() <= {*map("/".join, ANSWERS), RESEARCH}
    assert len(SAID) == 59
    assert json.loads(payload("openai", "N008"))["incomplete_details"] == {"reason": "max_output_tokens"}
    assert json.loads(payload("gemini", "N006"))["candidates"][0]["finishReason"] == "MAX_TOKENS"
    for cut in ("openai/N008", "gemini/N006"):
        assert sum("incomplete" in each["yes"] for each in SAID[cut]["generation"].values()) >= 2


@pytest.mark.parametrize(("provider", "narrative_id"), ANSWERS, ids=["/".join(answer) for answer in ANSWERS])
def test_an_answer_is_placed_in_its_language_cites_hosts_and_its_passages_are_judged(
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
    found = passages(provider, answer)
    ranks = [int(unit.split()[1]) for unit in SAID.get(f"{provider}/{narrative_id}", {}) if " " in unit]
    assert max(ranks, default=0) <= len(found)
    assert not found or provider in ["claude", "perplexity"]


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
def test_what_people_say_breaks_no_rule_varies_and_is_rarely_split(task: str) -> None:
    units = responses(task)
    given = [each for unit in units for each in unit]
    assert {len(unit) for unit in units} <= {2, 3}
    assert {each.get("status", "submitted") for each in given} <= {"submitted", "draft", "discarded"}
    for label in LABELS[task]:
        said = [[label in each["yes"] for each in unit] for unit in units]
        assert min(sum(map(all, said)), sum(not any(unit) for unit in said)) >= 1
        assert 0 < sum(len(set(unit)) > 1 for unit in said) <= len(said) / 2
    broken = sum(
        bool(broken_rules(task, {label: "yes" if label in each["yes"] else "no" for label in LABELS[task]}))
        for each in given
    )
    assert broken <= len(given) / 20


def test_people_leave_notes_in_three_languages() -> None:
    noted = [
        (answer, each["notes"])
        for answer, units in SAID.items()
        for who in units.values()
        for each in who.values()
        if "notes" in each
    ]
    assert {LANGUAGE[answer.split("/")[1]] for answer, _ in noted} == {"en", "de", "ja"}
    assert all(text for _, text in noted)


@pytest.fixture(scope="module")
def researched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, QueryResponse]:
    folder = tmp_path_factory.mktemp("research")
    return folder, research_library(LIBRARY, folder)


def test_butter_and_the_clinic_contradict_each_other_in_what_the_research_run_cites(
    researched: tuple[Path, QueryResponse],
) -> None:
    (folder,) = (path for path in researched[0].iterdir() if (path / "evidence").is_dir())
    body, _, _ = (folder / "final" / "report.md").read_text(encoding="utf-8").partition("## References")
    for words in ("Butter cools a burn at once", "is the best first aid for a kitchen burn"):
        assert body.count(words) == 1
    check = json.loads((folder / "evidence" / "verify.json").read_text(encoding="utf-8"))
    assert check["passed"]
    assert check["total_paragraphs"] == body.count("\n### ") == 5
    folder, record = researched
    cited = {Path(urlsplit(source.url).path).stem for source in record.sources}
    # Two of its documents contradict each other, which is what the jury is to find.
    assert {"first-aid-for-burns", "grandmothers-advice"} <= cited
    assert (record.language, {source.state for source in record.sources}) == ("en", {"read"})
    assert len(record.chunks) == len(cited) >= max(int(unit.split()[1]) for unit in SAID[RESEARCH] if " " in unit)
    assert research_library(LIBRARY, folder) == record
