"""The simulator inside the test's own process, on a free port."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

import pillarbox_simulator
from tests.support.simulator_client import SimulatorClient

TOKEN = "700001:for-tests-only-AAAAAAAAAAAAAAAAAAAAAAAA"
BOT_ID = 700_001


@pytest.fixture
async def simulator() -> AsyncIterator[pillarbox_simulator.Running]:
    """Every well-formed token is a bot."""
    async with pillarbox_simulator.running() as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def control(simulator: pillarbox_simulator.Running, http: aiohttp.ClientSession) -> SimulatorClient:
    return SimulatorClient(simulator.url, http)


@dataclass
class Webhook:
    """A bot's own server: answers what `statuses` says (to the text `only`), then 200; keeps what came."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    only: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    reply: bytes = b""
    got: list[dict[str, object]] = field(default_factory=list)
    secrets: list[str | None] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        update = await request.json()
        self.got.append(update)
        self.secrets.append(request.headers.get("X-Telegram-Bot-Api-Secret-Token"))
        meant = self.only is None or update["message"]["text"] == self.only
        status = self.statuses.pop(0) if self.statuses and meant else 200
        if status != 200:
            return web.Response(status=status, headers=self.headers)
        return web.Response(body=self.reply, content_type="application/json")


@pytest.fixture
async def webhook() -> AsyncIterator[Webhook]:
    webhook = Webhook()
    app = web.Application()
    app.router.add_post("/hook", webhook.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    webhook.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield webhook
    finally:
        await runner.cleanup()
