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
from tests.support.places import cases

CASES = cases("batches")
MADE: dict[str, tuple[str, Any]] = {
    "openai": ("/batches", {"input_file_id": "file-0001", "endpoint": "/v1/responses", "completion_window": "24h"}),
    "grok": ("/batches", {"name": "n", "input_file_id": "file-0001"}),
    "gemini": (
        "/v1beta/models/m:batchGenerateContent",
        {"batch": {"displayName": "n", "inputConfig": {"fileName": "files/f0001"}}},
    ),
}


@pytest.fixture
def servers() -> Iterator[BatchServers]:
    with BatchServers() as running:
        yield running


def ask(
    servers: BatchServers, provider: ProviderName, path: str, body: Any = None, content: bytes = b"", key: str = "sk-1"
) -> Any:
    headers = {"content-type": "multipart/form-data; boundary=b"} if content else {"anthropic-version": "2023-06-01"}

    async def say() -> Any:
        endpoint = get_provider(provider).endpoint(servers.base_url(provider), key)
        async with ApiClient(endpoint, RetryPolicy(attempts=1, read_seconds=20, connect_seconds=5)) as client:
            return (await client.send(ProviderRequest(path, headers, body or {}), content=content)).body

    return asyncio.run(say())


@pytest.mark.parametrize(("provider", "fields", "words"), CASES["refused_files"])
def test_other_files_are_refused(
    servers: BatchServers, provider: ProviderName, fields: list[list[str]], words: str
) -> None:
    head = '--b\r\ncontent-disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    with pytest.raises(ProviderError, match=words):
        ask(
            servers, provider, "/files", content=("".join(head.format(*each) for each in fields) + "--b--\r\n").encode()
        )
    assert not servers.files


@pytest.mark.parametrize(("provider", "path", "body", "words"), CASES["refused_batches"])
def test_other_batches_are_refused(
    servers: BatchServers, provider: ProviderName, path: str, body: Any, words: str
) -> None:
    line = {"custom_id": "a1", "method": "POST", "url": "/v1/responses", "body": {"model": "m", "input": "?"}}
    servers.keep(provider, json.dumps(line).encode())
    with pytest.raises(ProviderError, match=words):
        ask(servers, provider, path, body)
    with pytest.raises(ProviderError, match="No key was given"):
        ask(servers, provider, path, body, key="")
    assert not servers.batches


@pytest.mark.parametrize(("provider", "lines", "words"), CASES["failing_lines"])
def test_files_with_other_lines_fail_the_batch_after_it_was_made(
    servers: BatchServers, provider: ProviderName, lines: list[Any], words: str
) -> None:
    servers.keep(provider, "\n".join(map(json.dumps, lines)).encode())
    ask(servers, provider, *MADE[provider])
    (batch,) = servers.batches
    assert words in batch.wrong
    assert not servers.accepted
