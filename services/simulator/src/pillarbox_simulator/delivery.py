"""Webhook delivery as Telegram does it (tdlib/telegram-bot-api, WebhookActor).

In order within a queue, in parallel between queues, again and again until the update is accepted or too old.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable

import aiohttp

from pillarbox_simulator import params
from pillarbox_simulator.answers import Refused
from pillarbox_simulator.bots import Bot, Registration
from pillarbox_simulator.clock import Clock
from pillarbox_simulator.updates import Key, Pending

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
DELAYS = (0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
LAST_DELAYS = (60.0, 120.0)
LONGEST_RETRY_AFTER = 3600.0

Execute = Callable[[Bot, str, params.Params, params.Uploads], Awaitable[object]]


class Delivery:
    """Posts one bot's updates to one registration until it is cancelled."""

    def __init__(
        self, bot: Bot, session: aiohttp.ClientSession, clock: Clock, execute: Execute, chance: random.Random
    ) -> None:
        self._bot = bot
        self._registration: Registration = bot.registration
        self._session = session
        self._clock = clock
        self._execute = execute
        self._chance = chance
        self._queues: dict[Key, deque[Pending]] = {}
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._timers: set[asyncio.TimerHandle] = set()

    async def run(self) -> None:
        """What is pending goes first, then what arrives."""
        self._bot.updates.expire()
        for pending in self._bot.updates.pending.values():
            self._arrived(pending)
        self._bot.updates.arrived = self._arrived
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._registration.max_connections):
                    group.create_task(self._connection())
        finally:
            self._bot.updates.arrived = lambda pending: None
            for timer in self._timers:
                timer.cancel()

    def _arrived(self, pending: Pending) -> None:
        queue = self._queues.setdefault(pending.key, deque())
        queue.append(pending)
        if len(queue) == 1:
            self._ready.put_nowait(pending.key)

    async def _connection(self) -> None:
        while True:
            key = await self._ready.get()
            queue = self._queues[key]
            delay = await self._try(queue[0])
            if delay is not None:
                self._later(key, delay)
                continue
            self._bot.updates.settle(queue.popleft())
            if queue:
                self._ready.put_nowait(key)
            else:
                del self._queues[key]

    async def _try(self, pending: Pending) -> float | None:
        """None when the update is done with; else Telegram's seconds until it is tried again."""
        if pending.serial not in self._bot.updates.pending:
            return None
        retry_after = await self._post(pending)
        if retry_after is None:
            return None
        delay = retry_after or self._delay(pending.attempts)
        pending.attempts += 1
        if self._clock.now() + self._clock.real(delay) > pending.expires_at:
            self._bot.updates.expired += 1
            return None
        return delay

    def _delay(self, attempts: int) -> float:
        return DELAYS[attempts] if attempts < len(DELAYS) else self._chance.uniform(*LAST_DELAYS)

    def _later(self, key: Key, delay: float) -> None:
        def due() -> None:
            self._timers.discard(timer)
            self._ready.put_nowait(key)

        timer = asyncio.get_running_loop().call_later(self._clock.real(delay), due)
        self._timers.add(timer)

    async def _post(self, pending: Pending) -> float | None:
        """None when the webhook accepted; else the `Retry-After` it asked for, or 0."""
        headers = {"Content-Type": "application/json"}
        if self._registration.secret_token:
            headers[SECRET_HEADER] = self._registration.secret_token
        try:
            async with asyncio.timeout(self._clock.deadline):
                async with self._session.post(
                    self._registration.url, data=pending.body, headers=headers, allow_redirects=False
                ) as response:
                    body = await response.read()
        except TimeoutError:
            return self._failed("Read timeout expired")
        except aiohttp.ClientConnectorDNSError:
            return self._failed("Failed to resolve host")
        except aiohttp.ClientConnectorError:
            return self._failed("Connection refused")
        except (aiohttp.ClientError, OSError):
            return self._failed("Connection closed")
        if not 200 <= response.status < 300:
            self._failed(f"Wrong response from the webhook: {response.status} {response.reason}")
            return _retry_after(response.headers.get("Retry-After", ""))
        if body:
            await self._reply(response.headers.get("Content-Type", ""), body)
        return None

    def _failed(self, message: str) -> float:
        self._bot.troubles.date = int(self._clock.now())
        self._bot.troubles.message = message
        return 0.0

    async def _reply(self, kind: str, body: bytes) -> None:
        """A `method` in the webhook's answer is carried out; its result is lost."""
        try:
            values, uploads = params.read(kind.encode("latin-1"), b"", body)
        except Refused:
            return
        method = values.pop("method", None)
        if isinstance(method, str):
            await self._execute(self._bot, method, values, uploads)


def _retry_after(value: str) -> float:
    return min(float(value), LONGEST_RETRY_AFTER) if value.isdigit() else 0.0
