import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import httpx
import pytest

from pipeline.core.errors import InputError
from pipeline.records.citation_form import read_citations, resolved_earlier
from pipeline.sources.guard import guarded_client
from pipeline.sources.redirects import Redirects, resolve_citations, resolve_redirects

HOST = "vertexaisearch.cloud.google.com"
Replies = dict[str, str]


def moved(location: str) -> str:
    return f"302 Found\r\nLocation: {location}"


@asynccontextmanager
async def google(replies: Replies, asked: list[str]) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    """The base of redirects and a client for it; `replies` are by `METHOD /path`, else by path, and 404."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError), closing(writer):
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                line = head.rpartition(" HTTP/1.1")[0]
                asked.append(line)
                reply = replies.get(line) or replies.get(line.split()[1], "404 Not Found")
                if reply == "hang up":
                    break
                writer.write(f"HTTP/1.1 {reply}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == HOST else ["10.0.0.1"]

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = int(server.sockets[0].getsockname()[1])
    async with server, guarded_client([("127.0.0.1", port)], resolve=resolve) as client:
        yield f"http://{HOST}:{port}", client


def resolve(replies: Replies, paths: Sequence[str], asked: list[str] | None = None) -> Redirects:
    """The redirects at these paths, their URLs without the base."""

    async def ask() -> Redirects:
        async with google(replies, [] if asked is None else asked) as (base, client):
            targets, reasons = await resolve_redirects([base + path for path in paths], client, 4)
            return Redirects({url.removeprefix(base): target for url, target in targets.items()}, reasons)

    return asyncio.run(ask())


@pytest.mark.parametrize("refused", ["", "405 Method Not Allowed", "501 Not Implemented", "200 OK", "hang up"])
@pytest.mark.parametrize("target", ["https://site.example/p%C3%A4ge?q=1#f", "http://10.0.0.1/admin"])
def test_a_redirect_is_resolved_by_one_head_or_else_one_get_and_never_visited(refused: str, target: str) -> None:
    asked: list[str] = []
    head = {"HEAD /a": refused} if refused else {}
    redirects = resolve({**head, "/a": moved(target.replace("%C3%A4", "ä"))}, ["/a", "/a"], asked)
    assert redirects == ({"/a": target}, {})
    assert asked == ["HEAD /a", "GET /a"] if refused else asked == ["HEAD /a"]


def test_failures_are_counted_by_reason_and_leave_the_others_alone() -> None:
    replies = {
        "/good": moved("https://site.example/"),
        "/down": "503 Service Unavailable",
        "/cut": "hang up",
        "/loop": moved(f"https://{HOST}/grounding-api-redirect/x"),
        "/user": moved("https://user@site.example/"),
        "/file": moved("file:///etc/passwd"),
        "/name": moved("//xn--<"),
        "/path": moved("host:99999"),
    }
    redirects = resolve(replies, ["/good", "/down", "/cut", "/loop", "/user", "/file", "/name", "/path", "/gone"])
    assert redirects.targets == {"/good": "https://site.example/"}
    assert redirects.reasons == {"bad_target": 1, "network": 1, "refused": 4, "status_404": 1, "status_503": 1}


def test_only_grounding_redirects_are_asked_and_no_private_address() -> None:
    async def ask() -> Redirects:
        asked: list[str] = []
        async with google({}, asked) as (base, client):
            others = ["https://site.example/", "", base.replace(HOST, f"{HOST}.site.example"), f"ftp://{HOST}/"]
            redirects = await resolve_redirects(others, client)
        assert asked == []
        return redirects

    assert asyncio.run(ask()) == ({}, {})

    async def private(host: str, port: int) -> Sequence[str]:
        return ["169.254.169.254"]

    async def ask() -> Redirects:
        async with guarded_client(resolve=private) as client:
            return await resolve_redirects([f"https://{HOST}/a", f"https://user@{HOST}/b"], client)

    assert asyncio.run(ask()) == ({}, {"refused": 2})


def test_as_many_as_the_given_number_are_asked_at_a_time_and_few_where_the_network_is_away() -> None:
    looked_up: list[str] = []

    async def nobody(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        raise OSError(-3, "Temporary failure in name resolution")

    async def ask() -> Redirects:
        async with guarded_client(resolve=nobody) as client:
            return await resolve_redirects((f"https://{HOST}/{n}" for n in range(500)), client, 1)

    assert (asyncio.run(ask()), len(looked_up)) == (({}, {"network": 10, "not_tried": 490}), 20)
    waiting: list[int] = []

    async def ask() -> Redirects:
        together = asyncio.Barrier(3)

        async def counting(host: str, port: int) -> Sequence[str]:
            waiting.append(together.n_waiting)
            await together.wait()
            return ["10.0.0.1"]

        async with guarded_client(resolve=counting) as client:
            return await resolve_redirects((f"https://{HOST}/{n}" for n in range(60)), client, 3)

    assert (asyncio.run(ask()).reasons, max(waiting)) == ({"refused": 60}, 2)


def citation(url: str, resolved_url: str = "") -> dict[str, object]:
    return {"answer_id": "a", "n": 1, "url": url, "resolved_url": resolved_url, "title": "é"}


def test_the_file_of_citations_gets_the_targets_and_is_else_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "citations.jsonl"
    site, known = "https://site.example/", "https://known.example/"

    async def ask() -> None:
        replies: Replies = {}
        async with google(replies, []) as (base, client):
            lines = [citation(f"{base}/a"), citation("https://b.example/"), citation(f"{base}/a")]
            written = "".join(
                json.dumps(line, ensure_ascii=False) + "\n" for line in [*lines, citation(f"{base}/known", known)]
            )
            path.write_text(written, encoding="utf-8")
            assert (await resolve_citations(path, client)).reasons == {"status_404": 1}
            assert path.read_text(encoding="utf-8") == written
            replies["/a"] = moved(site)
            assert (await resolve_citations(path, client)).reasons == {}
            assert resolved_earlier(path) == {f"{base}/a": site, f"{base}/known": known}

    assert resolved_earlier(path) == {}
    asyncio.run(ask())
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["resolved_url"] for line in found] == [site, "", site, known]
    assert list(found[0]) == ["answer_id", "n", "url", "resolved_url", "title"]
    assert [each.name for each in tmp_path.iterdir()] == ["citations.jsonl"]


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "citations.jsonl"
    for line in ("{", "[]", '{"url": 1}', '{"url": "u", "resolved_url": null}', "[" * 100_000):
        path.write_text(f'{{"url": "https://a.example/"}}\n{line}\n', encoding="utf-8")
        with pytest.raises(InputError, match=r"Line 2 of .*citations\.jsonl"):
            list(read_citations(path))
        assert resolved_earlier(path) == {}
