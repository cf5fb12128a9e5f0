"""Asking a service whether it is ready."""

import asyncio
import time
from collections.abc import Callable

from pillarbox_solo.ports import HOST

PATIENCE = 60.0
STEP = 0.05
REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def until_ready(port: int, hopeless: Callable[[], bool], patience: float = PATIENCE) -> str | None:
    """None once `/readyz` answers 200; when patience ends or there is no hope, what it answered last."""
    until = time.monotonic() + patience
    while True:
        failing = await _ask(port)
        if failing is None or hopeless() or time.monotonic() > until:
            return failing
        await asyncio.sleep(STEP)


async def _ask(port: int) -> str | None:
    try:
        async with asyncio.timeout(5.0):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(REQUEST)
            answer = await reader.read()
            writer.close()
    except TimeoutError:
        return "no answer within 5 s"
    except OSError:
        return "nothing listens on its port"
    head, _, body = answer.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 200"):
        return None
    return body.decode("utf-8", "replace").strip() or "no answer"
