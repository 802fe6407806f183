import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from pipeline.core.errors import InputError, ProviderError
from pipeline.core.schema import PROVIDERS, AskOptions, ProviderName
from pipeline.providers import every_provider, get_provider, read_payload
from pipeline.providers.batch import BatchApi, BatchItem, BatchLimits, BatchResult, BatchState, split_items
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.providers.http.failure import unreadable_error
from pipeline.providers.http.request import ProviderRequest
from tests.support.batch_books import MADE, HangUp
from tests.support.batch_dialects import Raw
from tests.support.batch_servers import BatchServers
from tests.support.places import cases

FOUR: tuple[ProviderName, ...] = ("openai", "claude", "gemini", "grok")
T = TypeVar("T")
QUICK = RetryPolicy(attempts=3, read_seconds=20, backoff_seconds=0.01, connect_seconds=5)
NAMED = [provider for provider in FOUR if provider != "claude"]

four = pytest.mark.parametrize("provider", FOUR)


@pytest.fixture
def servers() -> Iterator[BatchServers]:
    with BatchServers() as running:
        yield running


def known(provider: ProviderName) -> BatchApi:
    api = get_provider(provider).api().batches.api
    assert api is not None
    return api


def items_of(provider: ProviderName, *ids: str, model: str = "") -> list[BatchItem]:
    api = get_provider(provider).api()
    asked = model or api.model
    return [BatchItem(each, api.request(asked, "Cite.", f"Is {each} true? 本当?", AskOptions())) for each in ids]


def talk(servers: BatchServers, provider: ProviderName, say: Callable[[BatchApi, ApiClient], Awaitable[T]]) -> T:
    """What comes of a talk with one provider."""

    async def all_of_it() -> T:
        endpoint = get_provider(provider).endpoint(servers.base_url(provider), "sk-batches-0123456789")
        async with ApiClient(endpoint, QUICK) as client:
            return await say(known(provider), client)

    return asyncio.run(all_of_it())


def submit(servers: BatchServers, provider: ProviderName, name: str, *ids: str) -> BatchState:
    return talk(servers, provider, lambda api, client: api.submit(client, name, items_of(provider, *ids)))


def look(servers: BatchServers, provider: ProviderName, batch_id: str) -> BatchState:
    return talk(servers, provider, lambda api, client: api.look(client, batch_id))


def listed(servers: BatchServers, provider: ProviderName) -> list[BatchState]:
    async def all_of_them(api: BatchApi, client: ApiClient) -> list[BatchState]:
        return [state async for state in api.listed(client)]

    return talk(servers, provider, all_of_them)


def collected(servers: BatchServers, provider: ProviderName, state: BatchState) -> dict[str, BatchResult]:
    async def all_of_them(api: BatchApi, client: ApiClient) -> list[BatchResult]:
        return [result async for result in api.results(client, state)]

    results = talk(servers, provider, all_of_them)
    assert len({result.custom_id for result in results}) == len(results)
    return {result.custom_id: result for result in results}


def finished(servers: BatchServers, provider: ProviderName, *ids: str) -> BatchState:
    """The state of a batch of these that has ended."""
    return look(servers, provider, submit(servers, provider, "run-1", *ids).batch_id)


def outcomes(results: dict[str, BatchResult]) -> dict[str, str]:
    return {custom_id: result.outcome for custom_id, result in results.items()}


@four
def test_a_batch_works_ends_and_gives_every_answer_under_its_id(servers: BatchServers, provider: ProviderName) -> None:
    servers.looks = 1
    made = submit(servers, provider, "run-1", "a1", "a2", "a3")
    working = look(servers, provider, made.batch_id)
    ended = look(servers, provider, made.batch_id)
    results = collected(servers, provider, ended)
    assert (made.status, working.status, ended.status) == ("working", "working", "ended")
    assert (made.name, ended.done, ended.failed, ended.total) == ("run-1", 3, 0, 3)
    assert made.total == 3 or provider != "grok"
    assert ended.created.startswith(f"{MADE:%Y-%m-%d}")
    assert outcomes(results) == {"a1": "answered", "a2": "answered", "a3": "answered"}
    assert {read_payload(provider, result.text).text[:6] for result in results.values()} == {"Answer"}


@four
def test_a_batch_is_sent_as_wanted_and_answers_keep_their_bytes(servers: BatchServers, provider: ProviderName) -> None:
    submit(servers, provider, "run-1", "a1", "a2")
    bodies = {item.custom_id: item.request.body for item in items_of(provider, "a1", "a2")}
    lines = [{"custom_id": n, "method": "POST", "url": "/v1/responses", "body": body} for n, body in bodies.items()]
    keyed = [{"key": name, "request": body} for name, body in bodies.items()]
    of_openai = {"input_file_id": "file-0001", "endpoint": "/v1/responses", "completion_window": "24h"}
    of_gemini = {"batch": {"displayName": "run-1", "inputConfig": {"fileName": "files/f0001"}}}
    wanted: dict[str, tuple[str, list[Any], str, Any]] = {
        "openai": ("file-0001", lines, "/batches", {**of_openai, "metadata": {"name": "run-1"}}),
        "claude": (
            "",
            [],
            "/v1/messages/batches",
            {"requests": [{"custom_id": name, "params": body} for name, body in bodies.items()]},
        ),
        "gemini": (
            "files/f0001",
            keyed,
            items_of("gemini", "a1")[0].request.path[:-15] + "batchGenerateContent",
            of_gemini,
        ),
        "grok": ("file-0001", lines, "/batches", {"name": "run-1", "input_file_id": "file-0001"}),
    }
    file, written, path, body = wanted[provider]
    assert [json.loads(line) for line in servers.files[file][1].splitlines()] == written if file else not servers.files
    assert [call.body for call in servers.calls_to(provider, path)] == [body]
    odd = '{ "n" : 1.50, "text":"\\u672c \\ud83d\\ude80 </script>",\t"deep": [{"body": 2, "response":{}}], "e":1E5 }'
    servers.answer = lambda *_: odd
    assert collected(servers, provider, finished(servers, provider, "a1"))["a1"] == BatchResult(
        "a1", "answered", 200, odd
    )


@four
def test_a_failed_request_has_its_error_and_expired_ones_none(servers: BatchServers, provider: ProviderName) -> None:
    servers.outcome = lambda _, custom_id: "failed" if custom_id == "a2" else "answered"
    state = finished(servers, provider, "a1", "a2")
    result = collected(servers, provider, state)["a2"]
    error = unreadable_error(result.text, result.status)
    assert (state.status, state.done, state.failed) == ("ended", 1, 1)
    assert (result.outcome, result.status, error.kind) == ("failed", 400, "bad_response")
    assert "invalid" in str(error) or "Not answered" in str(error)
    servers.outcome = lambda _, custom_id: "expired" if custom_id == "a2" else "answered"
    state = finished(servers, provider, "a1", "a2")
    results = outcomes(collected(servers, provider, state))
    assert state.status == "expired"
    # Google gives nothing of a batch that expired, and xAI only what was answered.
    expected = {
        "openai": {"a1": "answered", "a2": "expired"},
        "claude": {"a1": "answered", "a2": "expired"},
        "gemini": {},
        "grok": {"a1": "answered"},
    }
    assert results == expected[provider]


NOW = datetime.now(UTC)
TOLD = {"batch_id": "b1", "cancel_time": "2026-11-23", "cancel_by_xai_message": "Too slow."}
COUNTS = {"num_requests": 2, "num_pending": 0, "num_success": 1, "num_cancelled": 1}


def pending(expires: str) -> dict[str, Any]:
    return {"batch_id": "b1", "expire_time": expires, "state": {"num_pending": 2}}


@pytest.mark.parametrize(
    ("provider", "told", "known_of_it"),
    [
        ("openai", {"id": "b1", "status": "in_progress", "created_at": 1_790_000_000_000}, ("working", 0, 0, "")),
        ("gemini", {"name": "batches/b1", "metadata": {"state": "BATCH_STATE_SUCCEEDED"}}, ("working", 0, 0, "")),
        pytest.param("grok", pending(f"{NOW:%Y-%m-%d}"), ("working", 0, 0, ""), id="works until the day is over"),
        ("grok", pending(f"{NOW - timedelta(days=2):%Y-%m-%d}"), ("expired", 0, 0, "")),
        ("grok", pending((NOW - timedelta(minutes=1)).isoformat()), ("expired", 0, 0, "")),
        pytest.param("grok", {**TOLD, "state": COUNTS}, ("cancelled", 1, 1, "Too slow."), id="ended by xAI"),
        ("grok", {**TOLD, "state": dict.fromkeys(COUNTS, 0)}, ("failed", 0, 0, "Too slow.")),
    ],
)
def test_a_state_is_read_by_what_it_means(
    servers: BatchServers, provider: ProviderName, told: Any, known_of_it: tuple[str, int, int, str]
) -> None:
    servers.instead = lambda asked: told
    state = look(servers, provider, "batches/b1" if provider == "gemini" else "b1")
    assert (state.status, state.done, state.failed, state.reason) == known_of_it
    assert not state.created


@four
def test_a_batch_ends_without_answers_if_cancelled_and_only_once(servers: BatchServers, provider: ProviderName) -> None:
    state = finished(servers, provider, "a1")
    with pytest.raises(ProviderError, match="has ended and cannot be cancelled"):
        talk(servers, provider, lambda api, client: api.cancel(client, state.batch_id))
    servers.looks = 5
    made = submit(servers, provider, "run-1", "a1", "a2")
    talk(servers, provider, lambda api, client: api.cancel(client, made.batch_id))
    state = look(servers, provider, made.batch_id)
    assert state.status == "cancelled"
    assert set(outcomes(collected(servers, provider, state)).values()) <= {"cancelled"}


@four
def test_a_lost_creation_is_found_and_a_nameless_one_in_doubt(servers: BatchServers, provider: ProviderName) -> None:
    servers.void[provider] = 1
    with pytest.raises(ProviderError) as caught:
        submit(servers, provider, "run-1", "a1", "a2")
    (found,) = listed(servers, provider)
    assert caught.value.is_lost
    assert (set(servers.accepted.values()), found.name) == ({1}, "run-1" if known(provider).is_named else "")
    assert set(collected(servers, provider, look(servers, provider, found.batch_id))) == {"a1", "a2"}
    servers.instead = lambda asked: {"odd": 1} if "batch" in asked.path else None
    with pytest.raises(ProviderError, match="names no batch") as caught:
        submit(servers, provider, "run-1", "a1")
    assert caught.value.is_lost


@four
@pytest.mark.parametrize(("status", "is_lost"), [(400, False), (429, False), (503, True)])
def test_a_creation_that_is_refused_made_nothing_and_only_a_broken_server_leaves_a_doubt(
    servers: BatchServers, provider: ProviderName, status: int, is_lost: bool
) -> None:
    servers.refusals[provider] = [(status, "Not now.")]
    with pytest.raises(ProviderError) as caught:
        submit(servers, provider, "run-1", "a1")
    assert (caught.value.status, caught.value.is_lost, caught.value.attempts) == (status, is_lost, 1)
    assert not servers.batches


@pytest.mark.parametrize("provider", NAMED)
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_file_that_cannot_be_uploaded_leaves_no_doubt_of_a_batch(
    servers: BatchServers, provider: ProviderName, is_cut: bool
) -> None:
    half = Raw('{"id": "file-0001", "file": {"name": "files/f0001"}}')
    servers.instead = lambda _: half if is_cut else HangUp()
    servers.cuts[provider] = QUICK.attempts * is_cut
    with pytest.raises(ProviderError) as caught:
        submit(servers, provider, "run-1", "a1")
    assert (caught.value.kind, caught.value.is_lost, caught.value.attempts) == ("network", False, QUICK.attempts)
    assert not servers.batches


def test_a_creation_that_was_not_sent_made_nothing(servers: BatchServers) -> None:
    servers.refusals["claude"] = [(401, "The key is wrong.")]

    async def twice(api: BatchApi, client: ApiClient) -> list[ProviderError]:
        failures = []
        for name in ("run-1", "run-2"):
            with pytest.raises(ProviderError) as caught:
                await api.submit(client, name, items_of("claude", "a1"))
            failures.append(caught.value)
        return failures

    async def too_early(api: BatchApi, client: ApiClient) -> list[ProviderError]:
        client.gate.close(ProviderError("Too early.", "rate_limit"))
        return (await twice(api, client))[:1]

    shut, early = talk(servers, "claude", twice), talk(servers, "claude", too_early)
    assert [(failure.attempts, failure.is_lost) for failure in (*shut, *early)] == [(1, False), (0, False), (0, False)]
    assert len(servers.calls) == 1


@four
def test_a_list_is_read_to_its_end_and_circles_are_an_error(servers: BatchServers, provider: ProviderName) -> None:
    made = [submit(servers, provider, f"run-{number}", f"a{number}").batch_id for number in range(5)]
    assert sorted(state.batch_id for state in listed(servers, provider)) == sorted(made)
    one = {"id": "b1", "name": "batches/b1", "batch_id": "b1"}
    following = {"has_more": True, "last_id": "b1", "nextPageToken": "b1", "pagination_token": "b1"}
    servers.instead = lambda _: {"data": [one], "operations": [one], "batches": [one], **following}
    with pytest.raises(ProviderError, match="repeats its pages"):
        listed(servers, provider)


@pytest.mark.parametrize("provider", NAMED)
def test_a_refused_file_fails_the_whole_batch_with_its_reason(servers: BatchServers, provider: ProviderName) -> None:
    servers.most[provider] = 1
    state = look(servers, provider, submit(servers, provider, "run-1", "a1", "a2").batch_id)
    assert (state.status, state.done) == ("failed", 0)
    assert "at most 1 are allowed" in state.reason


@four
@pytest.mark.parametrize("wrong", ["../files", "a/b", "", "x?y", None])
def test_an_id_not_fit_for_a_path_is_not_sent(servers: BatchServers, provider: ProviderName, wrong: str | None) -> None:
    servers.instead = lambda _: {"id": wrong, "batch_id": wrong, "file": {"name": wrong}}
    with pytest.raises(ProviderError, match=r"names no (file|batch) that can be asked for"):
        submit(servers, provider, "run-1", "a1")


@pytest.mark.parametrize("provider", ["openai", "claude", "gemini"])
def test_results_that_break_off_give_what_came_and_an_error(servers: BatchServers, provider: ProviderName) -> None:
    state = finished(servers, provider, *(f"a{number:03}" for number in range(200)))
    servers.cuts[provider] = 1
    seen: list[BatchResult] = []

    async def collect(api: BatchApi, client: ApiClient) -> None:
        async for result in api.results(client, state):
            seen.append(result)

    with pytest.raises(ProviderError, match=r"broke|closed") as caught:
        talk(servers, provider, collect)
    assert caught.value.kind == "network"
    assert 50 < len(seen) < 150
    assert ({result.outcome for result in seen}, len(collected(servers, provider, state))) == ({"answered"}, 200)


@four
@pytest.mark.parametrize("line", ["not JSON", '{"custom_id": 7}', "[]", '{"n": NaN}'])
def test_a_result_that_cannot_be_read_is_kept_for_it_may_have_to_be_paid(
    servers: BatchServers, provider: ProviderName, line: str
) -> None:
    state = finished(servers, provider, "a1")
    line = json.dumps({"odd": line}) if provider == "grok" else line
    whole = f'{{"results": [{line}], "pagination_token": null}}' if provider == "grok" else f"{line}\n"
    servers.instead = lambda _: Raw(whole)
    assert collected(servers, provider, state) == {"": BatchResult("", "answered", 200, line)}


def test_claude_is_told_the_headers_that_its_requests_need(servers: BatchServers) -> None:
    (item,) = items_of("claude", "a1")
    newer = item._replace(request=item.request._replace(headers={**item.request.headers, "anthropic-beta": "new"}))
    talk(servers, "claude", lambda api, client: api.submit(client, "run-1", [newer]))
    assert servers.calls[0].headers["anthropic-beta"] == "new"


@pytest.mark.parametrize(("provider", "text", "result"), cases("batches")["ended"])
def test_words_of_an_end_without_an_answer_are_kept(
    servers: BatchServers, provider: ProviderName, text: str, result: list[Any]
) -> None:
    servers.instead = lambda _: Raw(text)
    state = BatchState("batches/b1", "run-1", "ended", 0, 1, 1, "", ("files/f1",))
    assert collected(servers, provider, state) == {"a1": BatchResult("a1", *result)}


@four
def test_items_that_make_no_batch_are_refused_before_sending(servers: BatchServers, provider: ProviderName) -> None:
    def refused(items: list[BatchItem], words: str) -> None:
        with pytest.raises(InputError, match=words):
            talk(servers, provider, lambda api, client: api.submit(client, "run-1", items))

    good = items_of(provider, "a1", "a2")
    elsewhere = ProviderRequest("/v1/elsewhere", {}, {"model": "m"})
    refused([], "holds 1 to 10000 questions, not 0")
    refused([good[0], good[0]], "same id")
    refused([good[0]._replace(custom_id="a 1")], "'a 1' cannot be the id")
    refused([good[0], BatchItem("a9", elsewhere)], "One batch cannot ask at both")
    refused([BatchItem("a9", elsewhere)], "/v1/elsewhere cannot be sent in a batch")
    assert not servers.calls


def test_items_are_split_by_number_and_by_size() -> None:
    items = items_of("claude", *(f"a{number}" for number in range(5)))
    by_number = [len(part) for part in split_items(items, BatchLimits(2, 10**6))]
    by_size = [len(part) for part in split_items(items, BatchLimits(10, 2000))]
    assert (by_number, sum(by_size)) == ([2, 2, 1], 5)
    assert max(by_size) < 5
    assert not list(split_items([], BatchLimits(2, 10**6)))
    with pytest.raises(InputError, match=r"a0 has .* bytes; a batch holds 100"):
        list(split_items(items, BatchLimits(2, 100)))


def test_every_provider_says_with_a_source_and_a_date_who_can_search_in_a_batch_and_so_is_a_doubt() -> None:
    known = {(provider.name, api.name): api.batches for provider in every_provider() for api in provider.apis}
    assert all(each.source.startswith("https://") and each.read >= "2026-11" for each in known.values())
    assert [name for name in PROVIDERS if get_provider(name).api().batches.api] == list(FOUR)
    alone = {name for name, batches in known.items() if not batches.api}
    assert alone == {("openai", "chat"), ("openai", "openrouter"), ("gemini", "interactions"), ("perplexity", "agent")}
    assert known["claude", "web_search_20260318"] is known["claude", "web_search_20250305"]
    assert get_provider("openai").api("openrouter").batches.refusal() == (
        "cannot be asked in a batch: its batches do not search the web "
        "(https://openrouter.ai/docs/guides/features/batch-api, read 2026-11)"
    )
    assert not any(get_provider(provider).api().batches.refusal() for provider in FOUR)
    doubts = {provider.name: provider.api().batches.doubt() for provider in every_provider()}
    assert doubts["openai"].startswith("OpenAI's documentation does not say whether batches can search the web; ")
    assert [name for name, doubt in doubts.items() if doubt] == ["openai", "gemini"]
