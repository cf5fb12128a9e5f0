"""Templates and static files: read once, when admin is built."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pillarbox_admin import shown

KINDS = {"css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
FOR_GOOD = "public, max-age=31536000, immutable"


def _now() -> datetime:
    return datetime.now(UTC)


class Drawing:
    def __init__(self, now: Callable[[], datetime] = _now) -> None:
        self._now = now
        self._static = _files("static")
        templates = {name: body.decode() for name, body in _files("templates").items()}
        self._environment = Environment(
            loader=DictLoader(templates),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "number": shown.number,
            "clock": shown.clock,
            "wait": shown.wait,
            "without_place": shown.without_place,
            "type_alone": shown.type_alone,
            "place_alone": shown.place_alone,
            "ago": lambda at: shown.ago(self._now(), at),
        }
        self._environment.globals |= {
            "stylesheet": _digest(self._static["admin.css"]),
            "icon": _digest(self._static["icon.svg"]),
        }

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        shared = {
            "here": None,
            "holder": getattr(request.state, "holder", None),
            "now": self._now(),
            "again": here(request),
        }
        return HTMLResponse(self._environment.get_template(template).render(shared | values), status)

    def static(self, name: str) -> Response | None:
        body = self._static.get(name)
        if body is None:
            return None
        kind = KINDS[name.rpartition(".")[2]]
        return Response(body, media_type=kind, headers={"Cache-Control": FOR_GOOD})


def here(request: Request) -> str | None:
    """The address to come back to; None for a form, which is not sent twice by itself."""
    if request.method != "GET":
        return None
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def _files(folder: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in resources.files(__package__).joinpath(folder).iterdir()}


def _digest(body: bytes) -> str:
    """In the address of a file that browsers keep for good."""
    return hashlib.sha256(body).hexdigest()[:12]
