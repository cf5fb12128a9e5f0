"""Signing in and out, and the static files: the routes that need no session."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from prometheus_client import Counter
from starlette.responses import RedirectResponse

from pillarbox.telemetry import get_logger
from pillarbox_admin.access import same_site
from pillarbox_admin.parts import Given
from pillarbox_admin.problems import Problem

REFUSED = Counter("pillarbox_admin_sign_ins_refused_total", "Sign-ins with a token that nobody holds")

router = APIRouter(include_in_schema=False)
log = get_logger()


@router.post("/login", dependencies=[Depends(same_site)])
async def sign_in(
    request: Request,
    given: Given,
    token: Annotated[str, Form(max_length=512)],
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    response = RedirectResponse(_ours(next), 303)
    holder = given.sessions.begin(response, token, secure=request.url.scheme == "https")
    if holder is None:
        REFUSED.inc()
        log.warning("sign-in refused")
        return given.drawing.page(request, "login.html", 401, next=_ours(next), wrong=True)
    log.info("signed in", by=holder.name)
    return response


@router.post("/logout", dependencies=[Depends(same_site)])
async def sign_out(given: Given) -> Response:
    response = RedirectResponse("/", 303)
    given.sessions.end(response)
    return response


@router.get("/static/{name}")
async def static(given: Given, name: str) -> Response:
    response = given.drawing.static(name)
    if response is None:
        raise Problem(404, "There is nothing at this address.")
    return response


def _ours(address: str) -> str:
    """A path of this page: never another host's, which a browser reads from `//` and `/\\` too."""
    second = address[1:2]
    return address if address.startswith("/") and second not in {"/", "\\"} and address.isprintable() else "/"
