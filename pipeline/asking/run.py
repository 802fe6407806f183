"""A run: every narrative put to every provider, and what comes back written down before the next call.

Source: pipeline/contracts/run_folder.md#resuming.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from pipeline.asking import paid_replies, run_folder
from pipeline.asking import questions as asking
from pipeline.asking.index import append_indexed, read_index
from pipeline.asking.run_state import RunState, Settled
from pipeline.asking.summary import summarise_run
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import append_line, locked_folder, time_now
from pipeline.core.prompts import text_digest
from pipeline.core.schema import PROVIDERS, Answer, ErrorLine, Price, ProviderName, StoredAnswer
from pipeline.core.terminal import printable, run_together
from pipeline.csv.file import answers_file, error_bytes
from pipeline.csv.rows import answer_problems
from pipeline.providers import get_provider, read_body
from pipeline.providers.cost import Usage, batch_price, cost_of, price_advice, price_of
from pipeline.providers.http.failure import unreadable_error
from pipeline.providers.http.request import load_body


async def ask_narratives(
    questions: asking.Questions,
    out: Path,
    source: asking.AnswerSource,
    report: asking.Report = lambda call, total: None,
    tell: asking.Tell = lambda line: None,
    limits: asking.Limits = asking.NO_LIMITS,
) -> run_folder.RunManifest:
    """Put the questions to the source, and give the manifest of the run in `out`.

    Calls answered earlier are not put again; what failed earlier is. `report` hears of every call when it is settled.
    SIGINT, SIGTERM and the known cost stop the run in good order: the manifest says so, and the same questions asked
    again go on.

    Raises: OutputError where the folder holds something else, or is in use; InputError where its answers are to other
    narratives or of another model, batches hold some of the calls, or nothing at all was answered.
    """

    async def settle(run: run_folder.OpenRun, state: RunState) -> None:
        await _ask_all(run, source, state, report, tell)

    return await settle_run(questions, out, settle, limits, source.stop, tell, one_by_one=True)


async def settle_run(
    questions: asking.Questions,
    out: Path,
    settle: Callable[[run_folder.OpenRun, RunState], Awaitable[None]],
    limits: asking.Limits = asking.NO_LIMITS,
    stop_waiting: Callable[[], int] = lambda: 0,
    tell: asking.Tell = lambda line: None,
    one_by_one: bool = False,
) -> run_folder.RunManifest:
    """Open the run in the folder, let `settle` write down what becomes of its calls, and give the run's manifest.

    `settle` records each settled call in the state; `tell` hears what takes long. Calls that are put `one_by_one` are
    none that a batch holds. Errors as `ask_narratives`.
    """
    with locked_folder(out):
        if one_by_one:
            paid_replies.refuse_open_batches(out, questions.providers)
        run = run_folder.open_run(out, questions, limits.compress, tell)
        standing = run_folder.standing_errors(run_folder.read_errors(out), questions)
        run_folder.write_errors(out, standing)
        state = RunState(limits, stop_waiting=stop_waiting)
        options = [arm.options or questions.options for arm in questions.asked_arms()]
        state.longest = max(each.max_tokens if each else 0 for each in options)
        _count_earlier(run, state)
        try:
            await settle(run, state)
        except OSError:
            if questions.options:  # nobody is paid for a stored payload
                tell(f"Spent since this start: about {state.spending.now:.2f} USD, as far as that is known.")
            raise
        manifest = _finish_run(run, state, [*standing, *state.errors])
    if not manifest.answers and not manifest.stopped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        unpriced = sum(each.unpriced for each in manifest.providers.values())
        replies = "1 reply" if unpriced == 1 else f"{unpriced} replies"
        unknown = f"; that of {replies} that cannot be read is not known" if unpriced else ""
        raise InputError(
            f"Nothing was answered ({kinds}); the reasons are in `{run_folder.ERRORS}` in {str(out)!r}. "
            f"Known cost: {manifest.cost:.2f} USD{unknown}.\n  " + "\n  ".join(missing_rows(manifest, out))
        )
    return manifest


async def _ask_all(
    run: run_folder.OpenRun, source: asking.AnswerSource, state: RunState, report: asking.Report, tell: asking.Tell
) -> None:
    """Settle every call that is not answered yet; each provider has as many under way as the limits say."""
    shared = [run.questions.calls(run.manifest.run_id, provider) for provider in run.questions.providers]
    desk = _Desk(
        run, source, state, paid_replies.BadResponses(run.out), paid_replies.PausedTurns(run.out), report, set()
    )
    workers = (desk.work(calls) for calls in shared for _ in range(state.limits.concurrency))
    await run_together(state.tasks, workers, partial(state.stop, tell=tell))
    for calls in shared:  # what a stop has left over
        state.kept += sum(call.answer_id in run.answered[call.provider] for call in calls)
    kept = {each for each in desk.paused.places if any(each in ids for ids in run.answered.values())}
    desk.paused.forget(kept | desk.ended)
    for line in desk.paused.told_anew():
        tell(line)
    for provider in sorted(state.spending.refused):
        state.priceless[provider] = models = tuple(sorted(state.spending.unknown[provider]))
        tell(
            f"{provider}: what a reply cost is not known, so `--max-cost` cannot be held; it is asked no further. What "
            f"is missing is a price, for the reply states no cost: write it into {price_advice(*models)}"
        )


class _Desk(NamedTuple):
    """Where the calls of a run are settled, by several workers."""

    run: run_folder.OpenRun
    source: asking.AnswerSource
    state: RunState
    unread: paid_replies.BadResponses
    paused: paid_replies.PausedTurns
    report: asking.Report
    ended: set[str]

    async def work(self, calls: Iterator[asking.Call]) -> None:
        run, state, total = self.run, self.state, self.run.questions.calls_each()
        for call in calls:
            if call.answer_id in run.answered[call.provider]:
                state.kept += 1
            elif old := settle_unread(run, call, self.unread, state.limits):
                state.record(call, old)
            else:
                async with state.starting(call) as may:
                    if not may:
                        return
                    state.record(call, await self.answer(call))
            self.report(call, total)
            await asyncio.sleep(0)  # a stored payload is never waited for, and a signal is to be heard all the same

    async def answer(self, call: asking.Call) -> Settled:
        """Append a call's answer or error to the folder; cancelled in between it writes nothing but paused bodies."""
        out, requested = self.run.out, time_now()

        def keep(digest: str, body: str) -> None:
            line = paid_replies.PausedLine(
                answer_id=call.answer_id, batch="", text=body, digest=digest, model=call.model
            )
            if kept := self.paused.keep(line):
                self.state.record_paused(kept)

        try:
            reply = await self.source.answer(call, asking.Turn(partial(self.paused.bodies, call.answer_id), keep))
        except ProviderError as failure:
            return store_failure(out, call, None, failure, requested)
        self.paused.give_up(call.answer_id)
        settled = store_reply(out, call, reply, requested)
        if settled.answer and call.answer_id in self.paused.places:
            self.ended.add(call.answer_id)
        return settled


def settle_unread(
    run: run_folder.OpenRun, call: asking.Call, unread: paid_replies.BadResponses, limits: asking.Limits
) -> Settled | None:
    """Settle the call by its reply that could not be read, by today's rules; None where there is none to use."""
    if limits.retry_bad or run.questions.options is None:
        return None
    kept = unread.find(call.answer_id)
    if kept is None:
        return None
    settled = store_reply(run.out, call, kept.reply(), kept.timestamp, is_old=True)
    if settled.answer:  # an earlier start has paid for it
        run.answered[call.provider].add(call.answer_id)
    return settled


def store_reply(out: Path, call: asking.Call, reply: asking.Reply, requested: str, is_old: bool = False) -> Settled:
    """Append to the folder the answer that the reply holds, or the error that says why it holds none.

    A success that was paid for and cannot be read is kept with its body, unless it `is_old` and kept already.
    """
    try:
        if reply.fault:
            raise ProviderError(reply.fault)
        if reply.status is not None and reply.status >= 400:
            raise unreadable_error(reply.text, reply.status)
        body = load_body(reply.text)
        answer = read_body(call.provider, body)
        stored = _stored_answer(call, reply, answer, requested)
        for column, found, wanted in answer_problems(stored):
            raise ProviderError(f"No row of CSV v2 can hold the answer: {column}: found {found}, wanted {wanted}.")
    except ProviderError as failure:
        is_unread = reply.is_paid and failure.kind == "bad_response" and (reply.status or 200) < 400
        bad = paid_replies.BadResponse.of(call, reply, requested)
        if is_unread and not is_old:
            append_line(out / paid_replies.BAD_RESPONSES, bad.model_dump_json())
        settled = store_failure(out, call, reply, failure, requested)
        usage = bad.usage() if is_unread else Usage()
        return settled._replace(usage=usage, is_unread=is_unread, is_old=is_old, model=reply.model)
    usage_of = get_provider(call.provider).usage
    usage = usage_of(body)
    append_indexed(answers_file(out, call.provider), stored, answer, usage)
    paused = tuple(usage_of(each) for each in body[:-1]) if reply.is_paid and isinstance(body, list) else ()
    return Settled(answer=stored, usage=usage, paused=paused, is_old=is_old)


def store_failure(
    out: Path, call: asking.Call, reply: asking.Reply | None, failure: ProviderError, requested: str
) -> Settled:
    attempts = reply.attempts if reply else failure.attempts
    error = ErrorLine(
        narrative_id=call.narrative.narrative_id,
        row=call.row,
        provider=call.provider,
        model=call.model or (reply.model if reply else ""),
        kind=failure.kind,
        status=reply.status if reply else failure.status,
        message=str(failure),
        attempts=0 if failure.kind in ("not_recorded", "missing_key") else attempts,
        timestamp=requested,
        repeat=call.repeat,
        arm=call.arm,
    )
    with open(out / run_folder.ERRORS, "ab") as file:
        file.write(error_bytes(error))
    return Settled(error=error, is_lost=failure.is_lost)


def _stored_answer(call: asking.Call, reply: asking.Reply, answer: Answer, timestamp: str) -> StoredAnswer:
    return StoredAnswer(
        narrative_id=call.narrative.narrative_id,
        narrative_type=call.narrative.narrative_type,
        narrative_prompt=call.narrative.prompt,
        model_name=call.provider,
        model_version=answer.model.strip() or call.model or reply.model or "unknown",
        answer_id=call.answer_id,
        answer_prompt=call.prompt,
        answer_text=answer.text,
        answer_raw_json=reply.text.removeprefix("\ufeff"),
        answer_timestamp=timestamp,
        citations=answer.citations,
        domains=answer.domains,
        search_results=answer.search_results,
    )


def _count_earlier(run: run_folder.OpenRun, state: RunState) -> None:
    """Count under a limit what all replies in the folder cost; unknown costs come last, as the dearest at the least."""
    if state.limits.max_cost is None:
        return
    prices, shares = state.limits.prices, paid_replies.token_shares(run.out)
    unknown: Counter[tuple[ProviderName, float | None, str]] = Counter()

    def count(provider: ProviderName, model: str, usage: Usage, price: Price | None) -> None:
        cost = cost_of(usage, price)
        if cost is None:
            unknown[provider, state.most(price), model] += 1
        else:
            state.spending.pay(provider, cost)

    for provider in PROVIDERS:
        for line in read_index(answers_file(run.out, provider)) if run.answered[provider] else ():
            model = run.manifest.model_of(line, provider) or line.model_version
            price = price_of(prices, line.model_version, model)
            count(provider, model, line.usage, batch_price(price, shares.get(line.answer_id)))
    for paid in paid_replies.of_no_answer(run.out):
        count(paid.provider, paid.model, *paid.bill(prices))
    for provider, most, model in unknown.elements():
        state.spending.pay(provider, None, most, model)
    state.spending.earlier = state.spending.spent


def _finish_run(run: run_folder.OpenRun, state: RunState, errors: Sequence[ErrorLine]) -> run_folder.RunManifest:
    in_order = sorted(errors, key=lambda each: (PROVIDERS.index(each.provider), each.row, each.arm, each.repeat))
    run_folder.write_errors(run.out, in_order)
    unsettled = run.questions.calls_each() * len(run.questions.providers) - state.settled
    changes = {
        "finished": None if unsettled else time_now(),
        "stopped": state.stopped or ("max_cost" if state.spending.refused else "") if unsettled else "",
        "unsettled": unsettled,
    }
    manifest = summarise_run(run, errors, state.limits.prices, state.last_start()).model_copy(update=changes)
    run_folder.write_manifest(run.out, manifest)
    return manifest


def missing_rows(manifest: run_folder.RunManifest, out: Path) -> list[str]:
    """A table of the calls that the last start left without an answer: provider, kind, how many, the first one's words.

    Safe for a terminal; a row may have several lines.
    """
    missing = (manifest.last and manifest.last.missing) or {}
    first: dict[tuple[str, str], str] = {}
    for error in run_folder.read_errors(out) if missing else ():
        first.setdefault((error.provider, error.kind), error.message)
    rows = [
        (provider, kind, str(count), printable(first.get((provider, kind), "")))
        for provider, kinds in missing.items()
        for kind, count in kinds.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        f"{provider:<{widths[0]}}  {kind:<{widths[1]}}  {count:>{widths[2]}}  {words}"
        for provider, kind, count, words in rows
    )
    indent = " " * (sum(widths[:3]) + 6)
    return [fill(line, 100, subsequent_indent=indent, break_on_hyphens=False) for line in lines]


class RecordedAnswers(NamedTuple):
    """A folder of stored payloads as a source of answers; every repeat of a row has the same one."""

    folder: Path

    async def answer(self, call: asking.Call, turn: asking.Turn = asking.NEW_TURN) -> asking.Reply:
        """The stored payload of a call, which is a whole turn, with the status and the model that its sidecar names."""
        stem = _file_stem(call)
        for name in _provider_folders(call.provider):
            for ending in (".json", ".txt", ".html"):  # providers also send errors as plain text or a page
                path = self.folder / call.arm / name / (stem + ending)
                if path.is_file():
                    sidecar = _read_sidecar(path.with_name(f"{stem}.meta.json"))
                    words = str(sidecar.get("status", ""))  # such as `200*` or `HTTP 429`
                    status = re.search(r"\b[1-5]\d\d\b", words, re.ASCII)
                    request = sidecar.get("request_body")
                    model = request.get("model") if isinstance(request, dict) else None
                    return asking.Reply(
                        _read_body(path), int(status[0]) if status else None, model if isinstance(model, str) else ""
                    )
        place = "/".join(part for part in (call.arm, call.provider, stem) if part)
        raise ProviderError(f"There is no payload `{place}.json` in the replay folder.", "not_recorded")

    def stop(self) -> int:
        return 0


async def changed_payloads(questions: asking.Questions, out: Path, source: RecordedAnswers) -> list[str]:
    """The answers whose stored payload is another one by now, each as its place; one that is gone has not changed."""
    manifest = run_folder.read_manifest(out)
    if manifest.last and not manifest.last.kept:
        return []
    changed = []
    for provider in questions.providers:
        if not answers_file(out, provider).is_file():
            continue
        calls = {call.answer_id: call for call in questions.calls(manifest.run_id, provider)}
        for line in read_index(answers_file(out, provider)):
            call = calls.get(line.answer_id)
            with suppress(ProviderError):
                if call and text_digest((await source.answer(call)).text) != line.body:
                    changed.append("/".join(part for part in (call.arm, provider, _file_stem(call)) if part))
    return list(dict.fromkeys(changed))


def _provider_folders(provider: ProviderName) -> list[str]:
    return [provider, *get_provider(provider).aliases]


def recorded_providers(folder: Path, arms: Sequence[str] = ()) -> list[ProviderName]:
    """The providers that have a folder of payloads, in the fixed order; with arms, in the folder of one of them."""
    if not folder.is_dir():
        raise InputError(
            f"There is no folder {str(folder)!r}; `--replay` wants one with `<provider>/<narrative_id>.json`."
        )
    tops = [folder / arm for arm in arms] or [folder]
    found = [
        name for name in PROVIDERS if any((top / each).is_dir() for top in tops for each in _provider_folders(name))
    ]
    if not found:
        within = " in a folder of an arm's name" if arms else ""
        raise InputError(f"{str(folder)!r} has no folder of a provider{within}; the names are {', '.join(PROVIDERS)}.")
    return found


def _file_stem(call: asking.Call) -> str:
    name = call.narrative.narrative_id
    plain = name not in ("", ".", "..") and not any(char in "/\\:" or ord(char) < 32 for char in name)
    # The longest name that common file systems take, less the longest ending and `.2`.
    if not plain or len(name.encode("utf-8", "surrogatepass")) > 230:
        raise ProviderError(f"The id {name[:60]!r} is no plain file name, so no payload is looked for.", "not_recorded")
    return name if call.occurrence == 1 else f"{name}.{call.occurrence}"


def _read_body(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProviderError(f"The payload `{path.name}` is not UTF-8 (byte {error.start}).") from error
    except OSError as error:
        raise ProviderError(f"The payload `{path.name}` cannot be read: {error.strerror}.", "not_recorded") from error


def _read_sidecar(path: Path) -> dict[str, Any]:
    try:
        sidecar = json.loads(_read_body(path)) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ProviderError(f"The sidecar `{path.name}` is not JSON; mend or remove it.") from error
    if not isinstance(sidecar, dict):
        raise ProviderError(f"The sidecar `{path.name}` is not a JSON object; mend or remove it.")
    return sidecar
