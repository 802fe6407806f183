"""A link between a browser and a server that loses a share of the requests for records and answers, for tests."""

import http.client
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

LOSSY = re.compile(r"^/api/.*/(records|responses)")
FAILURES = ("lost on the way there", "lost on the way back", "500")
# A connection for each request: a browser sends a request again by itself where a kept one closes.
HOP_HEADERS = {"connection", "content-length", "keep-alive", "transfer-encoding"}


class LossyLink(ThreadingHTTPServer):
    """A loopback proxy. It loses `share` of the requests for records and answers, and refuses the tokens in `revoked`.

    With a share of 1 none of them reaches the server. What else the page asks for goes through: Argilla's page needs a
    dozen answers to open and asks for each only once.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, upstream: str, share: float, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), Forward)
        self.upstream = urlsplit(upstream).netloc
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.begin(share, seed)

    def begin(self, share: float = 0.0, seed: int = 1) -> None:
        """Be as a new link, at the same address."""
        self.RequestHandlerClass = Forward
        self.share = share
        # One for answers and one for the rest, so that the same answers are lost whatever else the page asks for.
        self.random = {True: random.Random(seed), False: random.Random(seed + 1)}
        self.revoked: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.left_out: set[str] = set()  # response headers, in small letters
        self.gate = threading.Event()  # while it is closed, requests that could be lost hang instead
        self.gate.set()

    def fate(self, path: str) -> str:
        """How the request ends: one of `FAILURES`, or empty where it goes through."""
        if not LOSSY.search(path):
            return ""
        is_answer = "/responses" in path
        chance = self.random[is_answer]
        failed = chance.choice(FAILURES) if chance.random() < self.share else ""
        if self.share >= 1:
            failed = FAILURES[0]
        counts = self.answers if is_answer else self.counts
        counts[failed] += 1
        return failed

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is no failure."""


class Forward(BaseHTTPRequestHandler):
    server: LossyLink

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if LOSSY.search(self.path):
            self.server.gate.wait()
        fate = self.server.fate(self.path)
        if fate == "lost on the way there":
            return
        if self.headers.get("Authorization") in self.server.revoked:
            self.reply(401, [("Content-Type", "application/json")], b'{"detail": "Could not validate credentials"}')
        elif fate == "500":
            self.reply(500, [("Content-Type", "text/plain")], b"Internal Server Error")
        else:
            status, headers, answer = self.ask_upstream(body)
            if fate != "lost on the way back":
                self.reply(status, headers, answer)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = forward

    def ask_upstream(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def reply(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_HEADERS | self.server.left_out:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def lossy_link(upstream: str, share: float = 0.0, seed: int = 1) -> Iterator[LossyLink]:
    """A link to the server at `upstream`, until the block ends."""
    with LossyLink(upstream, share, seed) as link:
        thread = threading.Thread(target=link.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield link
        finally:
            link.shutdown()
            thread.join()


class StockArgilla(Forward):
    """The same server without our routes: it answers as it does for any path that it does not know."""

    def forward_without_ours(self) -> None:
        self.path = self.path.replace("/citejury/", "/unknown/")
        self.forward()

    do_GET = do_POST = forward_without_ours


@contextmanager
def stock_argilla(url: str) -> Iterator[LossyLink]:
    with lossy_link(url) as link:
        link.RequestHandlerClass = StockArgilla
        yield link
