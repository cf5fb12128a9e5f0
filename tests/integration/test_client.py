"""pillarbox.Client and SyncClient: the same over admin's REST API, PostgreSQL, and a SQLite file."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pillarbox import Client, SyncClient
from pillarbox.errors import FingerprintRefused
from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Failed, Filter, Moved, Storage
from pillarbox.inbox.sqlite import SQLiteStorage
from tests.support.admin import TOKENS, running_admin
from tests.support.inbox import incoming, numbers, opened

BOT = BotId(700_001)
KEY, OTHER_KEY = "A1" * 20, "B2" * 32
BODY = b'{"update_id": 9007199254740993, "message": {"text": "h\\ud800i", "n": 1.50}}'


@dataclass
class Reached:
    """A client of either kind; a blocking one in a thread, since admin runs in this test's loop."""

    client: Client | SyncClient
    storage: Storage
    by: str

    async def __call__(self, name: str, *arguments: Any, **named: Any) -> Any:
        call = getattr(self.client, name)
        if isinstance(self.client, Client):
            return await call(*arguments, **named)
        return await asyncio.to_thread(self._blocking, call, *arguments, **named)

    def _blocking(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        answer = call(*arguments, **named)
        return list(answer) if hasattr(answer, "__next__") else answer


@pytest.fixture(params=[Client, SyncClient])
def kind(request: pytest.FixtureRequest) -> type[Client | SyncClient]:
    given: type[Client | SyncClient] = request.param
    return given


@pytest.fixture(params=["rest", "postgresql", "sqlite"])
async def reached(
    request: pytest.FixtureRequest, kind: type[Client | SyncClient], tmp_path: Path
) -> AsyncIterator[Reached]:
    async with AsyncExitStack() as stack:
        token, by = None, "anna"
        if request.param == "sqlite":
            where = str(tmp_path / "bot.db")
            storage: Storage = SQLiteStorage(where)
            await storage.open()
            stack.push_async_callback(storage.close)
        else:
            where = request.getfixturevalue("postgres_url")
            storage = await stack.enter_async_context(opened(where))
        await storage.lock([BOT])
        if request.param == "rest":
            valkey = request.getfixturevalue("valkey_url")
            where = (await stack.enter_async_context(running_admin(where, valkey))).url
            by, token = "master", TOKENS["master"][1]
        client = kind(where, bot_id=BOT, token=token, by="anna")
        reached = Reached(client, storage, by)
        yield reached
        await (client.close() if isinstance(client, Client) else asyncio.to_thread(client.close))


async def fail(
    storage: Storage, *ids: int, error: str = "KeyError: 'city' at bot.py:31", **more: Any
) -> None:
    await storage.accept([incoming(n, lane=f"chat:{n}", **{"body": BODY} | more) for n in ids])
    for n in ids:
        (lease,) = await storage.claim(1)
        assert lease.update_id == n
        await storage.fail(lease.token, error)


async def test_a_failed_update_is_listed_as_the_server_sent_it(reached: Reached) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    await fail(reached.storage, 1201)
    (kept,) = await reached("failed_updates")
    assert (kept.update_id, kept.error) == (1201, "KeyError: 'city' at bot.py:31")
    assert before < kept.failed_at < before + timedelta(seconds=60)
    assert kept.failed_at.utcoffset() == timedelta(0)
    assert (kept.body, kept.payload) == (BODY, json.loads(BODY))
    assert (kept.kind, kept.lane, kept.chat_id, kept.user_id, kept.runs) == (
        "message",
        "chat:1201",
        1201,
        9,
        1,
    )
    assert kept == (await reached.storage.failed_updates(BOT))[0]


async def test_a_body_that_is_no_json_harms_no_list(reached: Reached) -> None:
    await fail(reached.storage, 1, body=b"\xff\x00{")
    await fail(reached.storage, 2, body=b"[" * 100_000)
    one, two = reversed(await reached("failed_updates"))
    assert (one.body, one.payload) == (b"\xff\x00{", None)
    assert (len(two.body), two.payload) == (100_000, None)


async def test_pages_hold_every_update_once_newest_first(reached: Reached) -> None:
    await reached.storage.accept([incoming(n, lane=f"chat:{n}") for n in range(230)])
    leases = await reached.storage.claim(230)
    for lease in leases:
        await reached.storage.fail(lease.token, "E at bot.py:1")
    assert [kept.update_id for kept in await reached("failed_updates")] == numbers(leases)[::-1]


async def test_the_filters(reached: Reached) -> None:
    await fail(reached.storage, 1)
    await fail(reached.storage, 2, error="ValueError at b.py:9", kind="poll")
    await fail(reached.storage, 3, error="KeyErrorLike: x")
    newest = (await reached("failed_updates"))[0].failed_at
    for given, found in (
        ({"error": "KeyError"}, [1]),
        ({"kind": "poll"}, [2]),
        ({"chat_id": 3}, [3]),
        ({"chat_id": 3, "kind": "poll"}, []),
        ({"since": newest}, [3]),
        ({"until": newest}, [2, 1]),
        ({"update_ids": [1, 3, 1 << 62, 1 << 63]}, [3, 1]),
        ({"update_ids": [1, 3], "error": "KeyError"}, [1]),
        ({"update_ids": []}, []),
    ):
        assert [kept.update_id for kept in await reached("failed_updates", **given)] == found
    assert await reached("retry_failed", error="KeyError") == Moved(1)
    assert await reached("discard_failed", until=newest) == Moved(1)
    assert [kept.update_id for kept in await reached("failed_updates")] == [3]


async def test_retry_of_all_and_of_these(reached: Reached) -> None:
    await fail(reached.storage, 1201, 1202, 1203, 1204)
    await reached.storage.accept([incoming(7, lane="chat:7")])
    moved = await reached("retry_failed", [1202, 1201, 7, 99, 1 << 62])
    assert moved == Moved(2, unknown=[UpdateId(99), UpdateId(1 << 62)], running=[UpdateId(7)])
    assert await reached("retry_failed", []) == Moved(0)
    assert await reached("retry_failed") == Moved(2)
    assert await reached("retry_failed") == Moved(0)
    assert set(numbers(await reached.storage.claim(9))) == {7, 1201, 1202, 1203, 1204}


async def test_many_are_waited_for_and_told_on_the_way(reached: Reached) -> None:
    """Over a thousand, admin makes a job of it."""
    await reached.storage.accept([incoming(n, lane=f"chat:{n % 60}") for n in range(1800)])
    while leases := await reached.storage.claim(60):
        await reached.storage.turn([Failed(lease.token, "KeyError: x at bot.py:1") for lease in leases], 0)
    told: list[int] = []
    assert await reached("retry_failed", error="KeyError", progress=told.append) == Moved(1800)
    assert sum(told) == 1800
    assert len(told) > 1
    assert await reached("failed_updates") == []


async def test_more_ids_than_a_request_takes(reached: Reached) -> None:
    await fail(reached.storage, 1, 2)
    moved = await reached("discard_failed", [*range(2500), 1])
    assert (moved.moved, len(moved.unknown)) == (2, 2498)


async def test_discarded_is_gone_and_the_audit_names_who(reached: Reached) -> None:
    await fail(reached.storage, 1, 2)
    assert await reached("discard_failed", [1]) == Moved(1)
    assert await reached("discard_failed") == Moved(1)
    assert [(a.by, a.action) for a in await reached.storage.audit(BOT)] == [(reached.by, "discard")] * 2


async def test_pins(reached: Reached) -> None:
    assert await reached("pin", 42) is None
    assert await reached("forget_key", 42) is None
    first = await reached.storage.pin(BOT, 42, KEY, "bot")
    assert await reached("pin", 42) == first
    trusted = await reached("trust_key", 42, OTHER_KEY.lower())
    assert (trusted.user_id, trusted.fingerprint) == (42, OTHER_KEY)
    assert await reached.storage.pinned(BOT, 42) == trusted
    with pytest.raises(FingerprintRefused):
        await reached("trust_key", 42, "not a key")
    assert await reached("forget_key", 42) == trusted
    assert await reached("pin", 42) is None
    noted = [(a.action, a.by, a.old_fingerprint, a.new_fingerprint) for a in await reached.storage.audit(BOT)]
    assert noted == [
        ("forget", reached.by, OTHER_KEY, None),
        ("trust", reached.by, KEY, OTHER_KEY),
        ("pin", "bot", None, KEY),
    ]


async def test_what_makes_no_sense_is_told_before_anything_is_done(reached: Reached) -> None:
    await fail(reached.storage, 1)
    for wrong, arguments, named in (
        (TypeError, ([1],), {"kind": "message"}),
        (TypeError, (1,), {}),
        (TypeError, ("1",), {}),
        (ValueError, (), {"since": datetime(2026, 1, 1)}),  # noqa: DTZ001 - what is refused
        (ValueError, (), {"error": "\0"}),
        (ValueError, (), {"chat_id": 1 << 63}),
    ):
        with pytest.raises(wrong):
            await reached("discard_failed", *arguments, **named)
    with pytest.raises(ValueError, match="64 bits"):
        await reached("pin", 1 << 63)
    assert len(await reached("failed_updates")) == 1
    assert await reached.storage.failed_updates(BOT, matching=Filter(error="KeyError"))


async def test_an_id_past_64_bits_is_unknown(reached: Reached) -> None:
    large = UpdateId(1 << 63)
    assert await reached("retry_failed", [large]) == Moved(0, unknown=[large])
