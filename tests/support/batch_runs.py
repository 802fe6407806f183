"""Runs in batches against the loopback servers: narratives, a selection, and bodies by narrative."""

import csv
import json
import os
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.asking.ask_live import ask_in_batches, select_providers
from pipeline.asking.batch_calls import BatchPolicy
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import NO_LIMITS, Limits, ProviderSelection
from pipeline.asking.run_folder import RunManifest
from pipeline.core.schema import AskOptions, ProviderName
from pipeline.providers import get_provider, provider_name
from tests.support.batch_books import good_answer
from tests.support.batch_servers import BatchServers
from tests.support.provider_server import claude_body

QUICK = BatchPolicy(poll_seconds=0.05, settle_seconds=0.3)
IN_BATCHES: tuple[ProviderName, ...] = ("openai", "claude", "gemini", "grok")
_NARRATIVE = re.compile(r"The claim (N\d+)\.")


def write_narratives(folder: Path, count: int) -> Path:
    path = folder / "narratives.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = ((f"N{number}", f"The claim N{number}. „wahr“ 本当") for number in range(count))
        csv.writer(file).writerows([("narrative_id", "prompt"), *rows])
    return path


def environment(server: BatchServers, *providers: str, **more: str) -> dict[str, str]:
    """The environment in which the command finds the servers and keys for these providers."""
    urls = {provider: server.base_url(provider) for provider in IN_BATCHES}
    keys = {get_provider(provider_name(each)).key_variables[0]: f"planted-{each}-0123456789" for each in providers}
    return {"CITEJURY_BASE_URLS": json.dumps(urls), **keys, **more}


def selection(server: BatchServers, *providers: ProviderName) -> ProviderSelection:
    keys = environment(server, *providers)
    urls = {provider: server.base_url(provider) for provider in IN_BATCHES}
    return select_providers(providers, {}, AskOptions(), keys, urls)


def run_batches(
    server: BatchServers,
    narratives: Path,
    out: Path,
    *providers: ProviderName,
    policy: BatchPolicy = QUICK,
    limits: Limits = NO_LIMITS,
    told: list[str] | None = None,
    **more: Any,
) -> RunManifest:
    """One start of `ask --batch`; what it tells is added to `told`."""
    chosen = selection(server, *providers)
    questions = chosen.questions(NarrativesCsv(narratives))
    lines = [] if told is None else told
    more.setdefault("tell", lines.append)
    return ask_in_batches(questions, out, chosen, policy=policy, limits=limits, redirect_client=None, **more)


def stop_at(words: str) -> Callable[[str], None]:
    """A listener that sends SIGINT at the first line with these words."""

    def tell(line: str) -> None:
        if words in line:
            os.kill(os.getpid(), signal.SIGINT)

    return tell


def narrative_of(body: Mapping[str, Any]) -> str:
    found = _NARRATIVE.search(json.dumps(body))
    assert found
    return found[1]


def body_by_narrative(provider: str, custom_id: str, body: Mapping[str, Any]) -> Any:
    """An answer that the narrative alone decides, so that a replay can have the same; Claude pauses over every third.

    The second request of such a turn, which has the first's content, is answered to the end.
    """
    narrative = narrative_of(body)
    if provider == "claude" and int(narrative[1:]) % 3 == 0:
        return claude_body(int(narrative[1:]), "end_turn" if len(body["messages"]) > 1 else "pause_turn")
    return good_answer(provider, narrative, body)


def write_payloads(folder: Path, count: int) -> Path:
    """What `body_by_narrative` answers, as payloads for a replay."""
    for provider in IN_BATCHES:
        (folder / provider).mkdir(parents=True)
        for number in range(count):
            request: dict[str, Any] = {"messages": [{"content": f"The claim N{number}."}]}
            bodies = [body_by_narrative(provider, "", request)]
            if bodies[0].get("stop_reason") == "pause_turn":
                more = {"messages": [*request["messages"], {"role": "assistant"}]}
                bodies.append(body_by_narrative(provider, "", more))
            texts = [json.dumps(body, ensure_ascii=False) for body in bodies]
            text = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"
            (folder / provider / f"N{number}.json").write_text(text, encoding="utf-8")
    return folder


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV without the ids and times, which every run has of its own."""
    csv.field_size_limit(2**31 - 1)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["source_id"] = row["source_id"].replace(row["answer_id"], "")
    return [{name: cell for name, cell in row.items() if name not in ("answer_id", "answer_timestamp")} for row in rows]
