"""A queue written by a shell script and by Node, from the published schema alone."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from redis.asyncio import Redis

from pillarbox_simulator import Running
from tests.support.sending import QUEUE, SenderProcess, dead, senders, until, waiting
from tests.support.simulator import BOT_ID
from tests.support.simulator_client import SimulatorClient

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples" / "other_languages"
SCHEMA = Draft202012Validator(json.loads((REPOSITORY / "docs" / "message.schema.json").read_text("utf-8")))
SHELL, NODE = str(EXAMPLES / "notify.sh"), str(EXAMPLES / "notify.mjs")
Program = Callable[..., None]
Delivered = Callable[[int], Awaitable[list[dict[str, Any]]]]
pytestmark = pytest.mark.other_languages
BYTES = bytes(range(256)) * 20


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


@pytest.fixture
def program(valkey_url: str) -> Program:
    def run(*command: str, given: str = "", **environment: str) -> None:
        done = subprocess.run(
            [shutil.which(command[0]) or f"{command[0]} is not installed", *command[1:]],
            env={"PATH": os.environ["PATH"], "REDIS_URL": valkey_url, **environment},
            input=given.encode(),
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()

    return run


@pytest.fixture
def delivered(
    redis: "Redis", valkey_url: str, control: SimulatorClient, simulator: Running, tmp_path: Path
) -> Delivered:
    """Everything at the door is what the schema allows, and so many calls are made."""

    async def calls(count: int) -> list[dict[str, Any]]:
        for element in await redis.lrange(QUEUE, 0, -1):
            SCHEMA.validate(json.loads(element))

        async def all_made() -> bool:
            return len(await control.ledger()) >= count and not await waiting(redis)

        async with senders([SenderProcess(valkey_url, simulator.url, tmp_path, "one")]):
            await until(all_made)
        assert await dead(redis) == []
        return await control.ledger()

    return calls


async def test_a_shell_script(
    program: Program, delivered: Delivered, simulator: Running, tmp_path: Path
) -> None:
    text = 'it\'s "quoted" \\ back\nsecond\tline é 🐈'
    report = tmp_path / 'a "b" ü.bin'
    report.write_bytes(BYTES)
    program("sh", SHELL, "42", text)
    program("sh", SHELL, "44", "from a bot", BOT=str(BOT_ID))
    program("sh", SHELL, "43", "report", str(report))
    first, second, third = sorted(await delivered(3), key=lambda call: str(call["params"]["chat_id"]))
    assert (first["method"], first["params"]) == ("sendMessage", {"chat_id": "42", "text": text})
    assert (second["method"], second["params"]["caption"]) == ("sendDocument", "report")
    assert third["params"] == {"chat_id": "44", "text": "from a bot"}
    assert files_of(simulator) == [(report.name, BYTES)]


async def test_node(program: Program, delivered: Delivered, simulator: Running, redis: "Redis") -> None:
    chart = base64.b64encode(BYTES).decode()
    orders = [{"chat": 42, "order": 17}, {"chat": 43, "order": 18, "chart": chart}]
    program("node", NODE, given=json.dumps(orders))
    program("node", NODE, given=json.dumps(orders[:1]))
    assert await redis.llen(QUEUE) == 4
    calls = await delivered(3)
    assert sorted(call["method"] for call in calls) == ["sendMessage", "sendMessage", "sendPhoto"]
    (text,) = [call["params"] for call in calls if call["params"]["chat_id"] == 42]
    assert text == {
        "chat_id": 42,
        "text": "Order <b>17</b> is on its way 🚚",
        "parse_mode": "HTML",
        "reply_markup": {"inline_keyboard": [[{"text": "Where is it?", "callback_data": "where:17"}]]},
    }
    assert files_of(simulator) == [("18.png", BYTES)]


def files_of(simulator: Running) -> list[tuple[str, bytes]]:
    return [(file.filename, file.data) for bot in simulator.simulator.bots for file in bot.files.values()]
