"""The simulator's control plane, as tests and load talk to it."""

import asyncio
from typing import Any

import aiohttp


class SimulatorClient:
    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def _call(self, verb: str, path: str, body: Any = None, /, **query: Any) -> Any:
        async with self._session.request(verb, f"{self._url}{path}", json=body, params=query) as answer:
            answer.raise_for_status()
            return await answer.json()

    async def say(self, messages: list[dict[str, Any]]) -> Any:
        """Users write; the updates go out by webhook."""
        return await self._call("POST", "/_ctl/messages", messages)

    async def clock(self, scale: float) -> None:
        await self._call("PUT", "/_ctl/clock", {"scale": scale})

    async def faults(self, faults: list[dict[str, Any]]) -> None:
        await self._call("PUT", "/_ctl/faults", faults)

    async def ledger(self, **query: Any) -> list[dict[str, Any]]:
        """Every Bot API call that came in, oldest first."""
        return list((await self._call("GET", "/_ctl/ledger", **query))["calls"])

    async def effects(self, method: str = "sendMessage") -> list[dict[str, Any]]:
        return [call for call in await self.ledger(method=method) if call["effect"]]

    async def settle(self, wanted: int, timeout: float, step: float = 0.25) -> bool:
        """Whether `wanted` calls have taken effect within `timeout` seconds."""
        async with asyncio.timeout(timeout + 30):
            loop = asyncio.get_running_loop()
            until = loop.time() + timeout
            while len(await self.effects()) < wanted:
                if loop.time() > until:
                    return False
                await asyncio.sleep(step)
        return True
