"""A simulator inside another process, for tests and `pillarbox run`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pillarbox.telemetry import bind, serve_on
from pillarbox_simulator.app import App
from pillarbox_simulator.reset import ResettingProtocol
from pillarbox_simulator.simulator import Simulator


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    """The base address, `http://127.0.0.1:<port>`: what TELEGRAM_API_BASE takes."""
    simulator: Simulator


@asynccontextmanager
async def running(
    port: int = 0,
    tokens: Sequence[str] = (),
    *,
    data: Path | None = None,
    host: str = "127.0.0.1",
    ledger: int = 1_000_000,
    grace: float = 2.0,
) -> AsyncIterator[Running]:
    """Serves until the block ends; port 0 takes a free one."""
    listener = bind(host, port, "port")
    stop = asyncio.Event()
    simulator = Simulator(stop, tokens, data, ledger)
    address = f"http://{host}:{listener.getsockname()[1]}"
    async with simulator.running(), asyncio.TaskGroup() as group:
        group.create_task(serve_on(listener, App(simulator), stop, grace=grace, http=ResettingProtocol))
        try:
            yield Running(address, simulator)
        finally:
            stop.set()
