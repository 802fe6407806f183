import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from pipeline.core.errors import InputError
from pipeline.records.citations_file import read_citations, resolved_earlier
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
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                line = head.rpartition(" HTTP/1.1")[0]
                asked.append(line)
                reply = replies.get(line) or replies.get(line.split()[1], "404 Not Found")
                if reply == "hang up":
                    break
                writer.write(f"HTTP/1.1 {reply}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

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


def test_a_redirect_is_resolved_by_one_head_that_follows_nothing() -> None:
    asked: list[str] = []
    redirects = resolve({"/a": moved("https://site.example/päge?q=1#f")}, ["/a", "/a"], asked)
    assert redirects == ({"/a": "https://site.example/p%C3%A4ge?q=1#f"}, {})
    assert asked == ["HEAD /a"]


@pytest.mark.parametrize("refused", ["405 Method Not Allowed", "501 Not Implemented", "200 OK", "hang up"])
def test_a_get_is_tried_where_head_leads_nowhere(refused: str) -> None:
    asked: list[str] = []
    redirects = resolve({"HEAD /a": refused, "GET /a": moved("https://site.example/")}, ["/a"], asked)
    assert redirects == ({"/a": "https://site.example/"}, {})
    assert asked == ["HEAD /a", "GET /a"]


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


def test_a_target_is_kept_and_never_visited_wherever_it_lies() -> None:
    assert resolve({"/a": moved("http://10.0.0.1/admin")}, ["/a"]).targets == {"/a": "http://10.0.0.1/admin"}


def test_only_grounding_redirects_are_asked() -> None:
    async def ask() -> Redirects:
        asked: list[str] = []
        async with google({}, asked) as (base, client):
            others = ["https://site.example/", "", base.replace(HOST, f"{HOST}.site.example"), f"ftp://{HOST}/"]
            redirects = await resolve_redirects(others, client)
        assert asked == []
        return redirects

    assert asyncio.run(ask()) == ({}, {})


def test_a_name_that_leads_to_a_private_address_is_refused() -> None:
    async def private(host: str, port: int) -> Sequence[str]:
        return ["169.254.169.254"]

    async def ask() -> Redirects:
        async with guarded_client(resolve=private) as client:
            return await resolve_redirects([f"https://{HOST}/a", f"https://user@{HOST}/b"], client)

    assert asyncio.run(ask()) == ({}, {"refused": 2})


def test_a_network_that_is_away_is_asked_a_few_times_only() -> None:
    looked_up: list[str] = []

    async def nobody(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        raise OSError(-3, "Temporary failure in name resolution")

    async def ask() -> Redirects:
        async with guarded_client(resolve=nobody) as client:
            return await resolve_redirects((f"https://{HOST}/{n}" for n in range(500)), client, 1)

    assert asyncio.run(ask()) == ({}, {"network": 10, "not_tried": 490})
    assert len(looked_up) == 20


def test_as_many_as_the_given_number_are_asked_at_a_time() -> None:
    running: Counter[str] = Counter()

    async def ask() -> Redirects:
        together = asyncio.Barrier(3)

        async def counting(host: str, port: int) -> Sequence[str]:
            running["now"] += 1
            running["most"] = max(running["most"], running["now"])
            await together.wait()
            running["now"] -= 1
            return ["10.0.0.1"]

        async with guarded_client(resolve=counting) as client:
            return await resolve_redirects((f"https://{HOST}/{n}" for n in range(60)), client, 3)

    assert asyncio.run(ask()).reasons == {"refused": 60}
    assert running["most"] == 3


def citation(url: str, resolved_url: str = "") -> dict[str, object]:
    return {"answer_id": "a", "n": 1, "url": url, "resolved_url": resolved_url, "title": "é"}


def write_citations(path: Path, lines: Sequence[dict[str, object]]) -> bytes:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path.read_bytes()


def resolve_file(path: Path, replies: Replies, make: Callable[[str], list[dict[str, object]]]) -> Redirects:
    async def ask() -> Redirects:
        async with google(replies, []) as (base, client):
            write_citations(path, make(base))
            return await resolve_citations(path, client)

    return asyncio.run(ask())


def test_the_file_of_citations_gets_the_targets_and_keeps_all_else(tmp_path: Path) -> None:
    path = tmp_path / "citations.jsonl"
    bases: list[str] = []

    def lines(base: str) -> list[dict[str, object]]:
        bases.append(base)
        known = citation(f"{base}/known", "https://known.example/")
        return [citation(f"{base}/a"), citation("https://b.example/"), citation(f"{base}/a"), known]

    redirects = resolve_file(path, {"/a": moved("https://site.example/")}, lines)
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    site, known = "https://site.example/", "https://known.example/"
    assert [line["resolved_url"] for line in found] == [site, "", site, known]
    assert list(found[0]) == ["answer_id", "n", "url", "resolved_url", "title"]
    assert redirects.reasons == {}
    assert resolved_earlier(path) == {f"{bases[0]}/a": site, f"{bases[0]}/known": known}


def test_the_file_is_not_touched_where_nothing_is_learnt(tmp_path: Path) -> None:
    path = tmp_path / "citations.jsonl"
    written: list[bytes] = []

    def lines(base: str) -> list[dict[str, object]]:
        made = [citation(f"{base}/gone"), citation("https://b.example/")]
        written.append(write_citations(path, made))
        return made

    assert resolve_file(path, {}, lines).reasons == {"status_404": 1}
    assert path.read_bytes() == written[0]
    assert [each.name for each in tmp_path.iterdir()] == ["citations.jsonl"]


def test_a_run_without_citations_has_no_earlier_targets(tmp_path: Path) -> None:
    assert resolved_earlier(tmp_path / "citations.jsonl") == {}


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"url": 1}', '{"url": "u", "resolved_url": null}', "[" * 100_000],
    ids=["cut", "list", "number", "null", "abyss"],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "citations.jsonl"
    path.write_text(f'{{"url": "https://a.example/"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"Line 2 of .*citations\.jsonl"):
        list(read_citations(path))
    assert resolved_earlier(path) == {}
