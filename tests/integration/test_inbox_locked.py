"""A row that somebody's open transaction holds: a person in psql, a dump, a client that hangs."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from pillarbox.errors import LeasesLocked, StorageLocked
from pillarbox.ids import Token
from pillarbox.inbox import Accepted, Failed, Finished, Retried
from tests.support.inbox import incoming, opened, query

LOCKED = "chat:3"


@contextmanager
def held(url: str, statement: str) -> Iterator[None]:
    with psycopg.connect(url) as stranger:
        stranger.execute(statement.encode())
        yield
        stranger.rollback()


ONE_LANE = "SELECT 1 FROM lanes WHERE lane = 'chat:3' FOR UPDATE"


async def test_the_other_leases_are_renewed(postgres_url: str) -> None:
    async with opened(postgres_url, lease=30) as inbox:
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(5)])
        leases = {lease.lane: lease.token for lease in await inbox.claim(5)}
        renewer = inbox.renewer()
        query(postgres_url, "UPDATE lanes SET lease_until = lease_until - interval '20 seconds'")
        try:
            with held(postgres_url, ONE_LANE), pytest.raises(LeasesLocked) as found:
                await asyncio.to_thread(renewer.renew, [*leases.values(), Token(99)])
            assert found.value.locked == frozenset({leases[LOCKED]})
            assert found.value.lost == frozenset({Token(99)})
            short = query(postgres_url, "SELECT lane FROM lanes WHERE lease_until < now() + interval '20 s'")
            assert short == [(LOCKED,)]
            assert await asyncio.to_thread(renewer.renew, list(leases.values())) == frozenset()
        finally:
            renewer.close()


@pytest.mark.parametrize("decided_first", [False, True])
async def test_the_other_ends_are_written_and_the_next_updates_leased(
    postgres_url: str, decided_first: bool
) -> None:
    """In both functions: `inbox_turn` and, where FSM state or retries are decided first, `inbox_run_turn`."""
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(9)])
        leases = {lease.lane: lease.token for lease in await inbox.claim(8)}
        ends = [Finished(token, (b"x",)) for token in leases.values()]
        more = [Retried(leases["chat:7"], "E", 60, 60, 5)] if decided_first else []
        with held(postgres_url, ONE_LANE):
            turn = await inbox.turn([*more, *ends], 4)
            assert turn.locked == frozenset({leases[LOCKED]})
            assert turn.lost == frozenset()
            assert [lease.lane for lease in turn.leases] == ["chat:8"]
        assert (await inbox.turn([Finished(leases[LOCKED], (b"x",))], 0)).lost == frozenset()
        assert query(postgres_url, "SELECT count(*) FROM outbox") == [(7 if decided_first else 8,)]


async def test_a_list_that_is_locked_keeps_only_what_goes_there(postgres_url: str) -> None:
    """Trimming the failed list counts in the bot's row."""
    async with opened(postgres_url, max_failed=1) as inbox:
        await inbox.try_lock([incoming(1).bot_id])
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(4)])
        one, two, three, four = [lease.token for lease in await inbox.claim(4)]
        await inbox.fail(one, "E")
        with held(postgres_url, "SELECT 1 FROM bots FOR UPDATE"):
            turn = await inbox.turn([Finished(two), Failed(three, "E"), Finished(four)], 0)
        assert turn.locked == {three}
        assert query(postgres_url, "SELECT count(*) FROM updates") == [(1,)]


async def test_the_other_updates_are_accepted(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(3, lane="chat:3")])
        batch = [incoming(10 + n, lane=f"chat:{n}") for n in range(8)]
        with held(postgres_url, ONE_LANE), pytest.raises(StorageLocked):
            await inbox.accept(batch)
        assert query(postgres_url, "SELECT count(*) FROM updates") == [(8,)]
        assert (await inbox.accept(batch)).count(Accepted.NEW) == 1
