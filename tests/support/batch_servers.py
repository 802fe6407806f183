"""Loopback servers that run batches as OpenAI, Anthropic, Google and xAI do, and refuse what those refuse.

The four stand below one address, told apart by the first part of the path. What they are told to do wrong stands in
attributes (`Books`), which a test may change at any time; what they were asked stands there too.
"""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.batch_books import Asked, Books, HangUp, Refused
from tests.support.batch_dialects import ROUTES, Raw, error_body
from tests.support.provider_server import Quiet, Served

KEYS = {"openai": "authorization", "claude": "x-api-key", "gemini": "x-goog-api-key", "grok": "authorization"}


class BatchServers(Books, Served):
    """The four servers as a context; `base_url(provider)` is where a provider is."""

    def __init__(self, looks: int = 0, page: int = 2) -> None:
        Books.__init__(self, looks, page)
        Served.__init__(self, Handler)


class Handler(Quiet):
    def serve(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        raw = self.rfile.read(length)
        if len(raw) < length:  # killed between the head and the body: that was no request
            self.close_connection = True
            return
        split = urlsplit(self.path)
        provider, _, rest = split.path.lstrip("/").partition("/")
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(provider, self.command, f"/{rest}", query, headers, raw)
        servers = self.server.owner
        with servers.lock:
            servers.calls.append(asked)
            before = len(servers.batches)
            try:
                status, answer = 200, self.answer(servers, asked)
            except Refused as refusal:
                status, answer = refusal.status, error_body(provider, refusal)
            is_void = len(servers.batches) > before and servers.void[provider] > 0
            servers.void[provider] -= is_void
            is_lost = is_void or isinstance(answer, HangUp)
            is_cut = isinstance(answer, Raw) and servers.cuts[provider] > 0
            servers.cuts[provider] -= is_cut
        self.close_connection = self.close_connection or is_lost or is_cut
        if not is_lost:
            text = answer.text if isinstance(answer, Raw) else json.dumps(answer, ensure_ascii=False)
            kind = "application/x-jsonl" if isinstance(answer, Raw) else "application/json"
            body = text.encode()
            self.reply(status, {"content-type": kind}, body, len(body) // 2 if is_cut else None)
            self.wfile.flush()

    do_GET = do_POST = do_DELETE = serve

    def answer(self, servers: Books, asked: Asked) -> Any:
        """What the provider answers.

        Raises:
            Refused: the request is none that it takes.
        """
        instead = servers.instead(asked)
        if instead is not None:
            return instead
        if asked.provider not in ROUTES:
            raise Refused(404, "No such provider here.")
        if not asked.headers.get(KEYS[asked.provider], "").removeprefix("Bearer "):
            raise Refused(401, "No key was given.")
        for method, pattern, serve in ROUTES[asked.provider]:
            match = re.fullmatch(pattern, asked.path)
            if match and asked.method == method:
                return serve(servers, asked, *match.groups())
        raise Refused(404, f"{asked.method} {asked.path} is not known here.")
