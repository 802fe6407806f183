import json
from typing import Any

import pytest

from pipeline.core.errors import InputError, ProviderError
from pipeline.core.schema import Answer, ProviderName
from pipeline.providers import provider_name, read_payload
from pipeline.providers.http.failure import is_refusal, is_refusal_error
from tests.support.batch_books import grok_chat
from tests.support.places import DATA, NO_SHARED, SHARED, cases

RECORDINGS = SHARED / "recordings"
ANSWERS = cases("answers")


def payload(name: str) -> str:
    return (DATA / "payloads" / name).read_text(encoding="utf-8")


def outlined(answer: Answer) -> dict[str, Any]:
    """The answer as JSON; of an occurrence URL, placement and words of the text, then title and quote if any."""
    occurrences = [
        [each.url, each.placement, "" if each.start is None else answer.text[each.start : each.end]]
        + ([each.title, each.cited_text] if each.title or each.cited_text else [])
        for each in answer.occurrences
    ]
    return {**json.loads(answer.model_dump_json(exclude_defaults=True)), "occurrences": occurrences}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_payload_is_read_as_a_whole(name: str) -> None:
    provider = provider_name(name.split("_")[0].replace("responses", "openai"))
    assert outlined(read_payload(provider, payload(name))) == ANSWERS[name]


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_citations_texts_and_results_of_every_recorded_answer_are_those_of_its_sidecar() -> None:
    count = 0
    for path in sorted(RECORDINGS.glob("*/*.meta.json")):
        sidecar = json.loads(path.read_text(encoding="utf-8"))
        if sidecar["api_shape"] in ("error", "non-json"):
            continue
        text = path.with_name(sidecar["file"]).read_text(encoding="utf-8")
        answer, count = read_payload(provider_name(sidecar["provider"]), text), count + 1
        cited = tuple(dict.fromkeys(sidecar["seed_citations"] + sidecar["structured_citations"]))
        assert (answer.citations, len(answer.search_results)) == (cited, sidecar["n_search_results"]), path.name
        refusal = answer.stop_reason == "refusal" and sidecar["provider"] == "openai"
        cut = answer.unread.get("tokens of the provider")
        assert len(answer.text) == sidecar["text_chars"] or refusal or cut, path.name
    assert count > 80


def test_the_shape_decides_and_not_the_name_and_what_no_file_can_carry_is_replaced() -> None:
    body = json.loads(payload("perplexity_sonar_think_de.json")) | {"citations": []}
    answer = read_payload("perplexity", json.dumps(body))
    assert (answer.citations, len(answer.search_results)) == ((), 2)
    claude = payload("claude_messages_de.json")
    assert read_payload("gemini", claude) == read_payload("claude", claude)
    assert read_payload("openai", payload("perplexity_agent_ja.json")).search_results == ()
    text = "a\\ud83d\\u0000[x](https://a.example/)"
    body = '{"choices": [{"message": {"content": "' + text + '"}, "finish_reason": "stop"}]}'
    answer = read_payload("openai", body)
    assert (answer.text, answer.occurrences[0].start) == ("a\ufffd\ufffd[x](https://a.example/)", 3)


def test_vendors_names_stand_for_providers_and_of_an_unknown_one_the_nearest_is_named() -> None:
    names = ("claude", "Anthropic", " xai ", "google", "openrouter")
    assert [provider_name(name) for name in names] == ["claude", "claude", "grok", "gemini", "openai"]
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
    text = "Yes [[1]](https://a.example/)."
    body = read_payload("grok", json.dumps(grok_chat(text)))
    assert (body.text, body.citations, body.stop_reason) == (text, ("https://a.example/",), "stop")
    assert grok_steps(("assistant", "I look."), ("tool", "found"), ("assistant", "Yes."), ("tool", "x")).text == "Yes."
    assert grok_steps(("assistant", "Yes."), ("assistant", "")).text == "Yes."
    assert grok_steps(("assistant", ""), ("assistant", None)).text == ""
    assert grok_steps(("tool", "found"), ("tool", "more")).text == "more"


FOLDERS: dict[str, ProviderName] = {
    "anthropic": "claude",
    "openai": "openai",
    "openrouter": "openai",
    "gemini": "gemini",
    "xai": "grok",
    "perplexity": "perplexity",
}
REFUSED = {
    "anthropic/refusal_empty_content",
    "gemini/prompt_blocked_model_armor",
    "gemini/safety_no_content",
    "openai/chat_azure_content_filter",
    "openai/chat_refusal_content_null",
}


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_of_all_recorded_payloads_those_that_were_refused_are_refusals() -> None:
    found = set()
    for path in sorted(RECORDINGS.glob("*/*.json")):
        if path.name.endswith(".meta.json"):
            continue
        name = f"{path.parent.name}/{path.stem}"
        try:
            answer = read_payload(FOLDERS[path.parent.name], path.read_text(encoding="utf-8"))
        except ProviderError as error:
            refused = is_refusal_error(error.kind, str(error))
        else:
            refused = is_refusal(answer.stop_reason)
        if refused:
            found.add(name)
    assert found == REFUSED


def responses(*parts: dict[str, str]) -> str:
    message = {"type": "message", "role": "assistant", "content": list(parts)}
    return json.dumps({"object": "response", "status": "completed", "model": "m", "output": [message]})


REFUSAL = {"type": "refusal", "refusal": "I cannot help with that."}


def test_a_refusal_in_responses_is_one_words_beside_it_are_an_answer_and_other_ends_are_no_refusals() -> None:
    answer = read_payload("openai", responses(REFUSAL))
    assert (answer.text, answer.stop_reason) == ("I cannot help with that.", "refusal")
    assert is_refusal(answer.stop_reason)
    beside = read_payload("openai", responses({"type": "output_text", "text": "No."}, REFUSAL))
    assert beside.stop_reason == "completed"
    ends = ["stop", "end_turn", "completed", "max_output_tokens", "MAX_TOKENS", "OTHER", "", "pause_turn"]
    assert not any(map(is_refusal, ends))


@pytest.mark.parametrize(("kind", "message", "wanted"), cases("options")["refusal_errors"])
def test_errors_about_the_content_are_refusals(kind: str, message: str, wanted: bool) -> None:
    assert is_refusal_error(kind, message) is wanted  # type: ignore[arg-type]
