import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import InputError
from pipeline.core.schema import Answer, Occurrence, SearchResult
from pipeline.providers import provider_name, read_payload
from tests.support.batch_books import grok_chat
from tests.support.places import DATA, NO_SHARED, SHARED

PAYLOADS = DATA / "payloads"
RECORDINGS = SHARED / "recordings"
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"

needs_recordings = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)


def payload(name: str) -> str:
    return (PAYLOADS / name).read_text(encoding="utf-8")


def read(name: str) -> Answer:
    return read_payload(provider_name(name.split("_")[0]), payload(name))


def places(answer: Answer) -> list[tuple[str, str, str]]:
    return [
        (each.url, each.placement, answer.text[each.start : each.end] if each.start is not None else "")
        for each in answer.occurrences
    ]


def recordings() -> list[tuple[Path, dict[str, Any]]]:
    sidecars = sorted(RECORDINGS.glob("*/*.meta.json"))
    read = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in sidecars]
    return [(path.with_name(sidecar["file"]), sidecar) for path, sidecar in read]


def is_answer(sidecar: dict[str, Any]) -> bool:
    return sidecar["api_shape"] not in ("error", "non-json")


@needs_recordings
def test_citations_of_every_recorded_answer_are_those_of_its_sidecar() -> None:
    answers = [(path, sidecar) for path, sidecar in recordings() if is_answer(sidecar)]
    differing = []
    for path, sidecar in answers:
        answer = read_payload(provider_name(sidecar["provider"]), path.read_text(encoding="utf-8"))
        expected = tuple(dict.fromkeys(sidecar["seed_citations"] + sidecar["structured_citations"]))
        if answer.citations != expected:
            differing.append((path.name, answer.citations, expected))
    assert len(answers) > 80
    assert not differing, f"{len(answers)} read, {len(answers) - len(differing)} equal: {differing}"


@needs_recordings
def test_texts_and_search_results_of_recorded_answers_are_whole() -> None:
    for path, sidecar in recordings():
        if is_answer(sidecar):
            answer = read_payload(provider_name(sidecar["provider"]), path.read_text(encoding="utf-8"))
            refusal = answer.stop_reason == "refusal" and sidecar["provider"] == "openai"
            assert len(answer.text) == sidecar["text_chars"] or refusal, path.name
            assert len(answer.search_results) == sidecar["n_search_results"], path.name


def test_openai_cites_the_urls_of_a_japanese_text_and_places_their_marks() -> None:
    answer = read("openai_responses_ja.json")
    mark = "([mhlw.example](https://www.mhlw.example/stf/vaccine.html?utm_source=openai))"
    assert answer.citations == (
        "https://www.mhlw.example/stf/vaccine.html?utm_source=openai",
        "https://ja.wiki.example/wiki/ワクチン",
        "https://who.example/safety",
    )
    assert answer.domains == ("mhlw.example", "ja.wiki.example", "who.example")
    assert places(answer) == [
        (answer.citations[0], "marker", mark),
        (answer.citations[1], "claim", "[ワクチンの項目](https://ja.wiki.example/wiki/ワクチン)"),
        (answer.citations[2], "marker", "https://who.example/safety"),
        (answer.citations[0], "marker", mark),
    ]
    assert answer.occurrences[0].title == "ワクチンについて"
    assert (answer.model, answer.stop_reason) == ("gpt-test-2026-10-01", "completed")


def test_openai_thoughts_and_artefacts_are_cut_and_offsets_follow() -> None:
    answer = read("openai_chat_artefacts_de.json")
    assert answer.text == "Der Rhein ist lang. Er mündet in die Nordsee【1†quelle】."
    assert places(answer) == [
        ("https://rhein.example/", "marker", "【1†quelle】"),
        ("https://fluss.example/", "none", ""),
    ]
    assert answer.stop_reason == "length"


def test_claude_blocks_are_claims_with_the_text_they_quote() -> None:
    answer = read("claude_messages_de.json")
    assert answer.text == "Ich sehe nach.\n\nDie Zugspitze ist 2962 Meter hoch.\n\nSie liegt in Bayern."
    assert answer.citations == ("https://berge.example/zugspitze", "https://geo.example/größe")
    assert places(answer) == [
        ("https://berge.example/zugspitze", "claim", "2962 Meter hoch."),
        ("https://geo.example/größe", "claim", "2962 Meter hoch."),
        ("https://berge.example/zugspitze", "claim", "Sie liegt in Bayern."),
    ]
    assert [each.cited_text for each in answer.occurrences] == ["Höhe: 2962 m", "Die Zugspitze (2962 m) …", "in Bayern"]


def test_claude_bodies_of_a_paused_turn_are_one_answer() -> None:
    answer = read("claude_pause_turn_ja.json")
    assert answer.text == "調べます。富士山は3776メートルです。"
    assert answer.citations == ("https://a.example/", "https://b.example/")
    assert places(answer)[1:] == [
        ("https://b.example/", "claim", "富士山は3776メートルです。"),
        ("https://a.example/", "claim", "富士山は3776メートルです。"),
    ]
    assert (answer.model, answer.stop_reason) == ("claude-test-2", "end_turn")


def test_gemini_offsets_are_bytes_of_the_named_part() -> None:
    answer = read("gemini_generate_ja.json")
    assert answer.text == "富士山は日本一高い山です。標高は3776 mです🗻。"
    assert answer.citations == (REDIRECT + "AAA", REDIRECT + "BBB", "https://www.google.example/search?q=mount fuji")
    assert answer.domains == ("fuji.example", "gsi.example", "google.example")
    assert places(answer) == [
        (REDIRECT + "AAA", "claim", "富士山は日本一高い山です。"),
        (REDIRECT + "BBB", "claim", "3776 mです🗻"),
        (REDIRECT + "AAA", "claim", "3776 mです🗻"),
        ("https://www.google.example/search?q=mount fuji", "none", ""),
    ]


def test_gemini_blocked_prompt_is_an_empty_answer_with_the_reason() -> None:
    assert read("gemini_sdk_blocked.json") == Answer(text="", model="gemini-test", stop_reason="PROHIBITED_CONTENT")


def test_grok_numbered_links_are_citations_where_nothing_else_is() -> None:
    answer = read("grok_responses_without_annotations_de.json")
    assert answer.citations == ("https://elbe.example/", "https://fluss.example/a_(b)")
    assert places(answer) == [
        ("https://elbe.example/", "marker", "[[1]](https://elbe.example/)"),
        ("https://fluss.example/a_(b)", "marker", "[[2]](https://fluss.example/a_(b))"),
        ("https://elbe.example/", "marker", "[[1]](https://elbe.example/)"),
    ]
    assert answer.stop_reason == "max_output_tokens"


def test_grok_grpc_text_is_the_last_finished_message() -> None:
    answer = read("grok_grpc.json")
    assert answer.text == "Ja."
    assert answer.citations == ("https://a.example/", "collections://c/files/f", "https://b.example/")
    assert answer.domains == ("a.example", "", "b.example")
    assert answer.occurrences == tuple(Occurrence(url=url) for url in answer.citations)


def test_perplexity_agent_cites_the_results_that_the_text_names() -> None:
    answer = read("perplexity_agent_ja.json")
    assert answer.citations == ("https://d.example/9", "https://b.example/4")
    assert places(answer) == [
        ("https://d.example/9", "marker", "[9]"),
        ("https://b.example/4", "marker", "[4]"),
        ("https://d.example/9", "marker", "[9]"),
    ]
    assert answer.search_results == (
        SearchResult(url="https://a.example/1", title="甲", snippet="甲の抜粋"),
        SearchResult(url="https://b.example/4", title="乙", snippet="乙の抜粋"),
        SearchResult(url="https://c.example/other", title="丙"),
        SearchResult(url="https://d.example/9", snippet="丁の抜粋"),
    )


def test_perplexity_sonar_without_citations_key_cites_its_results_and_keeps_their_places() -> None:
    answer = read("perplexity_sonar_think_de.json")
    assert answer.text == "Ja, das stimmt.[2][5]"
    assert answer.citations == ("https://b.example/",)
    assert places(answer) == [("https://b.example/", "marker", "[2]")]
    assert [each.url for each in answer.search_results] == ["", "https://b.example/"]


def test_an_empty_citations_list_of_sonar_stays_empty() -> None:
    body = json.loads(payload("perplexity_sonar_think_de.json")) | {"citations": []}
    answer = read_payload("perplexity", json.dumps(body))
    assert answer.citations == ()
    assert len(answer.search_results) == 2


def test_search_results_are_kept_for_perplexity_only() -> None:
    assert read_payload("openai", payload("perplexity_agent_ja.json")).search_results == ()


def test_the_shape_decides_and_not_the_name() -> None:
    claude = payload("claude_messages_de.json")
    assert read_payload("gemini", claude) == read_payload("claude", claude)


def test_a_queued_body_is_an_answer_with_what_is_there() -> None:
    answer = read_payload("openai", payload("responses_queued.json"))
    assert answer == Answer(text="", model="gpt-test", stop_reason="queued")


def test_characters_that_no_file_can_carry_are_replaced_one_for_one() -> None:
    text = "a\\ud83d\\u0000[x](https://a.example/)"
    body = '{"choices": [{"message": {"content": "' + text + '"}, "finish_reason": "stop"}]}'
    answer = read_payload("openai", body)
    assert answer.text == "a\ufffd\ufffd[x](https://a.example/)"
    assert answer.occurrences[0].start == 3


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [("claude", "claude"), ("Anthropic", "claude"), (" xai ", "grok"), ("google", "gemini"), ("openrouter", "openai")],
)
def test_vendors_names_stand_for_providers(given_name: str, expected: str) -> None:
    assert provider_name(given_name) == expected


def test_an_unknown_provider_is_told_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'gemini'"):
        provider_name("gemni")


def grok_steps(*choices: tuple[str, str | None]) -> Answer:
    steps = [
        {"index": index, "message": {"role": role, "content": text}, "finish_reason": "stop"}
        for index, (role, text) in enumerate(choices)
    ]
    body = {"object": "chat.completion", "model": "grok-4.3", "choices": steps, "citations": ["https://a.example/"]}
    return read_payload("grok", json.dumps(body))


def test_grok_batch_answers_in_the_last_choice_after_its_searches() -> None:
    body = read_payload("grok", json.dumps(grok_chat("Yes [[1]](https://a.example/).")))
    assert (body.text, body.citations, body.stop_reason) == (
        "Yes [[1]](https://a.example/).",
        ("https://a.example/",),
        "stop",
    )
    assert grok_steps(("assistant", "I look."), ("tool", "found"), ("assistant", "Yes."), ("tool", "x")).text == "Yes."
    assert grok_steps(("assistant", "Yes."), ("assistant", "")).text == "Yes."
    assert grok_steps(("assistant", ""), ("assistant", None)).text == ""
    assert grok_steps(("tool", "found"), ("tool", "more")).text == "more"
