"""Text that attacks the annotator's page, and a server that it wants to call."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ATTACKS = """
<script>window.attacked = 1; alert(1)</script> </script><script>window.attacked = 2</script>
<img src="x" onerror="window.attacked = 3; alert(3)"> <svg onload="window.attacked = 4">
<a href="javascript:window.attacked=5">press me</a> [press me](javascript:window.attacked=6)
<iframe srcdoc="<script>parent.attacked = 7</script>"></iframe> <iframe src="http://beacon.invalid/frame"></iframe>
![beacon](http://BEACON/image.png) <img src="http://BEACON/image2.png"> <link rel=stylesheet href="http://BEACON/a.css">
<style>body * { display: none !important } body { background: url(http://BEACON/b.png) }</style>
<div style="position:fixed;inset:0;z-index:99999;background:#fff">covered</div>
$& $` $' $$ \u202egnirts desrever\u202c http://BEACON/bare <form action="http://BEACON/form"><input autofocus></form>
"""


class _Beacon(BaseHTTPRequestHandler):
    calls: list[str]

    def do_GET(self) -> None:
        self.calls.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def listening_beacon() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that hostile text wants to call, and what it was asked for."""
    calls: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Counting", (_Beacon,), {"calls": calls})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}", calls
        server.shutdown()
        thread.join()
