"""A model on loopback that says what a function tells it to, in Chat Completions or any other body."""

import json
from collections.abc import Callable
from typing import Any

from tests.support.provider_server import Behaviour, ProviderServer, Received, Status

Respond = Callable[[Received], Behaviour]
"""From a request to how the server behaves."""


class ScriptedModel(ProviderServer):
    """The server as a context, asked at `url`; `calls` are the requests so far. `respond` must be safe for threads."""

    def __init__(self, respond: Respond) -> None:
        super().__init__()
        self.respond = respond

    def take(self, received: Received) -> tuple[int, Behaviour]:
        number, _ = super().take(received)
        return number, self.respond(received)


def says(content: Any, stop: str = "stop", model: str = "scripted-1") -> Status:
    """A chat completion with this content; a value that is no text is written as JSON, parts stay parts."""
    parts = isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content)
    text = content if isinstance(content, str) or content is None or parts else json.dumps(content, ensure_ascii=False)
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return Status(200, {}, {"object": "chat.completion", "model": model, "choices": [choice], "usage": usage})


def refuses(message: str = "response_format is not supported", status: int = 400) -> Status:
    """The error of a server that does not take the request."""
    return Status(status, {}, {"error": {"message": message, "type": "invalid_request_error"}})


def form_of(received: Received) -> str:
    return str(received.body.get("response_format", {}).get("type", "prompt"))


def prompts_of(received: Received) -> tuple[str, str]:
    said = {message["role"]: message["content"] for message in received.body["messages"]}
    return said.get("system", ""), said["user"]
