"""A resolver that always says the same, for the tests of what may be asked."""

from collections.abc import Awaitable, Callable, Sequence


def resolver(*addresses: str) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve
