"""Answers that tell who wrote them are found in three languages; people, signs of the zodiac and subjects are not."""

import time

import pytest

from annotation.push.record_sources import check_naming
from pipeline.records import Provenance, QueryResponse


def names(answer: str, provider: str = "", version: str = "") -> list[str]:
    provenance = Provenance(model_name=provider, model_version=version)
    record = QueryResponse(record_uuid="u", query="Q?", answer=answer, provenance=provenance)
    return [naming.name for naming in check_naming(record)]


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
    ],
)
def test_an_answer_that_speaks_of_itself_by_name_is_found(answer, found) -> None:
    assert names(answer) == found


@pytest.mark.parametrize(
    "answer",
    [
        "Claude Monet painted it, and as Claude Shannon wrote, noise is noise.",
        "I am sure that Google denied it [1]. OpenAI did too.",
        "Gemini, as the sign of the zodiac, begins in May.",
        "Gemini is a model developed by Google; ChatGPT is made by OpenAI.",
        "As an AI language model I cannot know.",
        "I am told that the metadata is a bard's tale, as meta as it gets.",
        "Als Google 2004 an die Börse ging, war ich nicht dabei.",
        "Ich bin sicher, dass das von einer Agentur stammt.",
        "GeminiはGoogleが開発したAIモデルです。",
        "Googleで検索してください。",
        "The sonar found it; to grok it takes time; its perplexity is low; XAI explains.",
    ],
)
def test_somebody_elses_name_is_not_the_answers_own(answer) -> None:
    assert names(answer) == []


@pytest.mark.parametrize(
    ("answer", "provider", "version", "found"),
    [
        ("OpenAI says so.", "openai", "", ["OpenAI"]),
        ("OpenAI says so.", "claude", "", []),
        ("Ask Claude Sonnet 5 about it.", "claude", "claude-sonnet-5", ["Claude Sonnet 5"]),
        ("Claude Monet painted it.", "claude", "claude-sonnet-5", []),
        ("Google denied it.", "gemini", "gemini-3.5-flash", []),
        ("Be fast, use sonar.", "perplexity", "perplexity/sonar", []),
        ("On Grok and xAI, not XAI.", "grok", "grok-4.3", ["Grok", "xAI"]),
        ("これはPerplexityの回答です。", "perplexity", "fast", ["Perplexity"]),
        ("Answered by openai/gpt-5.6 here.", "", "openai/gpt-5.6", ["gpt-5.6"]),
    ],
)
def test_the_records_own_provider_and_model_count_wherever_they_stand(answer, provider, version, found) -> None:
    assert names(answer, provider, version) == found


@pytest.mark.parametrize(
    ("answer", "speaks"),
    [
        ("As Claude, I cannot.", [True]),
        ("Anthropic says so.", [False]),
        ("Anthropic says so. I was made by Anthropic.", [True]),
        ("Claude Sonnet 5 is new. I am Claude.", [False, True]),
    ],
)
def test_speaking_as_a_model_is_told_from_naming_it(answer, speaks) -> None:
    provenance = Provenance(model_name="claude", model_version="claude-sonnet-5")
    record = QueryResponse(record_uuid="u", query="Q?", answer=answer, provenance=provenance)
    assert [naming.speaks for naming in check_naming(record)] == speaks


def test_the_excerpt_is_one_line_around_the_name() -> None:
    answer = "x" * 90 + "\nI am\nnobody. I am Claude.\n" + "y" * 90
    record = QueryResponse(record_uuid="u", query="Q?", answer=answer)
    (naming,) = check_naming(record)
    assert naming.excerpt == "…" + "x" * 21 + " I am nobody. I am Claude. " + "y" * 38 + "…"


def test_a_hostile_answer_takes_time_in_proportion_to_its_length() -> None:
    def seconds(length: int) -> float:
        answer = "as an ai " * length + "i am a " * length + "私は" * length
        started = time.perf_counter()
        names(answer, "openai", "gpt-5.6")
        return time.perf_counter() - started

    assert seconds(16_000) < 16 * max(seconds(4_000), 0.01)
