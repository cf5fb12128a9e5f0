"""Rule 6: leases, tokens, renewing."""

import asyncio
from collections.abc import Callable

from pillarbox.ids import Token
from pillarbox.inbox.contract.given import BOT, PATIENCE, SHORT, Given, case, claimed, drained, ids, update
from pillarbox.inbox.states import End, Failed, Finished, Later, Released

ENDS: tuple[Callable[[Token], End], ...] = (
    lambda token: Finished(token, (b'{"n":1}',)),
    lambda token: Failed(token, "too late"),
    lambda token: Released(token),
    lambda token: Later(token, 60),
)


@case(6)
async def a_lease_that_ran_out_is_another_ones(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1)])
    (first,) = await storage.claim(1)
    assert await storage.claim(1) == []
    (second,) = await claimed(storage)
    assert second.update_id == 1
    assert second.token != first.token
    assert await storage.finish(second.token)


@case(6)
async def who_lost_the_lease_changes_nothing_and_is_named(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1), update(2)])
    (first,) = await storage.claim(1)
    (second,) = await claimed(storage)
    for end in ENDS:
        turn = await storage.turn([end(first.token)], 0)
        assert turn.lost == {first.token}
    counts = await storage.counts(BOT)
    assert (counts.pending, counts.failed, counts.outbox) == (2, 0, 0)
    assert await storage.finish(second.token)
    assert ids(await drained(storage)) == [2]


@case(6)
async def a_lost_end_harms_no_other(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, 1), update(2, 2)])
    first, second = await storage.claim(2)
    never = Token(1 << 40)
    turn = await storage.turn([Finished(first.token), Finished(never), Finished(second.token)], 0)
    assert turn.lost == {never}
    assert (await storage.counts(BOT)).pending == 0


@case(6)
async def a_run_ends_once(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1), update(2)])
    (lease,) = await storage.claim(1)
    assert await storage.finish(lease.token)
    assert not await storage.finish(lease.token)
    assert not await storage.fail(lease.token, "again")
    assert ids(await drained(storage)) == [2]


@case(6)
async def tokens_are_never_used_twice(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n % 7) for n in range(70)])
    tokens = [lease.token for lease in await drained(storage, 3)]
    assert len(set(tokens)) == 70


@case(6, "durable")
async def tokens_are_never_used_twice_after_a_restart_either(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1)])
    (first,) = await storage.claim(1)
    storage = await given.reopened(storage)
    (second,) = await claimed(storage)
    assert second.token != first.token


@case(6)
async def renewing_keeps_the_lease(given: Given) -> None:
    storage = await given.storage(lease=1.0)
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    renewer = storage.renewer()
    for _ in range(6):
        await asyncio.sleep(0.25)
        assert await asyncio.to_thread(renewer.renew, [lease.token]) == frozenset()
        assert await storage.claim(1) == []
    renewer.close()
    assert await storage.finish(lease.token)


@case(6)
async def renewing_names_what_is_lost(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, 1), update(2, 2)])
    held, ended = await storage.claim(2)
    assert await storage.finish(ended.token)
    renewer = storage.renewer()
    assert renewer.renew([held.token, ended.token]) == {ended.token}
    assert renewer.renew([]) == frozenset()
    renewer.close()


@case(6)
async def who_does_not_hold_a_lease_prolongs_nothing(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1)])
    (first,) = await storage.claim(1)
    (second,) = await claimed(storage)
    renewer = storage.renewer()
    assert renewer.renew([first.token]) == {first.token}
    (third,) = await claimed(storage, suspects=True)
    assert third.token not in (first.token, second.token)
    renewer.close()


@case(6)
async def an_update_ages_by_the_storages_clock_and_is_new_again_when_it_is_retried(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    await asyncio.sleep(1)
    await storage.later(lease.token, 0)
    (again,) = await claimed(storage)
    assert 0 <= lease.age < lease.age + 0.9 < again.age < PATIENCE
    await storage.fail(again.token, "E")
    await storage.requeue(BOT, None, "anna")
    (anew,) = await claimed(storage)
    assert anew.age < again.age
