"""The socket that the embedded Argilla listens at; bound by the starter, so that a taken port is known at once."""

import errno
import socket

from pipeline.errors import ServerStartError

BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at the address; connections wait in it until the web part takes them.

    Raises:
        ServerStartError: the port is taken or not allowed, or the host is not one of this machine.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, OverflowError) as error:
        raise ServerStartError(
            f"There is no address {host!r} with port {port} to listen at. Choose with `--host` and `--port`."
        ) from error
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ServerStartError(f"Cannot listen at {host}, port {port}: {why_not(error)}") from error
    return listening


def why_not(error: OSError) -> str:
    """Why an address cannot be listened at, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return "another program has the port. Stop it, or choose another with `--port` (`--port 0` takes any free one)."
    if error.errno == errno.EACCES:
        return "this user may not take that port. Choose one above 1023 with `--port`."
    return f"{(error.strerror or str(error)).lower()}. Choose an address of this machine with `--host`."


def url_of(listening: socket.socket) -> str:
    """The address to open in a browser on this machine."""
    host, port = listening.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
