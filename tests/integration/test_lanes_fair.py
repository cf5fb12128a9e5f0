"""A chat that floods, and one whose handler never ends, hold nobody else: on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pillarbox.inbox import Finished, Limits, Storage
from pillarbox.inbox.sqlite import SQLiteStorage
from tests.support.inbox import BOT, incoming, opened

FLOOD, CHATS, EACH, SLOTS = 5_000, 100, 3, 8
MOST_OF_THE_FLOOD = 60


@pytest.fixture(params=["postgres", "sqlite"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    if request.param == "postgres":
        async with opened(request.getfixturevalue("postgres_url")) as postgres:
            yield postgres
        return
    sqlite = SQLiteStorage.from_url(str(tmp_path / "bot.db"), Limits())
    await sqlite.open()
    assert await sqlite.try_lock([BOT])
    yield sqlite
    await sqlite.close()


async def accept_all(storage: Storage, lanes: list[str]) -> None:
    updates = [incoming(number, lane) for number, lane in enumerate(lanes, 1)]
    for first in range(0, len(updates), 500):
        await storage.accept(updates[first : first + 500])


async def test_others_do_not_wait_for_a_flood(storage: Storage) -> None:
    others = [f"chat:{1 + n % CHATS}" for n in range(CHATS * EACH)]
    await accept_all(storage, ["chat:9999"] * FLOOD + others)
    waiting, of_the_flood = len(others), 0
    ends: list[Finished] = []
    while waiting:
        turn = await storage.turn(ends, SLOTS)
        mine = [lease for lease in turn.leases if lease.lane == "chat:9999"]
        assert len(mine) <= 1
        of_the_flood += len(mine)
        waiting -= len(turn.leases) - len(mine)
        ends = [Finished(lease.token) for lease in turn.leases]
    assert 0 < of_the_flood <= MOST_OF_THE_FLOOD


async def test_a_lane_whose_handler_never_ends_holds_no_other(storage: Storage) -> None:
    await storage.accept([incoming(1, "chat:9999"), incoming(2, "chat:9999")])
    assert len(await storage.claim(1)) == 1
    await storage.accept([incoming(3 + n, f"chat:{n % 50}") for n in range(200)])
    done = 0
    ends: list[Finished] = []
    while done < 200:
        turn = await storage.turn(ends, SLOTS)
        assert turn.leases, "others wait for the stuck lane"
        assert all(lease.lane != "chat:9999" for lease in turn.leases)
        done += len(turn.leases)
        ends = [Finished(lease.token) for lease in turn.leases]
