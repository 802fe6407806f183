"""What a part on PostgreSQL looks at before it serves, so that what is missing is told in a line.

argilla-server itself would take a SQLite file of its own where no database is named, and tell a wrong password in
hundreds of lines, some of which show the right one.
"""

import contextlib
import os
from typing import TYPE_CHECKING, Any

from annotation.embedded.home.hold_time import hold_seconds
from pipeline.errors import ServerStartError, SettingsError

if TYPE_CHECKING:
    from sqlalchemy import URL

ENGINES = ("citejury", "opensearch")
ANSWER_SECONDS = 8.0


def setting(name: str) -> str:
    """What the environment says.

    Raises:
        SettingsError: nothing.
    """
    found = os.environ.get(name, "")
    if not found:
        raise SettingsError(f"`{name}` is not set; docker/compose.yaml shows what this part of the server needs.")
    return found


def whole_number(name: str) -> int:
    """The number from 1 on that the environment says.

    Raises:
        SettingsError: it says none.
    """
    found = setting(name)
    if not (found.isascii() and found.isdecimal()) or int(found) < 1:
        raise SettingsError(f"`{name}` is {found!r} and should be a number from 1.")
    return int(found)


def check_settings() -> None:
    """Nothing where the environment names a database and an engine, and a time to hold records if any.

    Raises:
        SettingsError: it does not.
    """
    database_url()
    hold_seconds()
    engine = setting("ARGILLA_SEARCH_ENGINE")
    if engine not in ENGINES:
        raise SettingsError(f"`ARGILLA_SEARCH_ENGINE` is {engine!r} and should be {' or '.join(ENGINES)}.")


def database_url() -> "URL":
    """The address of the database, and who we are there.

    Raises:
        SettingsError: the environment names no PostgreSQL.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    with contextlib.suppress(ArgumentError, ValueError):
        url = make_url(setting("ARGILLA_DATABASE_URL"))
        if url.get_backend_name() == "postgresql" and url.username:
            return url
    raise SettingsError(
        "`ARGILLA_DATABASE_URL` is no address of a PostgreSQL. A password in it may have letters and digits only."
    )


def reach_database() -> None:
    """Nothing where the database answers.

    Raises:
        SettingsError: the environment names no PostgreSQL.
        ServerStartError: it does not answer, or not to this user and password.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.exc import OperationalError

    # Not argilla-server's own connections, which take seconds to load.
    engine = create_engine(database_url().set(drivername="postgresql+psycopg2"))
    try:
        engine.connect().close()
    except OperationalError as error:
        said = str(error.orig).splitlines()
        raise ServerStartError(f"The database does not answer: {said[0] if said else 'no reason given'}") from error
    finally:
        engine.dispose()


def open_queue(**options: Any) -> Any:
    """A connection to Redis, which has answered.

    Raises:
        SettingsError: the environment names no Redis.
        ServerStartError: it does not answer, or not to this password.
    """
    from redis import Redis
    from redis.exceptions import RedisError

    try:
        queue = Redis.from_url(setting("ARGILLA_REDIS_URL"), **{"socket_timeout": ANSWER_SECONDS, **options})
    except ValueError as error:
        raise SettingsError("`ARGILLA_REDIS_URL` is no address of a Redis.") from error
    try:
        queue.ping()
    except RedisError as error:
        raise ServerStartError(f"The queue does not answer: {error}") from error
    return queue
