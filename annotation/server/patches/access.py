"""Who gets in: log-ins by password, token and key; what was ended opens nothing.

Who is in no workspace sees themselves and nothing else. A user's log-ins count since their epoch began, a moment, so
that one that is raised after an older backup was restored is no earlier one again. Log-ins say the epoch in which they
were made; who has no row is in epoch 0, as log-ins are that say none.
"""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Annotated, Any
from uuid import UUID

from argilla_server.api.policies.v1 import UserPolicy, authorize
from argilla_server.api.schemas.v1.oauth2 import Token
from argilla_server.contexts import accounts
from argilla_server.errors import ForbiddenOperationError, UnauthorizedError
from argilla_server.models import User
from argilla_server.models.database import generate_user_api_key
from argilla_server.security.authentication.jwt import JWT
from argilla_server.security.authentication.userinfo import UserInfo
from argilla_server.security.settings import settings as security_settings
from argilla_server.settings import settings
from fastapi import Form, Request
from fastapi.responses import JSONResponse
from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, Uuid, case, func, select
from sqlalchemy.orm import column_property
from starlette.authentication import AuthCredentials

from annotation.campaign.people import REVOCATION_PATH
from annotation.server.home.logs import repeats, tell, tell_repeatedly
from annotation.server.patches.passwords import FairThreads, TooManyWaitingError, WrongPasswords, network_of
from annotation.server.patches.routes import Asking, Database, serve_first
from annotation.server.queue.tables import upsert

EPOCHS = Table(
    "citejury_epochs",
    MetaData(),
    Column("user_id", Uuid, primary_key=True),
    Column("epoch", BigInteger, nullable=False),  # seconds since 1970, by the server's clock
)
_EPOCH_CLAIM = "epoch"
_NO_WORKSPACE = "You are in no workspace of this server any more. Ask who leads the study."
_WHO_ASKS = "citejury_who_asks"
_REFUSAL_SECONDS = 1.0

_refusals = repeats()
_threads = FairThreads(max(1, min(4, (os.cpu_count() or 1) // 2)))
_asking: ContextVar[str] = ContextVar("asking", default="")
"""Whose request is worked on: an address, or nothing for somebody who has logged in."""


def prepare(connection: Connection) -> None:
    EPOCHS.create(connection, checkfirst=True)
    connection.exec_driver_sql("DELETE FROM citejury_epochs WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = user_id)")


def know_epochs(users: Any) -> None:
    epoch = select(EPOCHS.c.epoch).where(EPOCHS.c.user_id == users.id).correlate_except(EPOCHS).scalar_subquery()
    users.citejury_epoch = column_property(func.coalesce(epoch, 0))


def token_with_epoch(user: Any) -> str:
    return str(JWT.create(UserInfo(_said_of(user) | {_EPOCH_CLAIM: user.citejury_epoch})))


def _said_of(user: Any) -> dict[str, Any]:
    return {"identity": str(user.id), "name": user.first_name, "username": user.username, "role": user.role}


async def by_token(self: Any, request: Any) -> Any:
    credentials = await self.scheme(request)
    if not credentials:
        return None
    said = JWT.decode(credentials.credentials)
    user = await accounts.get_user_by_username(request.state.db, said.get("username"))
    _remember(request, user)
    if user is None or said.get("identity") != str(user.id) or said.get(_EPOCH_CLAIM, 0) != user.citejury_epoch:
        return None
    return _admitted(user, request)


async def by_key(self: Any, request: Any) -> Any:
    api_key = await self.scheme(request)
    user = await accounts.get_user_by_api_key(request.state.db, api_key=api_key) if api_key else None
    _remember(request, user)
    return _admitted(user, request) if user else None


def _remember(request: Any, user: Any) -> None:
    request.state.db.info[_WHO_ASKS] = user


async def remembered(get_user: Callable[..., Awaitable[Any]], db: Any, username: str) -> Any:
    """The user whose key or token this request's session has just looked up; anybody else is looked up."""
    known = db.info.get(_WHO_ASKS)
    return known if known is not None and known.username == username else await get_user(db, username)


def _admitted(user: Any, request: Any) -> tuple[Any, Any]:
    # The edge asks before there is a route.
    asked = getattr(request.scope.get("route"), "path", "") if request.method == "GET" else ""
    if not _belongs(user) and asked not in ("/me", "/me/workspaces", "/me/datasets", "/citejury/me/work"):
        raise ForbiddenOperationError(_NO_WORKSPACE)
    return AuthCredentials(), UserInfo(_said_of(user))


def _belongs(user: Any) -> bool:
    return user.is_owner or bool(user.workspaces)


async def refuse_log_in_of_removed(
    authenticate: Callable[..., Awaitable[Any]], db: Any, username: str, password: str
) -> Any:
    """Who has not been in a workspace yet may log in: an adjudicator's comes with what she is given to decide."""
    user = await authenticate(db, username, password)
    if user and user.citejury_epoch and not _belongs(user):
        tell_repeatedly(_refusals, f"login refused: {username} is in no workspace any more")
        raise UnauthorizedError(_NO_WORKSPACE)
    return user


def for_members_only(policy: Callable[[Any], Any], response: Any) -> Callable[[Any], Awaitable[bool]]:
    async def is_allowed_member(actor: Any) -> bool:
        is_member = actor.is_owner or await actor.is_member(response.record.dataset.workspace_id)
        return bool(is_member and await policy(response)(actor))

    return is_allowed_member


def serve_revocation(_: Any) -> None:
    """An owner's key stays: it stands in the server's own files, and each start sets it again."""

    async def revoke(user_id: UUID, db: Database, current_user: Asking) -> Any:
        await authorize(current_user, UserPolicy.update)
        user = await User.get_or_raise(db, user_id)
        now = int(time.time())
        later = case((EPOCHS.c.epoch >= now, EPOCHS.c.epoch + 1), else_=now)  # than any before
        await upsert(db, EPOCHS, {"user_id": user.id, "epoch": now}, {"epoch": later})
        if not user.is_owner:
            user.api_key = generate_user_api_key()
        await db.commit()
        tell(f"all log-ins of {user.username} were ended{'' if user.is_owner else ', and the API key is a new one'}")
        return JSONResponse({"api_key_renewed": not user.is_owner})

    serve_first(REVOCATION_PATH, revoke, method="POST", response_class=JSONResponse)


def slow_down(create_token: Any) -> None:
    wrong = WrongPasswords(settings.redis_url, security_settings.secret_key)
    refusals = repeats()

    async def refuse(db: Any, address: str, seconds: float) -> Any:
        await db.close()  # its connection is for others meanwhile
        tell_repeatedly(refusals, f"login refused: too many wrong passwords from {address}")
        await asyncio.sleep(_REFUSAL_SECONDS)
        headers = {"Retry-After": str(max(1, math.ceil(seconds)))}
        detail = "Too many wrong passwords. Wait a minute, then try again."
        return JSONResponse({"detail": detail}, 429, headers=headers)

    async def create_counted_token(
        request: Request, username: Annotated[str, Form()], password: Annotated[str, Form()], db: Database
    ) -> Any:
        address = network_of(request.scope.get("client"))
        attempt = await wrong.begin(username, address)
        if attempt.wait:
            return await refuse(db, address, attempt.wait)
        try:
            _asking.set(address)
            token = await create_token(db=db, username=username, password=password)
        except UnauthorizedError:
            wait = await wrong.was_wrong(attempt)
            if wait:
                return await refuse(db, address, wait)
            raise
        except TooManyWaitingError:
            await wrong.was_right(attempt)  # or not; nobody has looked
            return await refuse(db, address, _REFUSAL_SECONDS)
        await wrong.was_right(attempt)
        return token

    serve_first("/token", create_counted_token, "POST", status_code=201, response_model=Token)


async def check_elsewhere(db: Any, username: str, password: str) -> Any:
    """Check a password, and keep neither the server nor a connection of the database while it is hashed.

    An unknown user name takes what a known one takes: the same queries and one hash.
    """
    hashed = None
    if "\0" not in username:  # nobody's name has it, and PostgreSQL does not take it
        user = await accounts.get_user_by_username(db, username)
        hashed = None if user is None else str(user.password_hash)
        await db.close()
    known = hashed or accounts._DUMMY_HASH
    right = await _threads.run(_asking.get(), accounts.verify_password, password, known)
    if not right or not hashed:
        return None
    user = await accounts.get_user_by_username(db, username)
    # Whoever has got a new password meanwhile needs that.
    return user if user is not None and user.password_hash == hashed else None
