"""Builds admin from its parts, and runs it: probes in front, then the API and the page."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack

from fastapi import FastAPI, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from pillarbox.ids import BotId
from pillarbox.inbox.opening import Inbox, opening, shared_storage_of
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.telemetry import Probes, bind, serve_on
from pillarbox.telemetry.probes import App
from pillarbox_admin import api, dead_api, dead_pages, pages, pins, problems, signing
from pillarbox_admin.access import SignIn
from pillarbox_admin.acts import Acts
from pillarbox_admin.database import Database, engine
from pillarbox_admin.drawing import Drawing, here
from pillarbox_admin.inbox_reader import InboxReader
from pillarbox_admin.jobs import jobs
from pillarbox_admin.outbound import Outbound
from pillarbox_admin.parts import Parts
from pillarbox_admin.problems import Problem
from pillarbox_admin.reader import Reader
from pillarbox_admin.sessions import Sessions
from pillarbox_admin.settings import AdminSettings

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with `no-referrer` browsers send `Origin: null`: see access.same_site
    "Cross-Origin-Opener-Policy": "same-origin",
}
PROBES = {"/healthz", "/readyz", "/metrics"}


async def main(settings: AdminSettings, stop: asyncio.Event) -> None:
    """Serves until `stop`; a database that is away is asked again, and readiness names it."""
    storage = shared_storage_of(settings)
    with listening(settings) as listener:
        async with opening(storage) as inbox:
            await administer(settings, inbox, listener, stop)


def listening(settings: AdminSettings) -> socket.socket:
    """Before anything is begun, so that a port which is taken ends the start at once: SettingError."""
    return bind(settings.admin_host, settings.admin_port, "ADMIN_PORT")


async def administer(
    settings: AdminSettings,
    inbox: Inbox,
    listener: socket.socket,
    stop: asyncio.Event,
    bots: Sequence[BotId] = (),
) -> None:
    """Until `stop`. `bots`: those to show where the database is not PostgreSQL, which is asked itself."""
    async with AsyncExitStack() as stack:
        reader: Reader | InboxReader = InboxReader(inbox.storage, bots)
        if isinstance(inbox.storage, PostgresStorage):
            database = Database(engine(settings.database_url.get_secret_value()))
            stack.push_async_callback(database.close)
            reader = Reader(database)
        outbound = Outbound.of(settings)
        stack.push_async_callback(outbound.close)
        running = await stack.enter_async_context(jobs())
        parts = Parts(
            holders=settings.holders,
            sessions=Sessions(settings.holders),
            storage=inbox.storage,
            reader=reader,
            acts=Acts(inbox.storage, running),
            jobs=running,
            outbound=outbound,
            drawing=Drawing(),
        )
        app = build(parts, Probes({"database": reader.ping, "redis": outbound.ping}))
        await serve_on(listener, app, stop)


def build(parts: Parts, probes: Probes) -> App:
    app = FastAPI(
        title="Pillarbox admin",
        version="1",
        summary="Failed updates, dead messages, bots and queues",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.parts = parts
    for part in (api, dead_api, pins, pages, dead_pages, signing):
        app.include_router(part.router)
    problems.install(app, notice)
    return _guarded(app, probes)


def notice(request: Request, problem: Problem) -> Response:
    drawing = request.app.state.parts.drawing
    page: Response
    if isinstance(problem, SignIn):
        page = drawing.page(request, "login.html", 401, next=here(request) or "/", wrong=False)
    else:
        back = (here(request) if problem.status == 503 else None) or "/"
        page = drawing.page(request, "notice.html", problem.status, problem=problem, back=back)
    page.headers.update(problem.headers)
    return page


def _guarded(app: App, probes: App) -> App:
    """The headers stand on every answer, also on one for an error that nobody foresaw."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in PROBES:
            await probes(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "private, no-store")
            await send(message)

        await app(scope, receive, with_headers)

    return guarded
