"""What a caller is told when something is wrong: problem details (RFC 9457) in the API, else a page."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pillarbox.errors import QueueFull, QueueUnavailable, StorageUnavailable
from pillarbox.telemetry import get_logger

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = "5"
FULL = "Redis is full, so nothing was changed. Discard what is not needed, or give it more memory."

log = get_logger()


class Problem(Exception):
    """Ends a request with this status. `detail` is shown to the caller: no token, no text of a message."""

    def __init__(
        self,
        status: int,
        detail: str,
        headers: Mapping[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
        **members: str,
    ) -> None:
        """`members`: for programs, beside those of every problem."""
        super().__init__(detail)
        self.status, self.detail, self.headers, self.errors = status, detail, dict(headers or {}), errors
        self.members = members

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase

    def body(self) -> dict[str, Any]:
        members = {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail}
        members |= self.members
        return members if self.errors is None else members | {"errors": self.errors}


class Notice(Protocol):
    """Draws a problem as a page."""

    def __call__(self, request: Request, problem: Problem) -> Response: ...


def install(app: FastAPI, notice: Notice) -> None:
    """Every error of `app`, its 404 and 405 too, becomes a Problem and is answered in the caller's form."""

    async def answer(request: Request, error: Exception) -> Response:
        problem = of(error)
        if problem.status == 503:  # what is not expected is logged by the HTTP server
            log.warning("away", path=_route(request), exc_info=error)
        if not request.url.path.startswith("/api/"):
            return notice(request, problem)
        return JSONResponse(problem.body(), problem.status, headers=problem.headers, media_type=MEDIA_TYPE)

    for kind in (
        Problem,
        HTTPException,
        RequestValidationError,
        StorageUnavailable,
        QueueUnavailable,
        Exception,
    ):
        app.add_exception_handler(kind, answer)


def of(error: Exception) -> Problem:
    """The problem that an error is for the caller; what is not expected says nothing of itself."""
    match error:
        case Problem():
            return error
        case HTTPException():
            return Problem(error.status_code, _said(error), error.headers)
        case RequestValidationError():
            return Problem(422, "The request has a wrong or missing value.", errors=_errors(error))
        case StorageUnavailable():
            return Problem(503, "The database is away or slow. Nothing is lost; try again.", _later())
        case QueueFull():
            return Problem(503, FULL, _later())
        case QueueUnavailable():
            return Problem(503, "Redis is away or slow. Nothing is lost; try again.", _later())
    return Problem(500, "This is a fault of admin. Its log says where.")


def _said(error: HTTPException) -> str:
    if error.status_code == 404:
        return "There is nothing at this address."
    if error.status_code == 405:
        return "This address does not take that method."
    return str(error.detail)


def _errors(error: RequestValidationError) -> list[dict[str, str]]:
    return [
        {"where": ".".join(str(part) for part in problem["loc"]), "detail": problem["msg"]}
        for problem in error.errors()
    ]


def _later() -> dict[str, str]:
    return {"Retry-After": RETRY_AFTER}


def _route(request: Request) -> str:
    """The route's pattern: an address that nobody serves may hold anything."""
    return getattr(request.scope.get("route"), "path", "?")
