"""A project's django-aiogram pushes unchanged, and our sender makes the calls that its own worker makes."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

import pillarbox_simulator
from pillarbox_simulator import Running
from tests.support.sending import QUEUE, SenderProcess, dead, senders, until
from tests.support.simulator import TOKEN

SECOND = "700002:for-tests-only-BBBBBBBBBBBBBBBBBBBBBBBB"
THEIRS = "TELEGRAM_BOT_MESSAGE"
DEFAULTS = {
    "parse_mode": "HTML",
    "link_preview_is_disabled": True,
    "700002": {"protect_content": True},
}
CALLS = 28
Environment = Callable[..., dict[str, str]]


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


@asynccontextmanager
async def project(act: str, log: Path, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.django_project", act),
            env={**os.environ, "BOT_TOKENS": f"{TOKEN},{SECOND}", "QUEUE_KEY": THEIRS, **environment},
            stdout=output,
            stderr=output,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@asynccontextmanager
async def two_simulators() -> AsyncIterator[tuple[Running, Running]]:
    async with pillarbox_simulator.running() as theirs, pillarbox_simulator.running() as ours:
        yield theirs, ours


async def calls_of(simulator: Running) -> list[tuple[Any, ...]]:
    async def all_made() -> bool:
        return len(simulator.simulator.ledger) >= CALLS

    await until(all_made, 60)
    await asyncio.sleep(0.5)
    calls = (comparable(call) for call in simulator.simulator.ledger)
    return sorted(calls, key=lambda call: json.dumps(call, sort_keys=True))


def comparable(call: Any) -> tuple[Any, ...]:
    """Without the parts of the form that are the files: each program names them as it likes."""
    params = {name: value for name, value in call.params.items() if value != f"attach://{name}"}
    return call.bot_id, call.method, call.status, as_text(params)


def as_text(value: Any) -> Any:
    """As the Bot API reads a value: a form has only text, JSON has numbers; a file is found by its part."""
    match value:
        case dict():
            return {name: as_text(one) for name, one in value.items()}
        case list():
            return [as_text(one) for one in value]
        case bool():
            return str(value).lower()
        case str():
            return re.sub(r"^attach://.*", "attach://", value)
    return str(value)


def files_of(simulator: Running) -> list[tuple[str, bytes]]:
    return sorted(
        (file.filename, file.data) for bot in simulator.simulator.bots for file in bot.files.values()
    )


@pytest.mark.parametrize("serializer", ["json", "pickle"])
@pytest.mark.timeout(180)
async def test_the_calls_are_those_of_its_own_worker(
    serializer: str, redis: "Redis", valkey_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "project.log"
    common = {"REDIS_URL": valkey_url, "SERIALIZER": serializer}
    async with project("push", log, **common) as pushing:
        assert await pushing.wait() == 0, log.read_text()
    pushed = await redis.lrange(THEIRS, 0, -1)
    assert len(pushed) == CALLS
    assert {element[:1] for element in pushed} == {b"{" if serializer == "json" else b"\x80"}

    async with two_simulators() as (theirs, ours):
        async with project("consume", log, TELEGRAM_API_BASE=theirs.url, **common):
            expected = await calls_of(theirs)
        await redis.rpush(QUEUE, *pushed)
        settings = {
            "BOT_TOKENS": f"{TOKEN},{SECOND}",
            "DEFAULT_BOT_PROPERTIES": json.dumps(DEFAULTS),
            "ALLOW_PICKLE": str(serializer == "pickle").lower(),
        }
        async with senders([SenderProcess(valkey_url, ours.url, tmp_path, "one", **settings)]):
            made = await calls_of(ours)
        files = files_of(ours), files_of(theirs)

    for call, one in zip(made, expected, strict=True):
        assert call == one
    assert files[0] == files[1]
    assert {entry["reason"] for entry in await dead(redis)} == {"refused"}
    keys = [key async for key in redis.scan_iter(f"{QUEUE}:file:*")]
    assert len(keys) == 3
    for key in keys:
        assert 0 < await redis.ttl(key) <= 600, "what was sent is let go"
