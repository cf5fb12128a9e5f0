"""DESIGN, Inbox 4 to 7: order in a lane, the count of runs, the fence, and the outbox of what finished."""

import asyncio

import pytest

from pillarbox.ids import Token
from pillarbox.inbox import End, Failed, Finished, Later, Lease, Released
from pillarbox.inbox.postgres import PostgresStorage
from tests.support.inbox import incoming, numbers, opened, query

LEASE = 0.4


async def expire() -> None:
    """Past the lease, by the database's clock, and past the pause between two looks for vanished ones."""
    await asyncio.sleep(LEASE + 0.3)


async def claim_one(inbox: PostgresStorage) -> Lease:
    (lease,) = await inbox.claim(1)
    return lease


async def test_a_lane_goes_on_with_its_next_update_under_a_new_token(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2), incoming(3, lane="chat:2")])
        first = await inbox.claim(8)
        assert sorted(numbers(first)) == [1, 3]
        turn = await inbox.turn([Finished(lease.token) for lease in first], 8)
        assert numbers(turn.leases) == [2]
        assert turn.leases[0].token not in {lease.token for lease in first}
        assert [lease.run for lease in (*first, *turn.leases)] == [1, 1, 1]
        assert (await inbox.turn([Finished(turn.leases[0].token)], 8)).leases == []
        assert query(postgres_url, "SELECT 1 FROM lanes UNION ALL SELECT 1 FROM updates") == []


async def test_without_slots_no_lane_goes_on(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2)])
        assert await inbox.finish((await claim_one(inbox)).token)
        assert numbers(await inbox.claim(1)) == [2]


async def test_slots_count_what_goes_on(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(n, lane=f"chat:{n % 3}") for n in range(9)])
        leases = await inbox.claim(3)
        turn = await inbox.turn([Finished(lease.token) for lease in leases], 2)
        assert len(turn.leases) == 2


async def test_a_repeated_turn_finishes_nothing_twice(postgres_url: str) -> None:
    """Its answer may have been lost with the connection: the lane's next update must not go with it."""
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2)])
        ends = [Finished((await claim_one(inbox)).token, (b"1",))]
        assert numbers((await inbox.turn(ends, 1)).leases) == [2]
        again = await inbox.turn(ends, 1)
        assert not again.leases
        assert again.lost == {ends[0].token}
        assert query(postgres_url, "SELECT update_id FROM updates") == [(2,)]
        assert query(postgres_url, "SELECT count(*) FROM outbox") == [(1,)]


async def test_a_hot_lane_lets_others_through(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(n) for n in range(100)])
        await inbox.accept([incoming(1000, lane="chat:2")])
        turn = await inbox.turn([], 1)
        before = 0
        while turn.leases[0].lane != "chat:2":
            before += 1
            turn = await inbox.turn([Finished(turn.leases[0].token)], 1)
        assert before < 30


@pytest.mark.parametrize("end", ["finish", "fail", "release", "later"])
async def test_a_lost_lease_changes_nothing_and_is_named(postgres_url: str, end: str) -> None:
    async with opened(postgres_url, lease=LEASE) as one, opened(postgres_url, lease=30) as other:
        await one.accept([incoming(1)])
        old = (await claim_one(one)).token
        await expire()
        new = await claim_one(other)
        assert (new.run, new.update_id) == (2, 1)
        before = query(postgres_url, "SELECT * FROM lanes")
        ends: dict[str, End] = {
            "finish": Finished(old, (b"x",)),
            "fail": Failed(old, "E"),
            "release": Released(old),
            "later": Later(old, 1),
        }
        assert (await one.turn([ends[end]], 8)).lost == {old}
        assert query(postgres_url, "SELECT * FROM lanes") == before
        assert query(postgres_url, "SELECT 1 FROM outbox UNION ALL SELECT 1 FROM failed") == []
        assert await other.finish(new.token)


async def test_lost_and_held_ends_in_one_turn(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        held = (await claim_one(inbox)).token
        turn = await inbox.turn([Finished(Token(99), (b"no",)), Finished(held, (b"a", b"b"))], 0)
        assert turn.lost == {99}
        assert query(postgres_url, "SELECT n, body FROM outbox ORDER BY n") == [(0, b"a"), (1, b"b")]


async def test_an_expired_lease_that_nobody_took_still_counts(postgres_url: str) -> None:
    """In the very turn that looks for expired ones, too: no lane is ended and rescued at once."""
    async with opened(postgres_url, lease=LEASE) as inbox:
        await inbox.accept([incoming(1), incoming(2), incoming(3)])
        token = (await claim_one(inbox)).token
        await expire()
        assert await inbox.finish(token, (b"x",))
        assert query(postgres_url, "SELECT pending, runs, token FROM lanes") == [(2, 0, None)]
        token = (await claim_one(inbox)).token
        await expire()
        assert await inbox.later(token, 60)
        assert query(postgres_url, "SELECT runs, not_before > now() FROM lanes") == [(0, True)]


async def test_renewed_leases_hold(postgres_url: str) -> None:
    async with opened(postgres_url, lease=LEASE) as inbox:
        await inbox.accept([incoming(1)])
        token = (await claim_one(inbox)).token
        renewer = inbox.renewer()
        for _ in range(4):
            await asyncio.sleep(LEASE / 2)
            assert await asyncio.to_thread(renewer.renew, [token, Token(99)]) == {99}
        assert await inbox.claim(8) == []
        renewer.close()


async def test_a_release_gives_the_run_back(postgres_url: str) -> None:
    """Six clean stops in a row are no crash."""
    async with opened(postgres_url, max_handler_runs=2) as inbox:
        await inbox.accept([incoming(1)])
        for _ in range(6):
            lease = await claim_one(inbox)
            assert (lease.run, lease.suspect) == (1, False)
            assert await inbox.release(lease.token)
        assert query(postgres_url, "SELECT runs FROM lanes") == [(0,)]


async def test_later_waits_is_not_counted_and_holds_its_lane(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2), incoming(3, lane="chat:2")])
        lease = await claim_one(inbox)
        assert (lease.update_id, await inbox.later(lease.token, 0.5)) == (1, True)
        assert numbers(await inbox.claim(8)) == [3]
        await asyncio.sleep(0.8)
        again = await claim_one(inbox)
        assert (again.update_id, again.run) == (1, 1)


async def test_runs_without_an_end_lead_to_the_failed_list_unrun(postgres_url: str) -> None:
    async with opened(postgres_url, lease=LEASE, max_handler_runs=2) as inbox:
        await inbox.accept([incoming(1), incoming(2)])
        for run in (1, 2):
            lease = await claim_one(inbox)
            assert (lease.update_id, lease.run) == (1, run)
            await expire()
        turn = await inbox.turn([], 8)
        assert (turn.failed, numbers(turn.leases), turn.leases[0].run) == (1, [2], 1)
        rows = query(postgres_url, "SELECT update_id, runs, error, lane, kind, chat_id, body FROM failed")
        assert rows == [(1, 2, "NoEnd: 2 runs had no end", "chat:1", "message", 1, b"{1}")]


async def test_suspects_run_alone(postgres_url: str) -> None:
    async with opened(postgres_url, lease=LEASE) as inbox:
        await inbox.accept([incoming(1, lane="chat:1"), incoming(2, lane="chat:2")])
        for _ in range(2):
            assert len(await inbox.claim(8)) == 2
            await expire()
        await inbox.accept([incoming(3, lane="chat:3"), incoming(4, lane="chat:1")])
        turn = await inbox.turn([], 8)
        assert (numbers(turn.leases), turn.suspects) == ([3], True)
        assert (await inbox.turn([Finished(turn.leases[0].token)], 0)).suspects
        found = []
        for _ in range(2):
            turn = await inbox.turn([], 8, suspects=True)
            ((lease),) = turn.leases
            assert (lease.suspect, lease.run) == (True, 3)
            found.append(lease.update_id)
            await inbox.finish(lease.token)
        assert sorted(found) == [1, 2]
        turn = await inbox.turn([], 8, suspects=True)
        assert (numbers(turn.leases), turn.leases[0].suspect, turn.suspects) == ([4], False, False)


async def test_a_failed_update_lets_its_lane_go_on(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2)])
        lease = await claim_one(inbox)
        turn = await inbox.turn([Failed(lease.token, "KeyError: \0 \ud800 at bot.py:31")], 8)
        assert (turn.failed, numbers(turn.leases)) == (1, [2])
        rows = query(
            postgres_url, "SELECT update_id, runs, error, user_id, accepted_at < failed_at FROM failed"
        )
        assert rows == [(1, 1, "KeyError:  ? at bot.py:31", 9, True)]


async def test_the_failed_list_keeps_the_newest_and_what_was_just_written(postgres_url: str) -> None:
    async with opened(postgres_url, max_failed=3) as inbox:
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(5)])
        for _ in range(5):
            await inbox.fail((await claim_one(inbox)).token, "E")
        assert query(postgres_url, "SELECT update_id FROM failed ORDER BY 1") == [(2,), (3,), (4,)]
        query(postgres_url, "UPDATE failed SET failed_at = failed_at + interval '1 hour'")
        await inbox.accept([incoming(9)])
        await inbox.fail((await claim_one(inbox)).token, "E")
        kept = query(postgres_url, "SELECT update_id FROM failed ORDER BY 1")
        assert (9,) in kept
        assert query(postgres_url, "SELECT failed_trimmed FROM bots") == [(6 - len(kept),)]


async def test_a_lane_without_rows_repairs_itself(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2, lane="chat:2")])
        query(postgres_url, "DELETE FROM updates WHERE update_id = 1")
        assert numbers(await inbox.claim(8)) == [2]
        assert query(postgres_url, "SELECT lane FROM lanes") == [("chat:2",)]


async def test_a_lane_that_lost_its_row_while_it_ran_counts_again(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2)])
        query(postgres_url, "UPDATE lanes SET pending = 7")
        lease = await claim_one(inbox)
        query(postgres_url, "DELETE FROM updates")
        assert await inbox.finish(lease.token)
        assert query(postgres_url, "SELECT 1 FROM lanes") == []
        await inbox.accept([incoming(3)])
        assert numbers(await inbox.claim(8)) == [3]
