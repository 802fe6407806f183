"""argilla-server 2.8.0 as it comes, on SQLite with a search engine that does nothing, to measure ours against."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from annotation.argilla.client import Argilla
from annotation.server.guardian import valkey_command
from annotation.server.home.folder import read_or_make_secrets
from annotation.server.launch import listen, server_environment, url_of, wait_until_it_answers

AS_IT_COMES = MappingProxyType({"ARGILLA_SEARCH_ENGINE": "empty"})


@contextlib.contextmanager
def unpatched_server(
    home: Path, data_of: Path | None = None, script: str = __file__, settings: Mapping[str, str] = AS_IT_COMES
) -> Iterator[Argilla]:
    """The owner's connection to argilla-server as it comes; it and its queue end with the block.

    It serves the data of the home `data_of` where one is named, whose own server may go on. A script may register
    a search engine that the settings name, and then call `serve_unpatched`.
    """
    for name in ("data", "queue", "logs"):
        (home / name).mkdir(parents=True)
    environment = server_environment(data_of or home) | {
        "ARGILLA_REDIS_URL": f"unix://{home / 'queue.sock'}",
        "TMPDIR": str(home),
        **settings,
    }
    with contextlib.ExitStack() as parts:
        listening = parts.enter_context(listen("127.0.0.1", 0))
        log = parts.enter_context(open(home / "logs" / "web.log", "wb"))
        descriptor = listening.fileno()
        for command in (valkey_command(home / "queue", home), [sys.executable, script, str(descriptor)]):
            part = subprocess.Popen(command, stdout=log, stderr=log, env=environment, pass_fds=(descriptor,))
            parts.callback(part.wait)
            parts.callback(part.kill)
        wait_until_it_answers(home, url_of(listening))
        yield parts.enter_context(Argilla(url_of(listening), read_or_make_secrets(data_of or home).owner_api_key))


def serve_unpatched(descriptor: int) -> None:
    """Serve argilla-server with an empty search engine, without anything of ours but the owner."""
    from annotation.server.patches.first import import_argilla_server

    import_argilla_server()
    import argilla_server
    import uvicorn
    from alembic import command
    from alembic.config import Config
    from argilla_server.database import ALEMBIC_CONFIG_FILE
    from argilla_server.search_engine import SearchEngine
    from argilla_server.settings import settings

    from annotation.server.web import make_owner

    async def nothing(*_: Any, **__: Any) -> bool:
        return True

    @classmethod
    async def new_instance(cls: Any) -> Any:
        return cls()

    methods = {name: nothing for name in SearchEngine.__abstractmethods__}
    SearchEngine.register("empty")(type("Empty", (SearchEngine,), methods | {"new_instance": new_instance}))
    command.upgrade(Config(ALEMBIC_CONFIG_FILE), "head")
    kept = read_or_make_secrets(Path(settings.home_path).parent)
    asyncio.run(make_owner(kept.owner_username, kept.owner_password, kept.owner_api_key))
    server = uvicorn.Server(uvicorn.Config(argilla_server.app, log_level="warning", access_log=False))
    server.run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    serve_unpatched(int(sys.argv[1]))
