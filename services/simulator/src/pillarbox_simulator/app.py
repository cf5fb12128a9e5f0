"""The ASGI app: the Bot API, its files, the control plane, the live feed, the page and the probes."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from prometheus_client import CollectorRegistry

from pillarbox.telemetry import Probes
from pillarbox_simulator import web
from pillarbox_simulator.answers import JSON, Answer, Refused, Silence, refusal
from pillarbox_simulator.control import Control
from pillarbox_simulator.metrics import Metrics
from pillarbox_simulator.page import Page
from pillarbox_simulator.params import Upload
from pillarbox_simulator.reset import RESET
from pillarbox_simulator.simulator import Simulator

NOT_FOUND = refusal(Refused(404, "Not Found"))
TOO_LARGE = refusal(Refused(413, "Request Entity Too Large"))
FEED = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"))
AS_ATTACHMENT = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", b"sandbox"))

_encode = msgspec.json.Encoder().encode


class App:
    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._calls = simulator.calls
        self._control = Control(simulator)
        registry = CollectorRegistry()
        registry.register(Metrics(simulator))
        self._probes = Probes(registry=registry)
        self._page = Page()

    async def __call__(self, scope: web.Scope, receive: web.Receive, send: web.Send) -> None:
        if scope["type"] != "http":
            return
        with suppress(ConnectionResetError):
            if scope["path"].startswith("/bot"):
                await self._bot_api(scope, receive, send)
            else:
                await self._other(scope, receive, send)

    async def _bot_api(self, scope: web.Scope, receive: web.Receive, send: web.Send) -> None:
        token, slash, name = scope["path"][4:].partition("/")
        answer: Answer | Silence
        try:
            body = await web.body_of(receive)
        except web.TooLarge:
            answer = TOO_LARGE
        else:
            kind = web.header(scope, b"content-type")
            answer = NOT_FOUND
            if slash:
                answer = await self._calls.answer(token, name, kind, scope["query_string"], body)
        self._simulator.keep()
        if isinstance(answer, Silence):
            await self._break_off(answer, scope, receive)
            return
        more = () if answer.retry_after is None else ((b"retry-after", b"%d" % answer.retry_after),)
        await web.answer(send, answer.status, answer.kind, answer.body, more)

    async def _break_off(self, silence: Silence, scope: web.Scope, receive: web.Receive) -> None:
        """Says nothing until the caller gives up, the hang is over or the process ends; then resets."""
        gone = asyncio.create_task(_gone(receive))
        ends = [self._simulator.stopping, *([silence.over] if silence.over is not None else [])]
        waits = {gone, *(asyncio.create_task(_set(end)) for end in ends)}
        try:
            await asyncio.wait(waits, timeout=silence.seconds, return_when=asyncio.FIRST_COMPLETED)
            scope["extensions"][RESET]()
            await gone
        finally:
            for wait in waits:
                wait.cancel()

    async def _other(self, scope: web.Scope, receive: web.Receive, send: web.Send) -> None:
        path, method = scope["path"], scope["method"]
        if path == "/_ctl/events":
            await self._feed(receive, send)
        elif path.startswith("/_ctl/files/"):
            await self._file(send, path.removeprefix("/_ctl/files/"))
        elif path.startswith("/_ctl/"):
            body = await web.body_of(receive)
            status, reply = await self._control.answer(method, path[6:], scope["query_string"], body)
            self._simulator.keep()
            await web.answer(send, status, JSON, _encode(reply))
        elif path.startswith("/file/bot"):
            await self._bot_file(send, path.removeprefix("/file/bot"))
        elif path in self._page:
            await web.answer(send, 200, *self._page.read(path), self._page.headers)
        else:
            await self._probes(scope, receive, send)

    async def _bot_file(self, send: web.Send, path: str) -> None:
        token, _, file_path = path.partition("/")
        try:
            bot = self._simulator.bots.by_token(token)
        except Refused as refused:
            answer = refusal(refused)
            await web.answer(send, answer.status, answer.kind, answer.body)
            return
        await _send_upload(send, bot.files.get(file_path.removeprefix("files/")), ())

    async def _file(self, send: web.Send, path: str) -> None:
        """A bot's upload for the page, which has no token."""
        bot_id, _, file_id = path.partition("/")
        bot = self._simulator.bots.find(int(bot_id)) if bot_id.isdigit() else None
        await _send_upload(send, bot.files.get(file_id) if bot is not None else None, AS_ATTACHMENT)

    async def _feed(self, receive: web.Receive, send: web.Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(FEED)})
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send_events(send))
            gone = group.create_task(_gone(receive))
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            sending.cancel()
            gone.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def _send_events(self, send: web.Send) -> None:
        async for event in self._simulator.feed.listen():
            await send({"type": "http.response.body", "body": event, "more_body": True})


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _gone(receive: web.Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_upload(send: web.Send, upload: Upload | None, headers: Iterable[web.Header]) -> None:
    if upload is None:
        await web.answer(send, NOT_FOUND.status, NOT_FOUND.kind, NOT_FOUND.body)
    else:
        await web.answer(send, 200, upload.kind.encode("latin-1"), upload.data, headers)
