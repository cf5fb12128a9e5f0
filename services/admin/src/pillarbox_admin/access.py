"""Who may call: bearer tokens for the API, the cookie for the page, and no act from another site."""

from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from pillarbox_admin.holders import Holder, Right
from pillarbox_admin.parts import Given
from pillarbox_admin.problems import Problem
from pillarbox_admin.sessions import COOKIE

Bearer = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="a token of ADMIN_TOKENS")),
]
Allowed = Callable[..., Awaitable[Holder]]


class SignIn(Problem):
    """The page asks for a token."""

    def __init__(self) -> None:
        super().__init__(401, "Sign in with a token.")


def bearer(right: Right) -> Allowed:
    """Raises Problem 401 or 403 for a call of the API without this right."""

    async def allowed(given: Given, bearer: Bearer) -> Holder:
        holder = given.holders.with_token(bearer.credentials.encode()) if bearer else None
        if holder is None:
            raise Problem(401, "A bearer token of ADMIN_TOKENS is needed.", {"WWW-Authenticate": "Bearer"})
        return with_right(right, holder)

    return allowed


def session(right: Right) -> Allowed:
    """Raises SignIn or Problem 403 for a call of the page without this right."""

    async def allowed(request: Request, given: Given) -> Holder:
        holder = given.sessions.holder(request.cookies.get(COOKIE))
        if holder is None:
            raise SignIn
        request.state.holder = holder
        return with_right(right, holder)

    return allowed


async def same_site(request: Request) -> None:
    """Raises Problem 403 for a form that another site sent.

    Browsers send `Sec-Fetch-Site` over HTTPS and to localhost only; elsewhere `Origin` has to name this host.
    """
    site = request.headers.get("sec-fetch-site")
    if site is None:
        origin = urlsplit(request.headers.get("origin", "")).netloc
        site = "same-origin" if origin and origin == request.headers.get("host") else "unknown"
    if site != "same-origin":
        raise Problem(403, "This form was not sent by this page, so nothing was done.")


def with_right(right: Right, holder: Holder) -> Holder:
    """Raises Problem 403 where it has not."""
    if right not in holder.rights:
        raise Problem(403, f"This token has no right to `{right}`.")
    return holder
