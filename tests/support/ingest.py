"""Ingest inside the test's own process, and what Telegram would post to it."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from pillarbox.settings import load
from pillarbox_ingest.app import main
from pillarbox_ingest.settings import IngestSettings
from pillarbox_solo.ports import free_port

BOT_ID, OTHER_BOT = 700_001, 700_002
TOKENS = f"{BOT_ID}:{'A' * 35},{OTHER_BOT}:{'B' * 35}"
SECRET, NEXT_SECRET = "the-secret", "the-next-secret"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


class Ingest:
    def __init__(self, port: int, stop: asyncio.Event, session: aiohttp.ClientSession) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.stop = stop
        self._session = session

    async def post(self, body: Any, bot_id: object = BOT_ID, secret: str | None = SECRET) -> int:
        """The status; every answer's body is empty."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        if isinstance(data, bytes):
            data = io.BytesIO(data)
        headers = {} if secret is None else {HEADER: secret}
        async with self._session.post(f"{self.url}/webhook/{bot_id}", data=data, headers=headers) as answer:
            assert await answer.read() == b""
            assert ("Retry-After" in answer.headers) == (answer.status == 503)
            return answer.status

    async def failing(self) -> dict[str, str]:
        """What readiness names."""
        async with self._session.get(f"{self.url}/readyz") as answer:
            body = await answer.json()
            assert body["ready"] == (answer.status == 200)
            return dict(body["failing"])

    async def ready(self) -> None:
        async with asyncio.timeout(30):
            while await self.failing():  # noqa: ASYNC110 - the other side is a database
                await asyncio.sleep(0.05)


def update(update_id: int, chat_id: int = 42, **message: Any) -> dict[str, Any]:
    peer = {"id": chat_id, "type": "private", "is_bot": False, "first_name": "Ann"}
    given = {"message_id": update_id, "date": 1764000000, "chat": peer, "from": peer, "text": "hello"}
    return {"update_id": update_id, "message": {**given, **message}}


@asynccontextmanager
async def running(url: str, port: int = 0, **given: Any) -> AsyncIterator[Ingest]:
    """Serving, though perhaps not ready; stopped cleanly at the end."""
    port = port or free_port()
    settings = load(
        IngestSettings,
        database_url=url,
        ingest_host="127.0.0.1",
        ingest_port=port,
        **{"bot_tokens": TOKENS, "webhook_secret": f"{SECRET},{NEXT_SECRET}", **given},
    )
    stop = asyncio.Event()
    task = asyncio.create_task(main(settings, stop))
    try:
        async with aiohttp.ClientSession() as session:
            ingest = Ingest(port, stop, session)
            await _listening(port, task)
            yield ingest
    finally:
        stop.set()
        await task


async def _listening(port: int, task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(20):
        while not task.done():
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                await writer.wait_closed()
                return
