"""Rules 4 and 5: lanes, runs, suspects."""

import asyncio
import time
from collections.abc import Callable

from pillarbox.ids import Token
from pillarbox.inbox.contract.given import (
    BOT,
    SHORT,
    Given,
    case,
    claimed,
    crashed,
    drained,
    ids,
    update,
)
from pillarbox.inbox.states import End, Finished, Incoming, Later, Released, Retried, Uncounted


@case(4)
async def a_lane_runs_one_update_at_a_time(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n) for n in (1, 2, 3)])
    assert ids(leases := await storage.claim(10)) == [1]
    assert await storage.claim(10) == []
    assert await storage.finish(leases[0].token)
    assert ids(await storage.claim(10)) == [2]


@case(4)
async def lanes_run_side_by_side(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n % 8) for n in range(16)])
    assert sorted(ids(await storage.claim(20))) == list(range(8))


@case(4)
async def chat_42_and_user_42_are_two_lanes(given: Given) -> None:
    storage = await given.storage()
    of_user = Incoming(BOT, update(2).update_id, "inline_query", "user:42", b"{}", None, 42)
    await storage.accept([update(1, 42), of_user])
    assert {lease.lane for lease in await storage.claim(2)} == {"chat:42", "user:42"}


@case(4)
async def no_more_is_leased_than_there_are_slots(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n) for n in range(10)])
    assert await storage.claim(0) == []
    assert len(await storage.claim(3)) == 3
    assert len(await storage.claim(30)) == 7


@case(4)
async def the_lane_that_has_waited_longest_comes_first(given: Given) -> None:
    storage = await given.storage()
    for n in range(5):
        await storage.accept([update(n, n)])
    assert [ids(await storage.claim(1)) for _ in range(5)] == [[0], [1], [2], [3], [4]]


@case(4)
async def a_lane_goes_on_where_its_update_finished(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1), update(2), update(3, 2)])
    (lease,) = await storage.claim(1)
    turn = await storage.turn([Finished(lease.token)], 1)
    assert ids(turn.leases) == [2]


@case(4)
async def a_lane_that_is_flooded_lets_others_in(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([*(update(n, 1) for n in range(200)), update(1000, 2)])
    ran: list[int] = []
    ends: list[End] = []
    while 1000 not in ran:
        turn = await storage.turn(ends, 1)
        ran += ids(turn.leases)
        ends = [Finished(lease.token) for lease in turn.leases]
    assert len(ran) < 100


@case(4)
async def a_busy_lane_holds_no_other(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, 1), update(2, 1), update(3, 2)])
    first, second = await storage.claim(2)
    busy, other = (first, second) if first.lane == "chat:1" else (second, first)
    assert await storage.finish(other.token)
    await storage.accept([update(4, 2)])
    assert ids(await storage.claim(5)) == [4]
    assert await storage.finish(busy.token)


@case(5)
async def a_run_is_counted_for_its_update_alone(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1), update(2)])
    (first,) = await storage.claim(1)
    (again,) = await claimed(storage)
    assert (first.run, again.run, again.update_id) == (1, 2, 1)
    assert await storage.finish(again.token)
    (after,) = await storage.claim(1)
    assert (after.update_id, after.run) == (2, 1)


@case(5)
async def a_clean_stop_gives_the_run_back(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1), update(2)])
    for _ in range(6):
        (lease,) = await storage.claim(1)
        assert (lease.update_id, lease.run, lease.suspect) == (1, 1, False)
        assert await storage.release(lease.token)
    assert ids(await drained(storage)) == [1, 2]


@case(5)
async def a_run_that_is_uncounted_keeps_its_lease(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1), update(2)])
    for _ in range(6):
        (lease,) = await storage.claim(1)
        assert (lease.update_id, lease.run) == (1, 1)
        assert await storage.uncount(lease.token)
        assert await storage.uncount(lease.token)
        assert await storage.claim(1) == []
        assert await storage.release(lease.token)
    (lease,) = await storage.claim(1)
    assert (await storage.turn([Uncounted(lease.token), Finished(lease.token)], 0)).lost == frozenset()
    assert not await storage.uncount(lease.token)
    assert ids(await drained(storage)) == [2]


@case(5)
async def a_process_that_dies_after_it_uncounted_has_not_counted(given: Given) -> None:
    storage = await given.storage(lease=SHORT, max_handler_runs=3)
    await storage.accept([update(1)])
    for _ in range(4):
        (lease,) = await claimed(storage)
        assert (lease.run, lease.suspect) == (1, False)
        assert await storage.uncount(lease.token)
    (lease,) = await claimed(storage)
    assert await storage.fail(lease.token, "E")
    assert (await storage.failed_updates(BOT))[0].runs == 1


@case(5)
async def what_was_uncounted_ends_as_any_other(given: Given) -> None:
    """A crash before it still counts, whatever the end."""
    ends: list[Callable[[Token], End]] = [Released, lambda token: Later(token, 0)]
    storage = await given.storage(lease=SHORT)
    for n, end in enumerate(ends):
        await storage.accept([update(n, n)])
        assert len(await storage.claim(1)) == 1
        (second,) = await claimed(storage)
        assert second.run == 2
        await storage.turn([Uncounted(second.token)], 0)
        await storage.turn([end(second.token)], 0)
        (third,) = await claimed(storage)
        assert third.run == 2
        await storage.turn([Uncounted(third.token)], 0)
        assert await storage.fail(third.token, "E")
    assert [kept.runs for kept in await storage.failed_updates(BOT)] == [2, 2]


@case(5)
async def an_error_that_may_pass_is_tried_again_and_fails_in_the_end(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, 1), update(2, 1)])
    for n in range(3):
        (lease,) = await claimed(storage)
        assert (lease.update_id, lease.run) == (1, 1)
        again = Retried(lease.token, f"OSError: {n}", 0.01, 0.02, 3)
        turn = await storage.turn([again], 0)
        assert (turn.failed, turn.given_up) == (0, frozenset())
    (lease,) = await claimed(storage)
    turn = await storage.turn([Retried(lease.token, "OSError: 3", 0.01, 0.02, 3)], 0)
    assert turn.failed == 1
    assert turn.given_up == {lease.token}
    (kept,) = await storage.failed_updates(BOT)
    assert (kept.update_id, kept.runs, kept.error) == (1, 1, "OSError: 3")
    assert (await storage.requeue(BOT, None, "anna")).moved == 1
    assert ids(await drained(storage)) == [2, 1]


@case(5)
async def tries_are_counted_for_their_update_alone(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1), update(2)])
    for n in (1, 2):
        (lease,) = await claimed(storage)
        assert not (await storage.turn([Retried(lease.token, "E", 0, 0, 1)], 0)).failed
        (lease,) = await claimed(storage)
        assert lease.update_id == n
        assert await storage.finish(lease.token)


@case(5)
async def a_try_waits_longer_each_time(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1)])
    waits = []
    for _ in range(2):
        (lease,) = await claimed(storage)
        began = time.monotonic()
        await storage.turn([Retried(lease.token, "E", 0.4, 60, 9)], 0)
        (lease,) = await claimed(storage)
        waits.append(time.monotonic() - began)
        assert await storage.release(lease.token)
    assert waits[0] >= 0.4
    assert waits[1] >= 0.8


@case(5)
async def what_is_to_run_later_keeps_its_lane_waiting(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, 1), update(2, 1), update(3, 2)])
    (lease,) = await storage.claim(1)
    assert await storage.later(lease.token, 0.5)
    (other,) = await storage.claim(5)
    assert other.update_id == 3
    (again,) = await claimed(storage)
    assert (again.update_id, again.run) == (1, 1)


@case(5)
async def an_update_that_never_ends_fails_unrun(given: Given) -> None:
    storage = await given.storage(lease=SHORT, max_handler_runs=2)
    await storage.accept([update(1), update(2)])
    turn = await crashed(storage, 2)
    assert turn.failed == 1
    (kept,) = await storage.failed_updates(BOT)
    assert (kept.update_id, kept.runs, kept.error) == (1, 2, "NoEnd: 2 runs had no end")
    (lease,) = await claimed(storage)
    assert (lease.update_id, lease.run) == (2, 1)


@case(5)
async def a_suspect_comes_alone_to_who_runs_nothing_else(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1, 1)])
    await crashed(storage, 2)
    await storage.accept([update(2, 2), update(3, 3)])
    turn = await storage.turn((), 1)
    assert turn.suspects
    assert not turn.leases[0].suspect
    assert await storage.finish(turn.leases[0].token)
    alone = await storage.turn((), 5, suspects=True)
    assert [(lease.update_id, lease.run, lease.suspect) for lease in alone.leases] == [(1, 3, True)]
    assert ids((await storage.turn((), 5, suspects=True)).leases) != []


@case(5)
async def suspects_come_one_at_a_time(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1, 1), update(2, 2)])
    assert len(await storage.claim(2)) == 2
    again = await claimed(storage, 2)
    again += await storage.claim(2 - len(again))
    assert [lease.run for lease in again] == [2, 2]
    (first,) = await claimed(storage, 2, suspects=True)
    assert first.suspect
    assert await storage.claim(2) == []
    assert await storage.finish(first.token)
    (second,) = await claimed(storage, 2, suspects=True)
    assert {first.update_id, second.update_id} == {1, 2}
    assert await storage.finish(second.token)


@case(5, "one process")
async def what_a_vanished_process_had_runs_again_at_the_next_start(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1), update(2)])
    (lease,) = await storage.claim(1)
    storage = await given.reopened(storage)
    async with asyncio.timeout(5):
        (again,) = await claimed(storage)
    assert (again.update_id, again.run) == (1, 2)
    assert again.token != lease.token
