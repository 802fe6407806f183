import json

import pytest

from pipeline.core.errors import ProviderError
from pipeline.core.schema import ProviderName
from pipeline.providers import read_payload
from pipeline.providers.http.failure import is_refusal, is_refusal_error
from tests.support.places import NO_SHARED, SHARED, cases

RECORDINGS = SHARED / "recordings"
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
