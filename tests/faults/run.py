"""One run of the kill test: load, kills, and what the ledger says at the end."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import redis.asyncio as redis
from redis.exceptions import RedisError

from tests.faults import chaos
from tests.faults.hands import Hands
from tests.faults.verdict import Key, Verdict, judge, key_of, overlaps, reruns
from tests.support.simulator_client import SimulatorClient
from tests.support.stack import BOT_ID, Stack

DOOR = "pillarbox:outbound"
KILLED = ("ingest", "dispatcher", "sender", "run")
SENDERS = ("sender", "run")
SETTLE = 180.0
ANSWER = 0.3  # seconds until the Bot API answers: senders have their hands full when they are killed


@dataclass(frozen=True, slots=True)
class Load:
    """Updates and pushed messages, spread over the chats and over `seconds`."""

    updates: int = 2000
    chats: int = 200
    pushed: int = 1000
    seconds: float = 30.0

    @property
    def said(self) -> list[tuple[int, int]]:
        return [(1000 + i % self.chats, i // self.chats + 1) for i in range(self.updates)]

    @property
    def keys(self) -> list[Key]:
        said = [("u", chat, number) for chat, number in self.said]
        return said + [("p", chat, number) for chat, number in self.pushes]

    @property
    def pushes(self) -> list[tuple[int, int]]:
        return [(1000 + i % self.chats, i // self.chats + 1) for i in range(self.pushed)]


@dataclass(slots=True)
class Run:
    stack: Stack
    simulator: SimulatorClient
    redis: "redis.Redis"
    seed: int
    load: Load
    hands: Hands = field(init=False)

    def __post_init__(self) -> None:
        self.hands = Hands(self.redis, DOOR)

    async def __call__(self) -> Verdict:
        services = [s.name for module in KILLED for s in self.stack.of(module)]
        servers = chaos.SERVERS if self.stack.store == "postgres" else ("valkey",)
        kills = chaos.plan(self.seed, services, self.load.seconds, servers)
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._say())
            group.create_task(self._push())
            for kill in kills:
                group.create_task(self._kill(kill))
        print(f"seed {self.seed}: load and {len(kills)} kills done in {time.monotonic() - started:.1f} s")
        await self._settle()
        print(f"seed {self.seed}: settled after {time.monotonic() - started:.1f} s")
        return await self._judge()

    async def _say(self) -> None:
        """As Telegram would: what users wrote waits there until ingest has taken it."""
        said = self.load.said
        step = max(1, len(said) // 100)
        for first in range(0, len(said), step):
            await self.simulator.say(
                [
                    {"bot_id": BOT_ID, "chat_id": chat, "user_id": chat, "text": f"#{chat}:{number}"}
                    for chat, number in said[first : first + step]
                ]
            )
            await asyncio.sleep(self.load.seconds / 100)

    async def _push(self) -> None:
        """As any app would: pushes again until Redis has said that it has it; the `id` makes that safe."""
        for chat, number in self.load.pushes:
            element = {
                "id": f"push-{chat}-{number}",
                "method": "sendMessage",
                "params": {"chat_id": chat, "text": f"#p{chat}:{number}"},
            }
            await self._push_one(json.dumps(element).encode())
            await asyncio.sleep(self.load.seconds / self.load.pushed)

    async def _push_one(self, element: bytes) -> None:
        while True:
            try:
                await self.redis.rpush(DOOR, element)
                return
            except (RedisError, OSError):
                await asyncio.sleep(0.1)

    async def _kill(self, kill: chaos.Kill) -> None:
        await asyncio.sleep(kill.at)
        if kill.name in chaos.SERVERS:
            server = self.stack.postgres if kill.name == "postgres" else self.stack.valkey
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(kill.down)
            await asyncio.to_thread(server.start)
            return
        service = self.stack.services[kill.name]
        await asyncio.to_thread(service.kill)
        async with asyncio.TaskGroup() as group:
            if service.module in SENDERS:
                group.create_task(self.hands.note(service.name))
            await asyncio.sleep(kill.down)
            await asyncio.to_thread(service.start)

    async def _settle(self) -> None:
        """Until everything is in the ledger or listed as dead, or nothing more can be hoped for."""
        wanted = set(self.load.keys)
        until = time.monotonic() + SETTLE
        while time.monotonic() < until:
            sent = {key for call in await self.simulator.effects() if (key := key_of(call["params"]["text"]))}
            if not wanted - sent - await self.hands.dead():
                await asyncio.sleep(2.0)  # whatever would still come twice
                return
            await asyncio.sleep(0.5)

    async def _judge(self) -> Verdict:
        calls = await self.simulator.effects()
        sent = [key for call in calls if (key := key_of(call["params"]["text"]))]
        verdict = judge(self.load.keys, sent, await self.hands.dead(), self.hands.held)
        journal = Path(self.stack.folder / "journal").read_text().splitlines()
        verdict.overlaps = overlaps(journal, self.stack.killed_at)
        verdict.reruns = reruns(journal)
        return verdict


async def run(stack: Stack, seed: int, load: Load) -> Verdict:
    async with aiohttp.ClientSession() as session:
        simulator = SimulatorClient(stack.simulator.url, session)
        await simulator.clock(20)
        await simulator.faults([{"kind": "slow", "method": "sendMessage", "seconds": ANSWER}])
        client = redis.Redis.from_url(stack.valkey.url, socket_timeout=5)
        try:
            return await Run(stack, simulator, client, seed, load)()
        finally:
            await client.aclose()
