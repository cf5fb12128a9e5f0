"""A connection of its own for a pop that blocks. It is never cancelled: Redis itself ends it, by its id."""

from typing import Any

from redis.asyncio import Redis

from pillarbox.errors import QueueUnavailable
from pillarbox.outbound.connection import Client, passing
from pillarbox.outbound.wire import Session


class Blocking:
    """`label` names the connection and the run of the server that it is of: ids begin anew with a restart."""

    def __init__(self, client: Client, redis: "Redis") -> None:
        self._client = client
        self._redis = redis
        self._session: Session | None = None
        self._id = 0
        self.label = ""

    async def open(self) -> None:
        with passing():
            if self._client.wire is not None:
                self._session = await self._client.wire.session()
        self._id = int(await self.call("CLIENT", "ID"))
        self.label = f"{await run_id(self._redis)}/{self._id}"

    async def call(self, *parts: str | float) -> Any:
        """Raises QueueUnavailable. Never on another connection than the one that `label` names."""
        with passing():
            if self._session is not None:
                return await self._session.call(*parts)
            return await self._client.execute_command(*parts)  # type: ignore[no-untyped-call]

    async def unblock(self) -> None:
        """Ends the pop as its timeout would: what it has taken is answered."""
        if self._id:
            try:
                with passing():
                    await self._redis.client_unblock(self._id)
            except QueueUnavailable:
                return

    async def close(self) -> None:
        try:
            with passing():
                await self._client.aclose()
        except QueueUnavailable:
            return


async def run_id(redis: "Redis") -> str:
    with passing():
        info = await redis.info("server")
    return str(info["run_id"])


async def end_connection(redis: "Redis", label: str) -> None:
    """Ends another worker's blocked connection, if it is of this run of the server."""
    run, _, number = label.partition("/")
    if number and run == await run_id(redis):
        with passing():
            await redis.client_kill_filter(_id=number)
