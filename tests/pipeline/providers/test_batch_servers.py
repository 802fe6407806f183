"""The loopback servers refuse what the real ones refuse; else a test against them says nothing."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.core.errors import ProviderError
from pipeline.core.schema import ProviderName
from pipeline.providers import get_provider
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.providers.http.request import ProviderRequest
from tests.support.batch_servers import BatchServers

ONCE = RetryPolicy(attempts=1, read_seconds=20, connect_seconds=5)
VERSION = {"anthropic-version": "2023-06-01"}
LINE = {"custom_id": "a1", "method": "POST", "url": "/v1/responses", "body": {"model": "m", "input": "?"}}
PARAMS = {"model": "m", "max_tokens": 9, "messages": []}
OPENAI_BATCH = {"input_file_id": "file-0001", "endpoint": "/v1/responses", "completion_window": "24h"}
GEMINI_BATCH = {"batch": {"displayName": "n", "inputConfig": {"fileName": "files/f0001"}}}


@pytest.fixture
def servers() -> Iterator[BatchServers]:
    with BatchServers() as running:
        yield running


def ask(
    servers: BatchServers,
    provider: ProviderName,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    content: bytes = b"",
    key: str = "sk-servers-0123456789",
) -> Any:
    async def say() -> Any:
        async with ApiClient(get_provider(provider).endpoint(servers.base_url(provider), key), ONCE) as client:
            return (await client.send(ProviderRequest(path, headers or {}, body or {}), content=content)).body

    return asyncio.run(say())


def form(*fields: tuple[str, str, str], kind: str = "form-data") -> tuple[dict[str, str], bytes]:
    """A multipart body: name, further words of the head, content."""
    parts = [
        f'--b\r\ncontent-disposition: form-data; name="{name}"{more}\r\n\r\n{content}\r\n'
        for name, more, content in fields
    ]
    return {"content-type": f"multipart/{kind}; boundary=b"}, ("".join(parts) + "--b--\r\n").encode()


FILE = ("file", '; filename="batch.jsonl"', "{}\n")
PURPOSE = ("purpose", "", "batch")


@pytest.mark.parametrize(
    ("provider", "fields", "words"),
    [
        ("openai", [FILE], "Missing required parameter: 'purpose'"),
        ("openai", [("purpose", "", "fine-tune"), FILE], "purpose must be 'batch'"),
        ("openai", [PURPOSE], "Missing required parameter: 'file'"),
        ("openai", [("name", "", "x"), PURPOSE, FILE], "Unknown parameter: 'name'"),
        ("openai", [PURPOSE, ("file", '; filename="batch.txt"', "{}")], r"\.jsonl file"),
        ("openai", [FILE, PURPOSE], "file must be the last"),
        ("grok", [PURPOSE, FILE], "Unknown parameter: 'purpose'"),
        ("grok", [FILE, ("expires_after", "", "3600")], "file must be the last"),
    ],
)
def test_files_of_another_form_are_refused(
    servers: BatchServers, provider: ProviderName, fields: list[tuple[str, str, str]], words: str
) -> None:
    headers, content = form(*fields)
    with pytest.raises(ProviderError, match=words):
        ask(servers, provider, "/files", headers=headers, content=content)
    assert not servers.files


def test_google_takes_metadata_and_then_the_file(servers: BatchServers) -> None:
    upload = "/upload/v1beta/files"
    headers, content = form(FILE, kind="related")
    with pytest.raises(ProviderError, match="uploadType must be multipart"):
        ask(servers, "gemini", upload, headers=headers, content=content)
    with pytest.raises(ProviderError, match="metadata in JSON and then the media"):
        ask(servers, "gemini", f"{upload}?uploadType=multipart", headers=headers, content=content)
    with pytest.raises(ProviderError, match="must be multipart/related"):
        ask(servers, "gemini", f"{upload}?uploadType=multipart", {"file": {}})


@pytest.mark.parametrize(
    ("provider", "path", "body", "words"),
    [
        ("openai", "/batches", {**OPENAI_BATCH, "name": "n"}, "Unknown parameter: 'name'"),
        ("openai", "/batches", {**OPENAI_BATCH, "completion_window": "1h"}, "none of those supported"),
        ("openai", "/batches", {**OPENAI_BATCH, "endpoint": "/responses"}, "none of those supported"),
        ("openai", "/batches", {**OPENAI_BATCH, "metadata": {"name": "n" * 513}}, "metadata is too long"),
        ("openai", "/batches", {**OPENAI_BATCH, "input_file_id": "file-9"}, "No file file-9"),
        ("grok", "/batches", {"name": "n"}, "Missing required parameter: 'input_file_id'"),
        ("grok", "/batches", {"name": "n", "input_file_id": "file-0001", "endpoint": "/v1"}, "Unknown parameter"),
        ("gemini", "/v1beta/models/m:batchGenerateContent", {"requests": []}, "Unknown parameter: 'requests'"),
        ("gemini", "/v1beta/models/m:batchGenerateContent", {"batch": {"displayName": "n"}}, "'inputConfig'"),
        ("claude", "/v1/messages/batches", {"requests": [], "name": "n"}, "Unknown parameter: 'name'"),
        ("claude", "/v1/messages/batches", {"requests": []}, "0 is not a number of requests"),
        ("claude", "/v1/messages/batches", {"requests": [{"custom_id": "a1", "params": {}}]}, "a field is missing"),
        ("claude", "/v1/messages/batches", {"requests": [{"custom_id": "a 1", "params": PARAMS}]}, "should match"),
        ("claude", "/v1/messages/batches", {"requests": [{"custom_id": "a1", "params": PARAMS}] * 2}, "unique"),
    ],
)
def test_batches_of_another_form_are_refused(
    servers: BatchServers, provider: ProviderName, path: str, body: Any, words: str
) -> None:
    servers.keep(provider, json.dumps(LINE).encode())
    with pytest.raises(ProviderError, match=words):
        ask(servers, provider, path, body, VERSION)
    assert not servers.batches


@pytest.mark.parametrize(
    ("provider", "lines", "words"),
    [
        ("openai", [LINE, LINE], "was used before"),
        ("openai", [LINE, {**LINE, "custom_id": "a2", "body": {"model": "n"}}], "one model"),
        ("openai", [{**LINE, "url": "/responses"}], "not the batch's endpoint"),
        ("openai", [{**LINE, "name": "n"}], "Unknown parameter: 'name'"),
        ("openai", [], "empty"),
        ("grok", [LINE, LINE], "was used before"),
        ("grok", [{**LINE, "url": "/responses"}], "not supported"),
        ("gemini", [{"key": "a1", "request": {"contents": [], "model_name": "m"}}], "Unknown name 'model_name'"),
        ("gemini", [{"custom_id": "a1", "request": {}}], "Unknown parameter: 'custom_id'"),
    ],
)
def test_files_with_other_lines_fail_the_batch_after_it_was_made(
    servers: BatchServers, provider: ProviderName, lines: list[Any], words: str
) -> None:
    servers.keep(provider, "\n".join(map(json.dumps, lines)).encode())
    bodies: dict[str, tuple[str, Any]] = {
        "openai": ("/batches", OPENAI_BATCH),
        "grok": ("/batches", {"name": "n", "input_file_id": "file-0001"}),
        "gemini": ("/v1beta/models/m:batchGenerateContent", GEMINI_BATCH),
    }
    ask(servers, provider, *bodies[provider])
    (batch,) = servers.batches
    assert words in batch.wrong
    assert not servers.accepted


def test_nobody_is_served_without_a_key_or_anthropics_version(servers: BatchServers) -> None:
    providers: tuple[ProviderName, ...] = ("openai", "claude", "gemini", "grok")
    for provider in providers:
        with pytest.raises(ProviderError, match="No key was given"):
            ask(servers, provider, "/batches", key="")
    with pytest.raises(ProviderError, match="anthropic-version"):
        ask(servers, "claude", "/v1/messages/batches", {"requests": []})
