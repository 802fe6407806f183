"""Who may hold a connection: a protocol of uvicorn's that lets nobody hold one without asking anything.

A request's head has 16 KB and 20 seconds from its first byte, or from the connection's beginning; its body 20 seconds
and one more for each 500 bytes, as Apache's mod_reqtimeout has it. An answer that nobody reads has a minute.
Unfinished connections may have half of the room. Where there is none, the oldest unfinished one of the address that has
most of them makes some; then the oldest that waits for a further request; then one whose answer is not read.
"""

import asyncio
import resource
from collections import defaultdict
from enum import Enum
from http import HTTPStatus
from typing import Any, NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from annotation.server.edge import Pace
from annotation.server.home.logs import repeats, tell_repeatedly

HEAD_BYTES = 16 * 1024
_MOST = 4096


class Limits(NamedTuple):
    most: int  # connections at once
    head_seconds: float = 20.0  # from the first byte, or from the beginning, to the end of a request's headers
    body_seconds: float = 20.0  # from there to the end of its body, with what its bytes add
    bytes_a_second: int = 500  # so many bytes of a body give it one second more
    unread_seconds: float = 60.0  # how long an answer may wait for its reader, who reads none of it


def limits_here() -> Limits:
    """Limits by the number of open files that the system allows this process; a quarter is left to the database."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return Limits(_MOST)
    return Limits(max(1, min(_MOST, allowed - max(64, allowed // 4))))


class _State(Enum):
    UNFINISHED = 1  # its request is not there whole
    IDLE = 2  # it waits for a further request
    UNREAD = 3  # its answer waits for its reader
    BUSY = 4  # it is being answered


class Crowd:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.states: dict[Connection, _State] = {}
        self.by_address: dict[_State, dict[str, dict[Connection, None]]] = {
            state: defaultdict(dict) for state in _State
        }
        self.unfinished = 0
        self.told = repeats()
        self.pace = Pace()
        self.sweeping: asyncio.TimerHandle | None = None

    def place(self, connection: "Connection", state: _State | None) -> None:
        before = self.states.get(connection)
        if before == state:
            return
        if before is not None:
            of_state = self.by_address[before]
            del of_state[connection.address][connection]
            if not of_state[connection.address]:
                del of_state[connection.address]
            del self.states[connection]
        if state is not None:
            self.states[connection] = state
            self.by_address[state][connection.address][connection] = None
        self.unfinished += (state is _State.UNFINISHED) - (before is _State.UNFINISHED)
        if state is _State.UNFINISHED:
            if self.unfinished > max(1, self.limits.most // 2) or len(self.states) > self.limits.most:
                self.make_room(connection.loop.time())
            self.sweep_later(connection.loop)
        elif state is _State.UNREAD:
            self.sweep_later(connection.loop)

    def make_room(self, now: float) -> None:
        """Close the one that is missed least; who has come just now only where there is nobody else."""
        unfinished, *others = (self.oldest(state) for state in (_State.UNFINISHED, _State.IDLE, _State.UNREAD))
        is_new = unfinished is not None and now - unfinished.began < 1.0
        found = [*others, unfinished] if is_new and self.unfinished <= self.limits.most // 2 else [unfinished, *others]
        for connection in found:
            if connection is not None:
                tell_repeatedly(
                    self.told, "too many connections; the oldest that ask nothing are closed, the others go on"
                )
                connection.end()
                return

    def oldest(self, state: _State) -> "Connection | None":
        crowds = self.by_address[state].values()
        most = max(map(len, crowds), default=0)
        return next((next(iter(crowd)) for crowd in crowds if len(crowd) == most), None)

    def sweep_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.sweeping is None:
            self.sweeping = loop.call_later(min(1.0, self.limits.head_seconds / 4), self.sweep, loop)

    def sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sweeping = None
        now = loop.time()
        timed = (_State.UNFINISHED, _State.UNREAD)
        for connection in [connection for connection, state in self.states.items() if state in timed]:
            if connection.flow.write_paused:  # new time where some of the answer was read
                before, connection.unread_bytes = connection.unread_bytes, connection.transport.get_write_buffer_size()
                connection.began = now if connection.unread_bytes < before else connection.began
            # Where the app does not take what comes, it is not the client that does not send.
            is_held_up = connection.is_reading and not connection.is_head and connection.flow.read_paused
            if now >= connection.deadline() and not is_held_up:
                is_unread = self.states.get(connection) is _State.UNREAD
                which = "that did not read their answer" if is_unread else "whose request did not come in time"
                tell_repeatedly(self.told, f"closed: connections {which}")
                connection.time_out()
        if self.by_address[_State.UNFINISHED] or self.by_address[_State.UNREAD]:
            self.sweep_later(loop)


class Connection(HttpToolsProtocol):
    def __init__(self, *args: Any, crowd: Crowd, **named: Any) -> None:
        super().__init__(*args, **named)
        self.crowd = crowd
        self.address = ""
        self.began = self.loop.time()
        self.is_reading = True  # a request is not there whole
        self.is_head = True  # nor are its headers
        self.head_bytes = 0  # of its address and headers
        self.body_bytes = 0
        self.unread_bytes = 0  # of an answer that waits for its reader, when last looked at
        self.raw_bytes = 0  # as they came: of the head until it is known, then of the body with what frames it
        self.requests = 0
        self.is_refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.crowd.place(self, _State.UNFINISHED)

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.place(self, None)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; of what may be a head that is too long, no more than a head may have at once."""
        while data and not self.is_refused:
            most = HEAD_BYTES if self.is_head else len(data)
            self.take(data[:most])
            data = data[most:]
        self.settle()

    def take(self, data: bytes) -> None:
        before, was_head = self.requests, self.is_head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # nothing here speaks another protocol; the request itself is answered
            pass
        except httptools.HttpParserError:
            self.refuse(400)
        if self.is_reading and self.requests in (before, 1) and not self.is_refused:
            self.raw_bytes += len(data) if self.is_head == was_head else max(0, len(data) - self.head_bytes)
            if self.is_head and self.raw_bytes > HEAD_BYTES:
                self.refuse(431)
            # So many bytes may frame each byte of a body in pieces; one byte a piece has five.
            elif not self.is_head and self.raw_bytes > HEAD_BYTES + self.body_bytes * 8:
                self.refuse(400)

    def on_message_begin(self) -> None:
        self._unset_keepalive_if_required()
        if not self.is_reading:
            self.began = self.loop.time()
        self.requests += 1
        self.is_reading, self.is_head = True, True
        self.head_bytes = self.body_bytes = self.raw_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self.head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head_bytes += len(name) + len(value) + len(b": \r\n")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.is_head, self.raw_bytes = False, 0
        self.began = self.loop.time()
        if self.head_bytes > HEAD_BYTES:
            self.refuse(431)
        elif not self.is_refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        if not self.is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self.is_reading = False
        if not self.is_refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.is_reading:
            self._unset_keepalive_if_required()
        self.settle()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.began = self.loop.time()
        self.unread_bytes = self.transport.get_write_buffer_size()
        self.settle()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.settle()

    def settle(self) -> None:
        if self not in self.crowd.states:
            return
        if self.flow.write_paused:
            state = _State.UNREAD
        elif self.is_reading:
            state = _State.UNFINISHED
        else:
            is_answered = self.cycle is None or self.cycle.response_complete
            state = _State.IDLE if is_answered else _State.BUSY
        self.crowd.place(self, state)

    def deadline(self) -> float:
        limits = self.crowd.limits
        if self.flow.write_paused:
            return self.began + limits.unread_seconds
        if self.is_head:
            return self.began + limits.head_seconds
        return self.began + limits.body_seconds + self.body_bytes / limits.bytes_a_second

    def time_out(self) -> None:
        if self.is_reading and not self.flow.write_paused and (self.requests or not self.is_head):
            self.refuse(408)
        else:
            self.end()

    def refuse(self, status: int) -> None:
        self.is_refused = True
        if self.transport.is_closing():
            return
        if status == 431:
            tell_repeatedly(self.crowd.told, f"refused: requests with more than {HEAD_BYTES // 1024} KB of headers")
        wait = self.crowd.pace.wait(self.address, self.loop.time())
        if wait:
            self.transport.pause_reading()
            self.loop.call_later(wait, self.answer_refusal, status)
        else:
            self.answer_refusal(status)

    def answer_refusal(self, status: int) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            phrase = HTTPStatus(status).phrase.encode()
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
                b"connection: close\r\n\r\n%b\n" % (status, phrase, len(phrase) + 1, phrase)
            )
            self.transport.close()
            self.crowd.place(self, None)
        else:
            self.end()

    def end(self) -> None:
        self.is_refused = True
        self.crowd.place(self, None)
        self.transport.abort()
