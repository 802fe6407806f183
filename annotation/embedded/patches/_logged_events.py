"""What is told of argilla-server's own doings: logins, datasets, records that are pushed, submissions.

Its functions are wrapped where it calls them; what they do and return is not changed.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from annotation.embedded.home.event_log import MINUTE, EventCounts, repeats, tell, tell_repeatedly
from pipeline.terminal import counted

_PUSH_SECONDS = 10.0  # a push sends its batches one after the other

_Call = Callable[..., Awaitable[Any]]


def _submission_lines(counts: Mapping[tuple[str, str], int]) -> list[str]:
    """A line for each dataset: how many were submitted in a minute, and by whom, the busiest first."""
    people: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for (dataset, username), count in counts.items():
        people[dataset].append((count, username))
    return [
        f"{sum(count for count, _ in each)} submitted in {dataset}: "
        + ", ".join(f"{username} {count}" for count, username in sorted(each, key=lambda one: (-one[0], one[1])))
        for dataset, each in sorted(people.items())
    ]


def _push_lines(counts: Mapping[tuple[str, str], int]) -> list[str]:
    """A line for each dataset and kind: how many records came."""
    words = {"new": "pushed to", "known": "sent again to"}
    return [f"{counted(count, 'record')} {words[kind]} {dataset}" for (dataset, kind), count in counts.items()]


_failures = repeats()
_pushed: EventCounts[tuple[str, str]] = EventCounts(_PUSH_SECONDS, _push_lines)
_submissions: EventCounts[tuple[str, str]] = EventCounts(MINUTE, _submission_lines)


def _after(log: _Call) -> Callable[[_Call], _Call]:
    """A change of a function: `log` gets its result and its arguments when it has succeeded."""

    def change(function: _Call) -> _Call:
        async def call(*arguments: Any, **named: Any) -> Any:
            result = await function(*arguments, **named)
            await log(result, *arguments)
            return result

        return call

    return change


@_after
async def log_login(user: Any, db: Any, username: str, *_: Any) -> None:
    """Tell who logged in by password, and who failed to; of failures like each other the first, then how many."""
    from argilla_server.contexts import accounts

    if user:
        tell(f"{user.username} logged in")
        return
    # Whoever mistypes may have typed her password into the field for the name, so an unknown one is not told.
    # PostgreSQL takes no NUL.
    known = "\0" not in username and await accounts.get_user_by_username(db, username) is not None
    tell_repeatedly(_failures, f"login failed: {f'wrong password for {username}' if known else 'unknown user name'}")


@_after
async def log_published_dataset(dataset: Any, *_: Any) -> None:
    """Tell of a dataset that opens."""
    tell(f"dataset {dataset.name} published")


@_after
async def log_push(bulk: Any, _: Any, dataset: Any, *__: Any) -> None:
    """Tell how many records came, some seconds after the first of them."""
    known = len(getattr(bulk, "updated_item_ids", ()))
    for kind, count in (("new", len(bulk.items) - known), ("known", known)):
        if count:
            _pushed.add((dataset.name, kind), count)


@_after
async def log_submission(response: Any, *_: Any) -> None:
    """Tell who submitted how many in a minute."""
    if response.status == "submitted":  # its record, dataset and user are loaded: search engines need them
        _submissions.add((response.record.dataset.name, response.user.username))
