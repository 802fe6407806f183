"""Records out of what people have, and which of their answers tell who wrote them."""

import csv
import json
import time
from pathlib import Path

import pytest

from annotation.push.record_sources import (
    Naming,
    check_naming,
    check_paths,
    kept_records,
    read_source,
)
from pipeline.core.errors import InputError
from pipeline.core.schema import CSV_COLUMNS, SearchResult, StoredAnswer
from pipeline.csv.file import write_answers
from pipeline.records.schema import Provenance, QueryResponse

UUIDS = [f"7d7f3b52-5a6c-4d0e-9a35-00000000000{number}" for number in range(4)]


def stored(number: int, model_name: str = "perplexity", text: str = "It is not.", **more) -> StoredAnswer:
    values = {
        "narrative_id": str(number),
        "narrative_type": "",
        "narrative_prompt": f"Is it {number}?",
        "model_name": model_name,
        "model_version": "m",
        "answer_id": UUIDS[number],
        "answer_prompt": "p",
        "answer_text": text,
        "answer_raw_json": "{}",
        "answer_timestamp": "2026-11-01T00:00:00+00:00",
        "citations": ("https://a.example/1",),
        "domains": ("a.example",),
    }
    return StoredAnswer(**values | more)


def with_snippets(number: int) -> StoredAnswer:
    results = (SearchResult(url="https://a.example/1", title="A", snippet=f"Snippet {number}."),)
    return stored(number, search_results=results)


def test_csv_v2_files_give_passages_of_their_snippets_and_broken_rows_are_listed(tmp_path: Path) -> None:
    write_answers(tmp_path / "perplexity.csv", [with_snippets(0)])
    write_answers(tmp_path / "openai.csv", [stored(1, "openai")])
    paths = [tmp_path / "perplexity.csv", tmp_path / "openai.csv"]
    with kept_records() as kept:
        checked = check_paths(paths, keep=kept.keep)
        records = list(kept.read())
    assert [uuid for uuid, _ in checked.languages] == UUIDS[:2]
    assert (checked.without_passages, checked.problems) == ({UUIDS[1]}, ())
    assert [[chunk.text for chunk in record.chunks] for record in records] == [["Snippet 0."], []]
    assert records == [record for path in paths for record in read_source(path, [])]
    path = tmp_path / "openai.csv"
    write_answers(path, [stored(0, "openai"), stored(1, "openai")])
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*rows, rows[1]]))
    problems: list[str] = []
    assert [record.record_uuid for record in read_source(path, problems)] == UUIDS[:2]
    assert problems == [f"openai.csv, line 4: the answer {UUIDS[0]!r} ended or went wrong further up"]
    path = tmp_path / "perplexity.csv"
    write_answers(path, [with_snippets(number) for number in range(4)])
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    rows[1] = rows[1][:-1]
    rows[2][CSV_COLUMNS.index("answer_citation_list")] = "no JSON"
    rows[3][CSV_COLUMNS.index("source_id")] = ""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    checked = check_paths([path])
    assert [uuid for uuid, _ in checked.languages] == [UUIDS[3]]
    assert [problem.split(": ")[0] for problem in checked.problems] == [f"perplexity.csv, line {n}" for n in (2, 3, 4)]
    assert "found 19 cells, wanted 20" in checked.problems[0]


def test_a_csv_file_gives_the_same_records_as_its_run_folder(tmp_path: Path) -> None:
    write_answers(tmp_path / "openai.csv", [stored(1, "openai")])
    (tmp_path / "manifest.json").write_text(json.dumps({"run_id": "run-1"}), encoding="utf-8")
    problems: list[str] = []
    alone, together = (list(read_source(path, problems)) for path in (tmp_path / "openai.csv", tmp_path))
    assert (alone, alone[0].provenance.run_id) == (together, "run-1")


@pytest.mark.parametrize("name", ["old.csv", "empty.csv"])
def test_a_csv_file_without_answers_or_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "old.csv").write_text("id,text\n1,x\n", encoding="utf-8")
    write_answers(tmp_path / "empty.csv", [])
    with pytest.raises(InputError, match=name):
        check_paths([tmp_path / name])


def test_answers_that_name_their_model_are_listed_and_those_that_speak_as_it_can_be_left_out(tmp_path: Path) -> None:
    texts = ["As ChatGPT, an OpenAI model, I cannot. OpenAI says so.", "OpenAI and ChatGPT are two names.", "Nobody."]
    path = tmp_path / "openai.csv"
    write_answers(path, [stored(n, "openai", text) for n, text in enumerate(texts)])
    found = check_paths([path])
    assert [line.split(":")[0] for line in found.naming] == list(UUIDS[:2])
    words = "OpenAI and ChatGPT are two names. [1]"
    assert found.naming[1] == f"{UUIDS[1]}: 'OpenAI' in {words!r}; 'ChatGPT' in {words!r}"
    assert (found.speaking, found.left_out, len(found.languages)) == ((UUIDS[0],), frozenset(), 3)
    with kept_records() as kept:
        skipped = check_paths([path], skip_self_naming=True, keep=kept.keep)
        records = list(kept.read(skipped.left_out))
    assert (skipped.naming, skipped.speaking) == (found.naming, found.speaking)
    assert [record for record, _ in skipped.languages] == [each.record_uuid for each in records] == list(UUIDS[1:3])
    write_answers(path, [stored(0, "openai", "As ChatGPT, I cannot.")])
    with pytest.raises(InputError, match="Every answer speaks as its own model"):
        check_paths([path], skip_self_naming=True)


def test_an_excerpt_is_one_line_around_the_name() -> None:
    (naming,) = named("x" * 90 + "\nI am\nnobody. I am Claude.\n" + "y" * 90)
    assert naming.excerpt == "…" + "x" * 21 + " I am nobody. I am Claude. " + "y" * 38 + "…"


def named(answer: str, provider: str = "", version: str = "") -> tuple[Naming, ...]:
    provenance = Provenance(model_name=provider, model_version=version)
    return check_naming(QueryResponse(record_uuid="u", query="Q?", answer=answer, provenance=provenance))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("As ChatGPT, I cannot browse.", ["ChatGPT"]),
        ("I am Claude, made by Anthropic.", ["Claude", "Anthropic"]),
        ("I'm Claude. I can help.", ["Claude"]),
        ("As an AI developed by Google, I have no opinion.", ["Google"]),
        ("As a large language model trained by OpenAI I have none.", ["OpenAI"]),
        ("I’m Grok, built by xAI.", ["Grok", "xAI"]),
        ("My name is Perplexity and I search.", ["Perplexity"]),
        ("I am an AI assistant called Gemini.", ["Gemini"]),
        ("Well: I am Anthropic's assistant.", ["Anthropic"]),
        ("I am GPT-5.6 and cannot know.", ["GPT-5.6"]),
        ("Ich bin Claude und wurde von Anthropic entwickelt.", ["Claude", "Anthropic"]),
        ("Als von Google entwickeltes Sprachmodell habe ich keine Meinung.", ["Google"]),
        ("Als KI-Modell, das von OpenAI trainiert wurde, weiß ich das nicht.", ["OpenAI"]),
        ("Als ChatGPT kann ich das nicht prüfen.", ["ChatGPT"]),
        ("Ich wurde von xAI entwickelt.", ["xAI"]),
        ("私はClaudeです。Anthropicによって開発されました。", ["Claude"]),
        ("私はOpenAIによって訓練された言語モデルです。", ["OpenAI"]),
        ("Googleによってトレーニングされた大規模言語モデルです。", ["Google"]),
        ("ChatGPTとしてお答えします。", ["ChatGPT"]),
        ("私はクロードです。", ["クロード"]),
        ("Claude Monet painted it, and as Claude Shannon wrote, noise is noise.", []),
        ("I am sure that Google denied it [1]. OpenAI did too.", []),
        ("Gemini, as the sign of the zodiac, begins in May.", []),
        ("Gemini is a model developed by Google; ChatGPT is made by OpenAI.", []),
        ("As an AI language model I cannot know.", []),
        ("I am told that the metadata is a bard's tale, as meta as it gets.", []),
        ("Als Google 2004 an die Börse ging, war ich nicht dabei.", []),
        ("Ich bin sicher, dass das von einer Agentur stammt.", []),
        ("GeminiはGoogleが開発したAIモデルです。", []),
        ("Googleで検索してください。", []),
        ("The sonar found it; to grok it takes time; its perplexity is low; XAI explains.", []),
    ],
)
def test_an_answer_that_speaks_of_itself_by_name_is_found(answer, found) -> None:
    assert [each.name for each in named(answer)] == found


@pytest.mark.parametrize(
    ("answer", "provider", "version", "found"),
    [
        ("OpenAI says so.", "openai", "", {"OpenAI": False}),
        ("OpenAI says so.", "claude", "", {}),
        ("Ask Claude Sonnet 5 about it.", "claude", "claude-sonnet-5", {"Claude Sonnet 5": False}),
        ("Claude Monet painted it.", "claude", "claude-sonnet-5", {}),
        ("Google denied it.", "gemini", "gemini-3.5-flash", {}),
        ("Be fast, use sonar.", "perplexity", "perplexity/sonar", {}),
        ("On Grok and xAI, not XAI.", "grok", "grok-4.3", {"Grok": False, "xAI": False}),
        ("これはPerplexityの回答です。", "perplexity", "fast", {"Perplexity": False}),
        ("Answered by openai/gpt-5.6 here.", "", "openai/gpt-5.6", {"gpt-5.6": False}),
        ("As Claude, I cannot.", "claude", "claude-sonnet-5", {"Claude": True}),
        ("Anthropic says so. I was made by Anthropic.", "claude", "claude-sonnet-5", {"Anthropic": True}),
        (
            "Claude Sonnet 5 is new. I am Claude.",
            "claude",
            "claude-sonnet-5",
            {"Claude Sonnet 5": False, "Claude": True},
        ),
    ],
)
def test_the_records_own_provider_and_model_count_wherever_they_stand(answer, provider, version, found) -> None:
    """By name, whether the answer speaks as it."""
    assert {each.name: each.speaks for each in named(answer, provider, version)} == found


def test_a_hostile_answer_takes_time_in_proportion_to_its_length() -> None:
    def seconds(length: int) -> float:
        answer = "as an ai " * length + "i am a " * length + "私は" * length
        started = time.perf_counter()
        named(answer, "openai", "gpt-5.6")
        return time.perf_counter() - started

    assert seconds(16_000) < 16 * max(seconds(4_000), 0.01)
