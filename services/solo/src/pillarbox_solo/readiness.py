"""Asking a service whether it is ready."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from pillarbox_solo.ports import HOST

PATIENCE = 60.0
STEP = 0.05
REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def until_ready(
    port: int, pid: Callable[[], int | None], hopeless: Callable[[], bool], patience: float = PATIENCE
) -> str | None:
    """None once the process `pid` answers 200 to `/readyz`; when patience or hope is at its end, why not."""
    until = time.monotonic() + patience
    while True:
        failing = await _ask(port, pid)
        if failing is None or hopeless() or time.monotonic() > until:
            return failing
        await asyncio.sleep(STEP)


async def _ask(port: int, pid: Callable[[], int | None]) -> str | None:
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
    if not answer:
        return "no answer"
    said = _said(body)
    if said.get("pid") != pid():
        return f"another program answers on port {port}"
    if head.startswith(b"HTTP/1.1 200"):
        return None
    failing = said.get("failing")
    return ", ".join(f"{name} ({why})" for name, why in failing.items()) if isinstance(failing, dict) else "?"


def _said(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
