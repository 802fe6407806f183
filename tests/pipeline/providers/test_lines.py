import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterable

import pytest

from pipeline.core.errors import ProviderError
from pipeline.providers import get_provider
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.providers.http.request import ProviderRequest
from tests.support.provider_server import MB, Behaviour, HalfBody, Huge, ProviderServer, Redirect, Status

KEY = "sk-lines-0123456789"
QUICK = RetryPolicy(attempts=3, read_seconds=20, backoff_seconds=0.01, connect_seconds=5)


def read(script: Iterable[Behaviour]) -> list[str]:
    async def all_of_them(url: str) -> list[str]:
        async with ApiClient(get_provider("openai").endpoint(url, KEY), QUICK) as client:
            return [line async for line in client.lines(ProviderRequest("/files/f/content", {}, {}, "GET"))]

    with ProviderServer(script) as server:
        lines = asyncio.run(all_of_them(server.base_url("openai")))
        assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
        return lines


@pytest.mark.parametrize("is_packed", [False, True])
def test_lines_of_a_body_larger_than_any_answer_come_whole_and_without_blank_ones(is_packed: bool) -> None:
    lines = [json.dumps({"n": number, "text": "本" * 20_000}, ensure_ascii=False) for number in range(700)]
    body = ("\n\n".join(lines) + "\r\n").encode()
    headers = {"content-encoding": "gzip"} if is_packed else {}
    found = read([Status(200, headers, gzip.compress(body, 1) if is_packed else body)])
    assert len(body) > 40 * MB
    assert [line.rstrip("\r") for line in found] == lines


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        pytest.param([Status(200, {}, "a\nb")], ["a", "b"], id="the last line needs no end"),
        pytest.param([Status(200, {}, "")], [], id="empty"),
        pytest.param([Status(200, {}, f"a {KEY}\nb {KEY}")], ["a [redacted]", "b [redacted]"], id="the key is hidden"),
        pytest.param(
            [Status(503, {}, "busy"), Status(429, {"retry-after": "0"}, "slow"), Status(200, {}, "a")],
            ["a"],
            id="what fails before the first line is asked for again",
        ),
    ],
)
def test_lines_come_as_they_are(script: list[Behaviour], lines: list[str]) -> None:
    assert read(script) == lines


HALF = gzip.compress(json.dumps({"text": "x"}).encode())[:-8]


@pytest.mark.parametrize(
    ("script", "words", "attempts"),
    [
        ([Huge(50, False)], "larger than 32 MB", 1),
        ([Huge(50, True)], "larger than 32 MB", 1),
        ([Status(200, {"content-encoding": "gzip"}, HALF)] * 3, "ends before it is whole", 3),
        ([HalfBody()] * 3, "before its answer was whole", 3),
        ([Redirect("http://elsewhere.example/f")], "redirects to the host", 1),
    ],
)
def test_a_body_that_is_none_is_an_error(script: list[Behaviour], words: str, attempts: int) -> None:
    with pytest.raises(ProviderError, match=words) as caught:
        read(script)
    assert caught.value.attempts == attempts


def test_a_line_that_is_packed_to_nothing_is_never_whole_in_memory() -> None:
    packer = zlib.compressobj(1, wbits=31)
    packed = b"".join(packer.compress(bytes(MB)) for _ in range(200)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(ProviderError, match="larger than 32 MB"):
            read([Status(200, {"content-encoding": "gzip"}, packed)])
        assert tracemalloc.get_traced_memory()[1] < 60 * MB
    finally:
        tracemalloc.stop()
