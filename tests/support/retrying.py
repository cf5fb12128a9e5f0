"""`python -m tests.support.retrying URL QUEUE`: retries all dead messages, and says when it has begun."""

import asyncio
import sys

from redis.asyncio import Redis

from pillarbox.outbound.acts import DeadActs
from pillarbox.outbound.dead import DeadFilter
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Scripts


def begun(moved: int) -> None:
    sys.stdout.write(f"{moved}\n")
    sys.stdout.flush()


async def main(url: str, queue: str) -> None:
    async with Redis.from_url(url) as redis:
        await DeadActs(Scripts(redis, queue), Reader()).retry(DeadFilter(), "killed", progress=begun)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
