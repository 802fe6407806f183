"""Work of argilla-server's that takes long and that nobody needs: it is skipped, or done once, or when it is needed."""

import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_KNOWN = "citejury_has_webhook"


class LateModule(ModuleType):
    """Stands for a module until something of it is asked for, and then has it imported.

    The names that every module has are no such thing: `inspect` asks all modules for them, which would run a module of
    `importlib.util.LazyLoader`.
    """

    def __getattr__(self, name: str) -> Any:
        """Import the module, once, and give what was asked for."""
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules[self.__name__] is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _NoEvent:
    """An event that nobody waits for."""

    async def notify(self, db: Any) -> list[Any]:
        """No job."""
        return []


def only_for_webhooks(build: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same builder, but for an event that goes nowhere where no webhook is enabled."""

    async def build_if_wanted(db: Any, event: Any, subject: Any) -> Any:
        if _KNOWN not in db.info:  # looked up once in a session, which is once in a request
            from argilla_server.contexts.webhooks import list_enabled_webhooks

            db.info[_KNOWN] = bool(await list_enabled_webhooks(db))
        return await build(db, event, subject) if db.info[_KNOWN] else _NoEvent()

    return build_if_wanted


def build_reader_once(settings: property) -> property:
    """The same property of a row, read by a pydantic reader that is built now."""
    from pydantic import TypeAdapter

    read = TypeAdapter(settings.fget.__annotations__["return"]).validate_python
    return property(lambda row: read(row.settings))
