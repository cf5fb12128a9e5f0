"""The whole state of a simulator, put together."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pillarbox_simulator.bots import Bots
from pillarbox_simulator.calls import Calls
from pillarbox_simulator.changes import Changes
from pillarbox_simulator.clock import Clock
from pillarbox_simulator.faults import Faults
from pillarbox_simulator.feed import Feed
from pillarbox_simulator.journal import Journal
from pillarbox_simulator.ledger import Ledger
from pillarbox_simulator.limits import Limiter, Limits
from pillarbox_simulator.people import People
from pillarbox_simulator.polling import Polling
from pillarbox_simulator.webhook import Webhooks


class Simulator:
    """Everything in memory; with a `data` folder what must survive a restart is written behind."""

    def __init__(
        self,
        stopping: asyncio.Event,
        tokens: Sequence[str] = (),
        data: Path | None = None,
        ledger: int = 1_000_000,
    ) -> None:
        self.stopping = stopping
        self.clock = Clock()
        self.changes = Changes()
        self.feed = Feed()
        self.bots = Bots(list(tokens), self.clock, self.changes)
        self.ledger = Ledger(ledger)
        self.faults = Faults()
        self.limiter = Limiter()
        self.people = People(self.clock)
        self.polling = Polling(stopping)
        self.calls = Calls(self.bots, self.ledger, self.faults, self.limiter, self.clock)
        self.webhooks = Webhooks(self.bots, self.polling, self.clock, self.calls.reply)
        self.calls.slow.update(
            getUpdates=self.polling.get_updates,
            setWebhook=self.webhooks.set_webhook,
            deleteWebhook=self.webhooks.delete_webhook,
            getWebhookInfo=self.webhooks.get_webhook_info,
        )
        self._journal = Journal(data, self.bots) if data is not None else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Restores what was kept, delivers until the block ends, and keeps what is left."""
        if self._journal is not None:
            self._journal.open()
            self.changes.listeners.append(self._journal.record)
        self.changes.listeners.append(self.feed.publish)
        self.bots.create_given()
        try:
            async with self.webhooks.running(), asyncio.TaskGroup() as group:
                ending = group.create_task(self._end_waits())
                yield
                ending.cancel()
        finally:
            if self._journal is not None:
                self._journal.close()

    def keep(self) -> None:
        """What changed until now survives the process."""
        if self._journal is not None:
            self._journal.flush()

    async def _end_waits(self) -> None:
        await self.stopping.wait()
        self.polling.end_all()
        self.ledger.end_waits()
        self.feed.end()

    async def reset(self, *, webhooks: bool = False) -> None:
        """A clean slate. Bots and their ids go on; webhooks stay registered unless they are named."""
        self.faults.remove()
        self.limiter.put(Limits())
        self.clock.scale, self.clock.deadline = 1.0, 60.0
        for bot in self.bots:
            bot.updates.clear()
            bot.files.clear()
            bot.queries.clear()
            for chat in bot.chats:
                self.changes.publish("forgotten", bot.id, chat.id)
            bot.chats.by_id.clear()
            if webhooks:
                await self.webhooks.forget(bot)
        self.ledger.clear()
        self.changes.publish("reset", 0)
