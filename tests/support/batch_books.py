"""What the loopback servers of batches hold: their files, their batches, and what they are told to do wrong."""

import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.support.provider_server import GOOD_BODIES, answer_text

# The servers' clock is ahead: no test takes so long that what it makes looks older than its run.
MADE = datetime.now(UTC) + timedelta(minutes=30)
CREATED = f"{MADE:%Y-%m-%dT%H:%M}:{{:02}}+00:00"
CREATED_SECONDS = int(MADE.timestamp())


class Asked(NamedTuple):
    """One request as it came: `path` without the provider and the query."""

    provider: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.raw else None


class HangUp(NamedTuple):
    """No answer: the connection is closed."""


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class Batch:
    """One batch: its requests by their ids, and how far it is; `wrong` is why the provider refused all of it."""

    def __init__(self, number: int, provider: str, name: str, items: dict[str, Any], wrong: str = "") -> None:
        self.number = number
        self.provider = provider
        self.id = f"batches/b{number:04}" if provider == "gemini" else f"batch_{number:04}"
        self.name = name
        self.items = items
        self.wrong = wrong
        self.looks = 0
        self.cancelled = False


def grok_chat(text: str, url: str = "https://a.example/") -> dict[str, Any]:
    """A batch's answer of xAI: a chat completion whose first choices are its tools', and the last its answer."""
    call = {"id": "call_1", "type": "function", "function": {"name": "web_search", "arguments": '{"query": "q"}'}}
    choices = [
        {"index": 0, "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "finish_reason": None},
        {"index": 1, "message": {"role": "tool", "content": "found: A", "tool_calls": [call]}, "finish_reason": None},
        {"index": 2, "message": {"role": "assistant", "content": text, "refusal": None}, "finish_reason": "stop"},
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost_in_usd_ticks": 25_000_000}
    head = {"id": "chat_1", "object": "chat.completion", "created": CREATED_SECONDS, "model": "model-1"}
    return {**head, "choices": choices, "citations": [url], "usage": usage}


def good_answer(provider: str, custom_id: str, body: Any) -> Any:
    number = int.from_bytes(custom_id.encode()[-3:], "big") % 1000
    return grok_chat(answer_text(number)) if provider == "grok" else GOOD_BODIES[provider](number)


class Books:
    """What the four servers hold, and how they are to behave.

    `looks` are the looks at a batch that find it working; then it has ended. `outcome` says of each request whether it
    is `answered`, `failed`, `expired` or `cancelled`, and `answer` gives the body of an answer, or its JSON. The next
    `void[provider]` creations are done and answered by hanging up, the next `refusals[provider]` answered so and not
    done; the next `cuts[provider]` results break off in the middle. What `instead` gives of a request, unless None, is
    answered instead. `page` is the most that any list gives at once, `most` the requests that a batch takes.
    `accepted` counts how often each id was taken.
    """

    def __init__(self, looks: int = 0, page: int = 2) -> None:
        self.looks = looks
        self.page = page
        self.most = dict({"openai": 50_000, "claude": 100_000, "gemini": 50_000, "grok": 50_000})
        self.outcome: Callable[[str, str], str] = lambda provider, custom_id: "answered"
        self.answer: Callable[[str, str, Any], Any] = good_answer
        self.void: Counter[str] = Counter()
        self.cuts: Counter[str] = Counter()
        self.instead: Callable[[Asked], Any] = lambda asked: None
        self.refusals: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.calls: list[Asked] = []
        self.accepted: Counter[tuple[str, str]] = Counter()
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: list[Batch] = []
        self.lock = threading.RLock()

    def of(self, provider: str) -> list[Batch]:
        return [batch for batch in self.batches if batch.provider == provider]

    def calls_to(self, provider: str, path: str, method: str = "POST") -> list[Asked]:
        """The requests to a path, which is a pattern."""
        return [
            call
            for call in self.calls
            if (call.provider, call.method) == (provider, method) and re.fullmatch(path, call.path)
        ]

    def keep(self, provider: str, content: bytes) -> str:
        number = len(self.files) + 1
        name = f"files/f{number:04}" if provider == "gemini" else f"file-{number:04}"
        self.files[name] = (provider, content)
        return name

    def make(self, provider: str, name: str, items: dict[str, Any], wrong: str = "") -> Batch:
        if not wrong and len(items) > self.most[provider]:
            wrong = f"The batch has {len(items)} requests; at most {self.most[provider]} are allowed."
        batch = Batch(len(self.batches) + 1, provider, name, {} if wrong else items, wrong)
        self.batches.append(batch)
        self.accepted.update((provider, custom_id) for custom_id in batch.items)
        return batch

    def find(self, provider: str, batch_id: str) -> Batch:
        for batch in self.of(provider):
            if batch.id == batch_id:
                return batch
        raise Refused(404, f"No batch {batch_id}.")

    def counts(self, batch: Batch) -> Counter[str]:
        if not self.is_done(batch):
            return Counter(working=len(batch.items))
        return Counter(self.outcome_of(batch, custom_id) for custom_id in batch.items)

    def is_done(self, batch: Batch) -> bool:
        return batch.cancelled or bool(batch.wrong) or batch.looks > self.looks

    def outcome_of(self, batch: Batch, custom_id: str) -> str:
        """What became of a request: what is cancelled before the end was not asked."""
        if batch.cancelled and batch.looks <= self.looks:
            return "cancelled"
        return self.outcome(batch.provider, custom_id)

    def look(self, batch: Batch) -> Batch:
        batch.looks += not batch.cancelled
        return batch

    def body_of(self, batch: Batch, custom_id: str) -> str:
        answer = self.answer(batch.provider, custom_id, batch.items[custom_id])
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

    def paged(self, found: list[Any], after: int, limit: int) -> tuple[list[Any], int]:
        """One page of a list, never longer than this server's, and where the next begins, 0 for none."""
        end = after + min(limit, self.page)
        return found[after:end], end if end < len(found) else 0
