"""A loopback server that speaks the five providers' wire formats, and misbehaves call by call when told to."""

import json
import socket
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

JSON = {"content-type": "application/json"}
MB = 1024 * 1024


class Good(NamedTuple):
    """The provider's good answer."""


class Status(NamedTuple):
    """This status with these headers and this body, a text or a value to write as JSON."""

    status: int
    headers: Mapping[str, str] = {}
    body: Any = ""


class Together(NamedTuple):
    """The good answer, held back until so many calls of the provider have been under way at once."""

    calls: int


class Hang(NamedTuple):
    """Nothing at all, until the caller gives up or the server closes."""


class HalfBody(NamedTuple):
    """The head and half of the good answer, then the connection is closed."""


class WrongContentType(NamedTuple):
    """Status 200 and a web page, as a captive portal sends it."""


class SlowDrip(NamedTuple):
    """A byte every few milliseconds, for as long as the caller listens."""


class Redirect(NamedTuple):
    location: str


class Huge(NamedTuple):
    """A JSON body of so many megabytes, compressed to almost nothing if `bomb`."""

    megabytes: int = 50
    bomb: bool = False


Behaviour = Good | Together | Status | Hang | HalfBody | WrongContentType | SlowDrip | Redirect | Huge


class Received(NamedTuple):
    """One request as it came: the path without the provider's prefix, names of headers in lower case, the JSON body."""

    path: str
    headers: dict[str, str]
    body: Any
    provider: str = ""


def answer_text(call: int) -> str:
    return f"Answer {call} — 答え with a source."


def responses_body(call: int) -> dict[str, Any]:
    note = {"type": "url_citation", "url": "https://a.example/", "title": "A", "start_index": 0, "end_index": 6}
    part = {"type": "output_text", "text": answer_text(call), "annotations": [note]}
    message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    head = {"id": f"resp_{call}", "object": "response", "status": "completed", "error": None, "model": "model-1"}
    return {**head, "output": [message], "usage": usage}


def chat_body(call: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer_text(call) + " https://a.example/", "annotations": []}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return {"id": f"chat_{call}", "object": "chat.completion", "model": "model-1", "choices": [choice], "usage": usage}


def claude_body(call: int, stop_reason: str = "end_turn") -> dict[str, Any]:
    citation = {"type": "web_search_result_location", "url": "https://a.example/", "title": "A", "cited_text": "a"}
    block = {"type": "text", "text": answer_text(call), "citations": [citation]}
    usage = {"input_tokens": 10, "output_tokens": 5}
    head = {"id": f"msg_{call}", "type": "message", "role": "assistant", "model": "model-1"}
    return {**head, "content": [block], "stop_reason": stop_reason, "usage": usage}


def gemini_body(call: int) -> dict[str, Any]:
    chunk = {"web": {"uri": "https://a.example/", "title": "a.example"}}
    content = {"role": "model", "parts": [{"text": answer_text(call)}]}
    grounding = {"groundingChunks": [chunk], "groundingSupports": []}
    candidate = {"content": content, "finishReason": "STOP", "groundingMetadata": grounding}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5}
    return {"candidates": [candidate], "modelVersion": "model-1", "usageMetadata": usage}


def perplexity_body(call: int) -> dict[str, Any]:
    body = responses_body(call)
    result = {"id": 1, "title": "A", "url": "https://a.example/", "snippet": "a"}
    body["output"][0]["content"][0] = {"type": "output_text", "text": answer_text(call) + " [1]", "annotations": []}
    return {**body, "output": [{"type": "search_results", "results": [result]}, *body["output"]]}


def interaction_body(call: int) -> dict[str, Any]:
    note = {"type": "url_citation", "url": "https://a.example/", "title": "a.example", "start_index": 0, "end_index": 6}
    output = {"type": "model_output", "content": [{"type": "text", "text": answer_text(call), "annotations": [note]}]}
    search = {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["a", "b"]}}
    usage = {"total_input_tokens": 10, "total_output_tokens": 5}
    head = {"id": f"v1_{call}", "object": "interaction", "status": "completed", "model": "model-1"}
    return {**head, "steps": [search, output], "usage": usage}


GOOD_BODIES: dict[str, Callable[[int], Any]] = {
    "openai": responses_body,
    "claude": claude_body,
    "gemini": gemini_body,
    "grok": responses_body,
    "perplexity": perplexity_body,
}
# Other shapes than the provider's usual one, by how the path ends.
OTHER_BODIES: dict[str, Callable[[int], Any]] = {"/chat/completions": chat_body, "/interactions": interaction_body}
PATH_OWNERS = {
    "/v1/messages": "claude",
    ":generateContent": "gemini",
    "/interactions": "gemini",
    "/v1/agent": "perplexity",
}


class Served:
    """A loopback server as a context, whose handler finds this as `self.server.owner`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.closing = threading.Event()
        self.server = Loopback(("127.0.0.1", 0), handler)
        self.server.owner = self
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def base_url(self, provider: str) -> str:
        return f"{self.url}/{provider}"

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Loopback(ThreadingHTTPServer):
    owner: Any
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who hangs up or is killed is what many of these tests are about."""


class ProviderServer(Served):
    """The server as a context; `script` says how it behaves call by call, for all or by provider, then all is good.

    `base_url(provider)` tells the providers apart; below `url` itself the path does, and `/responses` is OpenAI's.
    """

    def __init__(self, script: (Iterable[Behaviour] | Mapping[str, Iterable[Behaviour]]) = ()) -> None:
        super().__init__(Handler)
        by_provider = script if isinstance(script, Mapping) else {}
        self.scripts: dict[str, Iterator[Behaviour]] = {name: iter(each) for name, each in by_provider.items()}
        self.common: Iterator[Behaviour] = iter(() if isinstance(script, Mapping) else script)
        self.calls: list[Received] = []
        self.times: list[float] = []
        self.under_way: dict[str, int] = defaultdict(int)
        self.most_under_way: dict[str, int] = defaultdict(int)
        self.lock = threading.Condition()

    def calls_of(self, provider: str) -> list[Received]:
        return [call for call in self.calls if call.provider == provider]

    def take(self, received: Received) -> tuple[int, Behaviour]:
        with self.lock:
            self.calls.append(received)
            self.times.append(time.monotonic())
            script = self.scripts.get(received.provider, self.common)
            return len(self.calls), next(script, Good())

    def count(self, provider: str, step: int) -> None:
        with self.lock:
            self.under_way[provider] += step
            self.most_under_way[provider] = max(self.most_under_way[provider], self.under_way[provider])
            self.lock.notify_all()

    def wait_for(self, provider: str, calls: int) -> None:
        with self.lock:
            self.lock.wait_for(lambda: self.most_under_way[provider] >= calls, timeout=60)


class Quiet(BaseHTTPRequestHandler):
    """What the handlers of a `Served` share; tests look at what their owner keeps."""

    server: Loopback
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def reply(self, status: int, headers: Mapping[str, str], body: bytes, part: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:part])
        self.close_connection = self.close_connection or part is not None


class Handler(Quiet):
    def answer(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        raw = self.rfile.read(length)
        if len(raw) < length:  # whoever asked was killed between the head and the body: that was no request
            self.close_connection = True
            return
        provider, path = provider_of(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        call, behaviour = self.server.owner.take(Received(path, headers, json.loads(raw) if raw else None, provider))
        self.server.owner.count(provider, 1)
        try:
            self.behave(provider, call, behaviour)
        finally:
            self.server.owner.count(provider, -1)
            self.wfile.flush()

    do_GET = do_POST = answer

    def behave(self, provider: str, call: int, behaviour: Behaviour) -> None:
        other = next((body for end, body in OTHER_BODIES.items() if self.path.endswith(end)), None)
        good = (other or GOOD_BODIES[provider])(call)
        match behaviour:
            case Good():
                self.reply(200, JSON, as_bytes(good))
            case Together(calls):
                self.server.owner.wait_for(provider, calls)
                self.reply(200, JSON, as_bytes(good))
            case Status(status, headers, body):
                self.reply(status, {**JSON, **headers}, as_bytes(body))
            case Hang():
                self.wait_for_the_end()
            case HalfBody():
                self.reply(200, JSON, as_bytes(good), part=len(as_bytes(good)) // 2)
            case WrongContentType():
                self.reply(200, {"content-type": "text/html"}, b"<html><body>Please log in</body></html>")
            case SlowDrip():
                self.drip()
            case Redirect(location):
                self.reply(307, {"location": location}, b"")
            case Huge(megabytes, bomb):
                self.huge(megabytes, bomb)

    def wait_for_the_end(self) -> None:
        self.close_connection = True
        self.connection.settimeout(0.02)
        while not self.server.owner.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue

    def drip(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(MB))
        self.end_headers()
        self.close_connection = True
        while not self.server.owner.closing.wait(0.005):
            self.wfile.write(b" ")
            self.wfile.flush()

    def huge(self, megabytes: int, bomb: bool) -> None:
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(b" " * (megabytes * MB)) + packer.flush() if bomb else b" " * (megabytes * MB)
        self.reply(200, {**JSON, **({"content-encoding": "gzip"} if bomb else {})}, body)


def provider_of(path: str) -> tuple[str, str]:
    """The provider that a path belongs to, and the path below its base URL."""
    first, _, rest = path.lstrip("/").partition("/")
    if first in GOOD_BODIES:
        return first, f"/{rest}"
    return next((name for end, name in PATH_OWNERS.items() if path.endswith(end)), "openai"), path


def as_bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
