"""Who may still come in: what was ended opens nothing, and who is in no workspace sees herself and nothing else."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from annotation.campaign.people import REVOCATION_PATH
from annotation.embedded.home.event_log import repeats, tell, tell_repeatedly
from annotation.embedded.patches._routes import serve_first

_EPOCH_CLAIM = "epoch"
_HERSELF = ("/me", "/me/workspaces", "/me/datasets", "/citejury/me/work")  # the lists are empty then
_NO_WORKSPACE = "You are in no workspace of this server any more. Ask who leads the study."

_refusals = repeats()


def know_epochs(users: Any) -> None:
    """Let each user who is read from the database come with her epoch."""
    from sqlalchemy import func
    from sqlalchemy.orm import column_property

    from annotation.embedded.epochs import epoch_of

    users.citejury_epoch = column_property(func.coalesce(epoch_of(users.id), 0))


def say_epoch_in_tokens(_: Any) -> Callable[[Any], str]:
    """The same token, which also says in which of the user's epochs it was made."""
    from argilla_server.security.authentication.jwt import JWT
    from argilla_server.security.authentication.userinfo import UserInfo

    def token_of(user: Any) -> str:
        said = {"identity": str(user.id), "name": user.first_name, "username": user.username, "role": user.role}
        return str(JWT.create(UserInfo(said | {_EPOCH_CLAIM: user.citejury_epoch})))

    return token_of


def check_epoch_of_tokens(_: Any) -> Any:
    """The same log-in by token, if it is of the user's epoch and of herself, and not of who had her name before."""
    from argilla_server.contexts import accounts
    from argilla_server.security.authentication.jwt import JWT

    async def authenticate(self: Any, request: Any) -> Any:
        credentials = await self.scheme(request)
        if not credentials:
            return None
        said = JWT.decode(credentials.credentials)
        user = await accounts.get_user_by_username(request.state.db, said.get("username"))
        if user is None or said.get("identity") != str(user.id) or said.get(_EPOCH_CLAIM, 0) != user.citejury_epoch:
            return None
        return _admitted(user, request)

    return authenticate


def check_workspace_of_keys(_: Any) -> Any:
    """The same log-in by API key, for users who are in a workspace."""
    from argilla_server.contexts import accounts

    async def authenticate(self: Any, request: Any) -> Any:
        api_key = await self.scheme(request)
        user = await accounts.get_user_by_api_key(request.state.db, api_key=api_key) if api_key else None
        return _admitted(user, request) if user else None

    return authenticate


def _admitted(user: Any, request: Any) -> tuple[Any, Any]:
    """What a backend says of a user whom it knows.

    Raises:
        ForbiddenOperationError: she is in no workspace, and asks for more than herself; the server answers 403.
    """
    from argilla_server.errors import ForbiddenOperationError
    from argilla_server.security.authentication.userinfo import UserInfo
    from starlette.authentication import AuthCredentials

    # The edge asks before there is a route.
    asked = getattr(request.scope.get("route"), "path", "") if request.method == "GET" else ""
    if not _belongs(user) and asked not in _HERSELF:
        raise ForbiddenOperationError(_NO_WORKSPACE)
    said = {"username": user.username, "name": user.first_name, "role": user.role, "identity": str(user.id)}
    return AuthCredentials(), UserInfo(said)


def _belongs(user: Any) -> bool:
    """Whether she is in a workspace, or in all of them as an owner; her workspaces are loaded."""
    return user.is_owner or bool(user.workspaces)


def refuse_log_in_of_removed(authenticate: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same check of a password; refuses who was taken out of all workspaces, as one that is wrong.

    Who has not been in one yet may log in, for an adjudicator's comes with what she is given to decide.
    """
    from argilla_server.errors import UnauthorizedError

    async def authenticate_member(db: Any, username: str, password: str) -> Any:
        user = await authenticate(db, username, password)
        if user and user.citejury_epoch and not _belongs(user):
            tell_repeatedly(_refusals, f"login refused: {username} is in no workspace any more")
            raise UnauthorizedError(_NO_WORKSPACE)
        return user

    return authenticate_member


def for_members_only(policy: Callable[[Any], Callable[[Any], Awaitable[bool]]]) -> Any:
    """The same permission about a response, but for users who are not in its workspace any more."""

    def permission(response: Any) -> Callable[[Any], Awaitable[bool]]:
        is_allowed = policy(response)

        async def is_allowed_member(actor: Any) -> bool:
            is_member = actor.is_owner or await actor.is_member(response.record.dataset.workspace_id)
            return is_member and await is_allowed(actor)

        return is_allowed_member

    return permission


def serve_revocation(update_user: Any) -> None:
    """Let an owner end all log-ins of a user, and give that user a new API key.

    An owner's key stays: it stands in the server's own files, and each start sets it again.
    """
    from argilla_server.api.policies.v1 import UserPolicy, authorize
    from argilla_server.database import get_async_db
    from argilla_server.models import User
    from argilla_server.models.database import generate_user_api_key
    from argilla_server.security import auth
    from fastapi import Depends, Security
    from fastapi.responses import JSONResponse
    from sqlalchemy.ext.asyncio import AsyncSession

    from annotation.embedded.epochs import raise_epoch

    async def revoke(
        user_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        await authorize(current_user, UserPolicy.update)
        user = await User.get_or_raise(db, user_id)
        await raise_epoch(db, user.id)
        if not user.is_owner:
            user.api_key = generate_user_api_key()
        await db.commit()
        tell(f"all log-ins of {user.username} were ended{'' if user.is_owner else ', and the API key is a new one'}")
        return JSONResponse({"api_key_renewed": not user.is_owner})

    serve_first(REVOCATION_PATH, revoke, method="POST", response_class=JSONResponse)
