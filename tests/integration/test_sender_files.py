"""Files by bytes: kept beside the queue, sent as a form, let go when nobody needs them any more."""

import base64
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox.ids import BotId
from pillarbox.outbound.lanes import Filing, Lanes, LeaseLost, Source
from pillarbox_simulator import Running
from tests.support.sending import QUEUE, SenderProcess, dead, senders, until, waiting
from tests.support.simulator import BOT_ID
from tests.support.simulator_client import SimulatorClient

Make = Callable[..., SenderProcess]
CAT = bytes(range(256)) * 64


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


@pytest.fixture
def make(valkey_url: str, simulator: Running, tmp_path: Path) -> Make:
    def sender(name: str = "one", **settings: str) -> SenderProcess:
        return SenderProcess(valkey_url, simulator.url, tmp_path, name, **settings)

    return sender


def photo(chat: int, id: str, **more: Any) -> str:
    params = {"chat_id": chat, "photo": "attach://cat", "caption": "a <b>&</b>", "has_spoiler": True}
    file = {"id": id, "filename": 'my "cat" é.png', **more}
    return json.dumps({"method": "sendPhoto", "params": params, "files": {"cat": file}})


def old_photo(chat: int, content: bytes) -> str:
    data = base64.b64encode(content).decode()
    file = {"__input_file__": "BufferedInputFile", "filename": "old.png", "chunk_size": 65536, "data": data}
    return json.dumps(
        {"__envelope__": 1, "function": "send_photo", "kwargs": {"chat_id": chat, "photo": file}}
    )


def received(simulator: Running) -> list[tuple[str, bytes]]:
    return [(file.filename, file.data) for bot in simulator.simulator.bots for file in bot.files.values()]


async def settled(redis: "Redis", control: SimulatorClient, calls: int) -> list[dict[str, Any]]:
    async def all_made() -> bool:
        return len(await control.ledger()) >= calls and not await waiting(redis)

    await until(all_made)
    return await control.ledger()


async def test_one_file_of_many_messages(
    redis: "Redis", control: SimulatorClient, simulator: Running, make: Make
) -> None:
    await redis.set(f"{QUEUE}:file:cat", CAT, ex=3600)
    await redis.rpush(QUEUE, *(photo(chat, "cat") for chat in range(1, 21)))
    async with senders([make("one"), make("two")]):
        calls = await settled(redis, control, 20)
    assert {call["status"] for call in calls} == {200}
    assert calls[0]["params"] | {"chat_id": 0} == {
        "chat_id": 0,
        "photo": "attach://cat",
        "caption": "a <b>&</b>",
        "has_spoiler": True,
        "cat": "attach://cat",
    }
    assert received(simulator) == [('my "cat" é.png', CAT)] * 20
    assert await redis.ttl(f"{QUEUE}:file:cat") > 3000, "it is the app's own"


async def test_a_file_for_one_message_outlives_its_failures(
    redis: "Redis", control: SimulatorClient, simulator: Running, make: Make
) -> None:
    await control.faults([{"kind": "502", "chat_id": 1, "times": 2}])
    await redis.set(f"{QUEUE}:file:cat", CAT, ex=3600)
    await redis.rpush(QUEUE, photo(1, "cat", once=True))
    async with senders([make()]):
        calls = await settled(redis, control, 3)
    assert [call["status"] for call in calls][-1] == 200
    assert received(simulator) == [('my "cat" é.png', CAT)]
    assert 0 < await redis.ttl(f"{QUEUE}:file:cat") <= 600


async def test_a_file_that_is_gone(redis: "Redis", control: SimulatorClient, make: Make) -> None:
    await redis.rpush(QUEUE, photo(1, "never-set"), photo(2, "never-set"))
    await redis.rpush(QUEUE, json.dumps({"method": "sendMessage", "params": {"chat_id": 1, "text": "next"}}))
    async with senders([make()]):
        (call,) = await settled(redis, control, 1)
        found = await dead(redis)
    assert call["params"]["text"] == "next"
    assert [(one["reason"], one["attempts"]) for one in found] == [("file_gone", 0)] * 2


async def test_big_files_of_old_producers(
    redis: "Redis", control: SimulatorClient, simulator: Running, make: Make
) -> None:
    """Past MAX_MESSAGE and past what a door files at once; the last one is past what a message may carry."""
    big = [os.urandom(3 << 20), os.urandom(15 << 20), os.urandom((20 << 20) + 1)]
    await redis.rpush(QUEUE, *(old_photo(chat, content) for chat, content in enumerate(big, 1)))
    async with senders([make()]):
        calls = await settled(redis, control, 2)
        (found,) = await dead(redis, "700001")
    assert {call["status"] for call in calls} == {200}
    assert {content for _, content in received(simulator)} == set(big[:2])
    assert found["reason"] == "too_big"
    assert json.loads(found["element"])["kwargs"]["chat_id"] == 3


async def test_filing_again_keeps_no_second_copy(redis: "Redis") -> None:
    lanes, bot = Lanes(redis, QUEUE), BotId(BOT_ID)
    filings = [Filing(old_photo(1, CAT).encode(), bot), Filing(old_photo(1, CAT).encode(), bot)]
    for _ in range(3):
        with pytest.raises(LeaseLost):
            await lanes.file(filings, Source("list", "lease", 5))
        assert await files(redis) == 2
    assert (await lanes.file(filings)).filed == 2
    assert (await lanes.file(filings)).filed == 2
    assert await files(redis) == 6, "each message has bytes of its own"


async def files(redis: "Redis") -> int:
    return len([key async for key in redis.scan_iter(f"{QUEUE}:file:*")])


async def test_a_killed_upload_is_sent_again(
    redis: "Redis", control: SimulatorClient, simulator: Running, make: Make
) -> None:
    await control.faults([{"kind": "hang_after", "chat_id": 1, "times": 1}])
    await redis.rpush(QUEUE, old_photo(1, CAT))
    async with senders([make("one", STOP_TIMEOUT="61")]) as (one,):
        await until(lambda: control.ledger())
        await one.kill()
    async with senders([make("one")]):
        await settled(redis, control, 2)
    assert received(simulator) == [("old.png", CAT)] * 2
    assert await dead(redis) == []


async def test_a_path_on_the_sender_s_disk_is_never_read(
    redis: "Redis", control: SimulatorClient, make: Make, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("do not send")
    tag = {"__input_file__": "FSInputFile", "path": str(secret), "filename": "x", "chunk_size": 65536}
    call = {"function": "send_document", "chat_id": 1, "document": tag}
    ours = {"method": "sendDocument", "params": {"chat_id": 1, "document": f"file://{secret}"}}
    named = {"method": "sendDocument", "params": {"chat_id": 1}, "files": {"document": {"id": str(secret)}}}
    await redis.rpush(QUEUE, *map(json.dumps, (call, ours, named)))
    async with senders([make()]):
        found = await until(lambda: three_dead(redis))
        assert await control.ledger() == []
    assert [one["reason"] for one in found] == ["file_path", "file_path", "files"]


async def three_dead(redis: "Redis") -> list[dict[str, Any]]:
    found = await dead(redis)
    return found if len(found) == 3 else []
