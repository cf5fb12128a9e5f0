"""One run of the kill test: load, kills, and what the ledger says at the end."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import redis.asyncio as redis
from redis.exceptions import RedisError

from tests.faults import chaos
from tests.faults.failures import failed_list
from tests.faults.hands import Hands
from tests.faults.load import Load
from tests.faults.verdict import Verdict, judge, key_of, overlaps, reruns
from tests.support.simulator_client import SimulatorClient
from tests.support.stack import BOT_ID, Service, Stack

DOOR = "pillarbox:outbound"
KILLED = ("ingest", "dispatcher", "sender", "run")
SENDERS = ("sender", "run")
HANDLING = ("dispatcher", "run")
SETTLE = 300.0
ANSWER = 0.3  # seconds until the Bot API answers: senders have their hands full when they are killed


@dataclass(slots=True)
class Run:
    stack: Stack
    simulator: SimulatorClient
    redis: "redis.Redis"
    load: Load
    hands: Hands = field(init=False)
    down: set[str] = field(default_factory=set)
    deaths: int = 0

    def __post_init__(self) -> None:
        self.hands = Hands(self.redis, DOOR)

    async def __call__(self) -> Verdict:
        services = [s.name for module in KILLED for s in self.stack.of(module)]
        servers = chaos.SERVERS if self.stack.store == "postgres" else ("valkey",)
        kills = chaos.plan(self.load.seed, services, self.load.seconds, servers)
        started = time.monotonic()
        async with asyncio.TaskGroup() as minding:
            minder = minding.create_task(self._mind())
            async with asyncio.TaskGroup() as group:
                group.create_task(self._say())
                group.create_task(self._push())
                for kill in kills:
                    group.create_task(self._kill(kill))
            print(f"seed {self.load.seed}: load and {len(kills)} kills in {time.monotonic() - started:.1f} s")
            await self._settle()
            minder.cancel()
        print(f"seed {self.load.seed}: settled after {time.monotonic() - started:.1f} s")
        return await self._judge()

    async def _mind(self) -> None:
        """As a supervisor would: what an update has killed is started again."""
        minded = [s for module in HANDLING for s in self.stack.of(module)]
        while True:
            for service in minded:
                if service.name not in self.down and service.ended():
                    self.deaths += 1
                    await self._start_again(service, 0.2)
            await asyncio.sleep(0.05)

    async def _say(self) -> None:
        """As Telegram would: what users wrote waits there until ingest has taken it."""
        said = self.load.said
        step = max(1, len(said) // 100)
        for first in range(0, len(said), step):
            await self.simulator.say(
                [
                    {"bot_id": BOT_ID, "chat_id": chat, "user_id": chat, "text": self.load.text(chat, number)}
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
        self.down.add(service.name)
        await asyncio.to_thread(service.kill)
        await self._start_again(service, kill.down)
        self.down.discard(service.name)

    async def _start_again(self, service: Service, down: float) -> None:
        async with asyncio.TaskGroup() as group:
            if service.module in SENDERS:
                group.create_task(self.hands.note(service.name))
            await asyncio.sleep(down)
            await asyncio.to_thread(service.start)

    async def _settle(self) -> None:
        """Until everything is in the ledger or listed as dead, or nothing more can be hoped for."""
        wanted, trouble = set(self.load.answered), set(self.load.trouble)
        until = time.monotonic() + SETTLE
        while time.monotonic() < until:
            sent = {key for call in await self.simulator.effects() if (key := key_of(call["params"]["text"]))}
            left = wanted - sent - await self.hands.dead()
            if not left and not trouble - set(await failed_list(self.stack)):
                await asyncio.sleep(2.0)  # whatever would still come twice
                return
            await asyncio.sleep(0.5)

    async def _judge(self) -> Verdict:
        calls = await self.simulator.effects()
        sent = [key for call in calls if (key := key_of(call["params"]["text"]))]
        verdict = judge(self.load.answered, sent, await self.hands.dead(), self.hands.held)
        journal = Path(self.stack.folder / "journal").read_text().splitlines()
        verdict.overlaps = overlaps(journal, self.stack.killed_at)
        verdict.reruns = reruns(journal)
        verdict.deaths = self.deaths
        failed = Counter(await failed_list(self.stack))
        verdict.misfiled = sorted(
            (failed - Counter(list(self.load.trouble))) + (Counter(list(self.load.trouble)) - failed)
        )
        return verdict


async def run(stack: Stack, load: Load) -> Verdict:
    async with aiohttp.ClientSession() as session:
        simulator = SimulatorClient(stack.simulator.url, session)
        await simulator.clock(20)
        await simulator.faults([{"kind": "slow", "method": "sendMessage", "seconds": ANSWER}])
        client = redis.Redis.from_url(stack.valkey.url, socket_timeout=5)
        try:
            return await Run(stack, simulator, client, load)()
        finally:
            await client.aclose()
