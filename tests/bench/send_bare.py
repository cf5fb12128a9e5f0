"""The yardstick of the send bench: a bare aiohttp loop, 50 calls in flight, no queue."""

import asyncio
import sys

import aiohttp
import uvloop

from tests.support.simulator import TOKEN

IN_FLIGHT = 50


async def main(base: str, count: int) -> None:
    url = f"{base}/bot{TOKEN}/sendMessage"
    numbers = iter(range(count))

    async def caller(session: aiohttp.ClientSession) -> None:
        for n in numbers:
            params = {"chat_id": n % 1000 + 1, "text": f"message {n}"}
            async with session.post(url, json=params) as answer:
                await answer.json()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_FLIGHT)) as session:
        await asyncio.gather(*(caller(session) for _ in range(IN_FLIGHT)))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
