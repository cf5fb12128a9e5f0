"""Forgets, now and then, what the inbox need not know any longer."""

import asyncio
import random

from pillarbox.errors import StorageError
from pillarbox.inbox import Storage
from pillarbox.telemetry import get_logger

log = get_logger()

EVERY = 60.0


async def keep_swept(storage: Storage, every: float = EVERY) -> None:
    while True:
        await asyncio.sleep(every * random.uniform(0.75, 1.25))  # noqa: S311 - jitter, no secret
        try:
            await storage.sweep()
        except StorageError as error:
            log.warning("a sweep failed", reason=type(error).__name__)
