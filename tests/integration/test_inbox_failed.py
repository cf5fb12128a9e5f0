"""DESIGN, Inbox 8: failed updates again, or never more."""

import asyncio

from psycopg import AsyncConnection

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Accepted, Failed, Finished, Moved
from tests.support.inbox import BOT, incoming, numbers, opened, query

WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def test_requeued_is_as_if_it_had_just_come(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2)])
        (first,) = await inbox.claim(1)
        await inbox.fail(first.token, "KeyError")
        assert await inbox.requeue(BOT, [UpdateId(1)], "ops") == Moved(1)
        (second,) = await inbox.claim(1)
        assert second.update_id == 2
        (again,) = (await inbox.turn([Finished(second.token)], 1)).leases
        assert (again.update_id, again.run, again.body) == (1, 1, b"{1}")
        assert again.row > second.row
        assert again.accepted_at > first.accepted_at
        assert await inbox.accept([incoming(1)]) == [Accepted.REPEAT]
        assert query(postgres_url, "SELECT update_id, by, action FROM audit") == [(1, "ops", "retry")]


async def test_each_id_is_told_what_became_of_it(postgres_url: str) -> None:
    """5 runs, 6 waits, 7 never came; 1 failed with two bodies."""
    async with opened(postgres_url) as inbox:
        bodies = [incoming(1, body=b"a"), incoming(1, body=b"b")]
        await inbox.accept([*bodies, incoming(5, lane="chat:5"), incoming(6, lane="chat:5")])
        for _ in bodies:
            leases = [lease for lease in await inbox.claim(8) if lease.lane == "chat:1"]
            await inbox.fail(leases[0].token, "E")
        ids = [UpdateId(n) for n in (1, 5, 6, 7)]
        expected = Moved(2, unknown=[UpdateId(7)], running=[UpdateId(5), UpdateId(6)])
        assert await inbox.discard(BotId(1), ids, "ops") == Moved(0, unknown=ids)
        assert await inbox.discard(BOT, ids, "ops") == expected
        assert query(postgres_url, "SELECT count(*), min(by), min(action) FROM audit") == [
            (2, "ops", "discard")
        ]
        assert query(postgres_url, "SELECT 1 FROM failed") == []


async def test_all_of_a_bot_in_more_than_one_batch(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(n, lane=f"chat:{n % 50}") for n in range(1200)])
        turn = await inbox.turn([], 2000)
        while turn.leases:
            turn = await inbox.turn([Failed(lease.token, "E") for lease in turn.leases], 2000)
        assert await inbox.requeue(BOT, None, "ops") == Moved(1200)
        assert query(postgres_url, "SELECT count(*), sum(pending) FROM lanes") == [(50, 1200)]
        turn = await inbox.turn([], 2000)
        order: dict[str, list[int]] = {}
        while turn.leases:
            for lease in turn.leases:
                order.setdefault(lease.lane, []).append(lease.update_id)
            turn = await inbox.turn([Finished(lease.token) for lease in turn.leases], 2000)
        assert all(ids == sorted(ids) for ids in order.values())
        assert sum(map(len, order.values())) == 1200


async def test_discarded_ids_are_known_until_their_time(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        await inbox.fail((await inbox.claim(1))[0].token, "E")
        assert await inbox.discard(BOT, None, "ops") == Moved(1)
        assert await inbox.accept([incoming(1)]) == [Accepted.REPEAT]
        assert numbers(await inbox.claim(1)) == []


async def test_a_batch_that_another_took_away_does_not_end_the_retry(postgres_url: str) -> None:
    """Two people at once: the first 500 are gone when their locks are free, and more stand behind them."""
    async with opened(postgres_url) as inbox, await AsyncConnection.connect(postgres_url) as other:
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(600)])
        for lease in await inbox.claim(600):
            await inbox.fail(lease.token, "E")
        await other.execute("DELETE FROM failed WHERE row_id <= (SELECT min(row_id) + 499 FROM failed)")
        retry = asyncio.create_task(inbox.requeue(BOT, None, "ops"))
        async with asyncio.timeout(10):
            while query(postgres_url, WAITS) == []:  # noqa: ASYNC110 - the database has no event for it
                await asyncio.sleep(0.02)
        await other.commit()
        assert await retry == Moved(100)
        assert query(postgres_url, "SELECT 1 FROM failed") == []
