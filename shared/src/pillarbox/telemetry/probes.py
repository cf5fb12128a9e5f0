"""`/healthz`, `/readyz` and `/metrics` of every service, as a raw ASGI app."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

from pillarbox.errors import SettingError

Check = Callable[[], Awaitable[None]]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

CHECK_TIMEOUT = 3.0


class Probes:
    """Readiness asks each check *now*; one that raises, or takes over 3 s, makes it 503 and is named.

    It tells its `pid` too: whoever started a process sees that no other one answers in its place.
    """

    def __init__(
        self, checks: Mapping[str, Check] = MappingProxyType({}), registry: CollectorRegistry = REGISTRY
    ) -> None:
        self._checks = dict(checks)
        self._registry = registry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, kind, body = await self.answer(scope["path"])
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def answer(self, path: str) -> tuple[int, bytes, bytes]:
        """Status, content type and body of one of the three paths; 404 for any other."""
        if path == "/healthz":
            return 200, b"text/plain", b"ok\n"
        if path == "/readyz":
            failing = await self.failing()
            body = json.dumps({"ready": not failing, "failing": failing, "pid": os.getpid()}).encode()
            return (503 if failing else 200), b"application/json", body
        if path == "/metrics":
            return 200, CONTENT_TYPE_LATEST.encode(), generate_latest(self._registry)
        return 404, b"text/plain", b"not found\n"

    async def failing(self) -> dict[str, str]:
        """The names of the checks that fail now, with the type of each error."""
        names = list(self._checks)
        results = await asyncio.gather(*(self._ask(name) for name in names))
        return {name: error for name, error in zip(names, results, strict=True) if error}

    async def _ask(self, name: str) -> str | None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT):
                await self._checks[name]()
        except Exception as error:
            return type(error).__name__
        return None


class _Server(uvicorn.Server):
    """The process handles signals, not the HTTP server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    app: App, host: str, port: int, stop: asyncio.Event, *, setting: str = "PORT", grace: float = 10.0
) -> None:
    """Serves `app` until `stop` is set and the open requests have ended, `grace` seconds at most.

    Raises SettingError when the address cannot be bound; `setting` names what to change.
    """
    await serve_on(bind(host, port, setting), app, stop, grace=grace)


async def serve_on(
    listener: socket.socket,
    app: App,
    stop: asyncio.Event,
    *,
    grace: float = 10.0,
    http: type[asyncio.Protocol] | Literal["auto"] = "auto",
) -> None:
    """As `serve`, on a socket that listens already, and with another HTTP protocol where one is given."""
    config = uvicorn.Config(
        app,
        http=http,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(grace),
        server_header=False,
        date_header=False,
        backlog=2048,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
        serving.cancel()  # it runs still where this call was cancelled
        listener.close()


def bind(host: str, port: int, setting: str) -> socket.socket:
    """A listening socket; SettingError names `setting` when the port is taken or the host is not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the protocol is named: without it, 40 ms an answer
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingError(
            f"{setting}: cannot listen on {host}:{port} ({error.strerror}); set another port"
        ) from None
    listener.listen(2048)
    listener.setblocking(False)
    return listener
