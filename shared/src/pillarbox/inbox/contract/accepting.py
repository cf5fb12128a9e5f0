"""Rules 1 to 3 and 11: accept, repeats, bodies, batches."""

import asyncio

from pillarbox.ids import UpdateId
from pillarbox.inbox.contract.given import BOT, OTHER, Given, case, claimed, drained, failed, ids, update
from pillarbox.inbox.states import Accepted, Incoming

NEW, REPEAT, NEW_BODY, REFUSED = Accepted.NEW, Accepted.REPEAT, Accepted.NEW_BODY, Accepted.REFUSED
ODD_BODIES = {
    "a lone surrogate": b'{"update_id":1,"message":{"text":"\\ud800"}}',
    "an escaped NUL": b'{"update_id":1,"message":{"text":"\\u0000"}}',
    "a raw NUL": b'{"update_id":1,"message":{"text":"\x00"}}',
    "no UTF-8": b'{"update_id":1,"message":{"text":"\xff\xfe"}}',
    "the order of keys": b'{"b":1,"a":2,  "b":3}',
    "deep nesting": b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "1 MiB": b'{"text":"' + b"x" * ((1 << 20) - 11) + b'"}',
    "nothing": b"",
}


@case(1)
async def accept_says_for_each_what_it_was(given: Given) -> None:
    storage = await given.storage()
    assert await storage.accept([]) == []
    assert await storage.accept([update(1), update(2, 2)]) == [NEW, NEW]
    assert await storage.accept([update(3), update(1), update(4)]) == [NEW, REPEAT, NEW]


@case(1)
async def a_lane_keeps_the_order_of_acceptance(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n) for n in range(30)])
    for n in range(30, 40):
        await storage.accept([update(n)])
    assert ids(await drained(storage)) == list(range(40))


@case(1)
async def ids_that_jump_down_are_new_and_come_later(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(900_000_000)])
    assert await storage.accept([update(17)]) == [NEW]
    assert ids(await drained(storage)) == [900_000_000, 17]


@case(1)
async def what_was_accepted_comes_as_it_was(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([Incoming(BOT, UpdateId(7), "callback_query", "user:9", b"{}", None, 9)])
    (lease,) = await storage.claim(1)
    assert (lease.bot_id, lease.update_id, lease.kind, lease.lane) == (BOT, 7, "callback_query", "user:9")


@case(1, "durable")
async def what_was_accepted_is_there_after_a_restart(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n % 3) for n in range(30)])
    ran = ids(await drained(await given.reopened(storage)))
    assert sorted(ran) == list(range(30))
    assert [n for n in ran if n % 3 == 1] == list(range(1, 30, 3))


@case(2)
async def a_repeat_is_known_while_its_update_waits(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1)])
    assert await storage.accept([update(1)]) == [REPEAT]
    assert ids(await drained(storage)) == [1]


@case(2)
async def a_repeat_is_known_while_its_update_runs(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    assert await storage.accept([update(1)]) == [REPEAT]
    assert await storage.finish(lease.token)
    assert await drained(storage) == []


@case(2)
async def a_repeat_is_known_when_its_update_has_failed(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1))
    assert await storage.accept([update(1)]) == [REPEAT]
    assert await drained(storage) == []


@case(2)
async def a_repeat_is_known_when_its_update_has_finished(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1)])
    await drained(storage)
    assert await storage.accept([update(1)]) == [REPEAT]
    assert await drained(storage) == []


@case(2)
async def a_repeat_is_known_when_its_update_was_discarded(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1))
    await storage.discard(BOT, None, "anna")
    assert await storage.accept([update(1)]) == [REPEAT]


@case(2, "durable")
async def a_repeat_is_known_after_a_restart(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1)])
    await drained(storage)
    storage = await given.reopened(storage)
    assert await storage.accept([update(1)]) == [REPEAT]


@case(2)
async def an_update_twice_in_a_batch_is_one(given: Given) -> None:
    storage = await given.storage()
    answers = await storage.accept([update(1), update(2), update(1)])
    assert answers == [NEW, NEW, REPEAT]
    assert ids(await drained(storage)) == [1, 2]


@case(2)
async def an_update_at_two_acceptors_at_once_is_one(given: Given) -> None:
    storage = await given.storage()
    for n in range(20):
        answers = await asyncio.gather(*(storage.accept([update(n)]) for _ in range(4)))
        assert sorted(answer.value for (answer,) in answers) == ["new", "repeat", "repeat", "repeat"]
    assert ids(await drained(storage)) == list(range(20))


@case(2)
async def an_id_with_another_body_is_a_new_update(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, body=b"first")])
    assert await storage.accept([update(1, body=b"second")]) == [NEW_BODY]
    assert await storage.accept([update(1, body=b"first"), update(1, body=b"second")]) == [REPEAT, REPEAT]
    assert await storage.accept([update(2, body=b"a"), update(2, body=b"b")]) == [NEW, NEW_BODY]
    assert [lease.body for lease in await drained(storage)] == [b"first", b"second", b"a", b"b"]


@case(2)
async def two_bots_have_their_own_ids(given: Given) -> None:
    storage = await given.storage()
    assert await storage.accept([update(1), update(1, bot=OTHER)]) == [NEW, NEW]
    assert {lease.bot_id for lease in await storage.claim(4)} == {BOT, OTHER}


@case(2)
async def what_was_seen_is_forgotten_after_its_time(given: Given) -> None:
    storage = await given.storage(seen_for=0.2)
    await storage.accept([update(1, 1)])
    await drained(storage)
    await failed(storage, update(2, 2), update(5, 5), update(6, 5, body=b"one"), update(6, 5, body=b"other"))
    await storage.requeue(BOT, [UpdateId(5), UpdateId(6)], "anna")
    await storage.accept([update(3, 3), update(4, 4)])
    (running,) = await storage.claim(1)
    await asyncio.sleep(0.3)
    await storage.sweep()
    assert await storage.accept([update(n, n) for n in (2, 3, 4, 5)]) == [REPEAT] * 4
    assert await storage.accept([update(6, 5, body=b"one"), update(6, 5, body=b"other")]) == [REPEAT] * 2
    assert (await storage.discard(BOT, [UpdateId(5)], "anna")).running == [5]
    assert await storage.accept([update(1, 1)]) == [NEW]
    assert await storage.finish(running.token)


@case(3)
async def bodies_are_the_bytes_that_came(given: Given) -> None:
    storage = await given.storage()
    odd = list(ODD_BODIES.values())
    await storage.accept([update(n, n, body) for n, body in enumerate(odd)])
    leases = sorted(await claimed(storage, len(odd)), key=lambda lease: lease.update_id)
    assert [len(lease.body) for lease in leases] == [len(body) for body in odd]
    assert all(lease.body == odd[lease.update_id] for lease in leases)


@case(3)
async def what_no_database_takes_harms_nothing_beside_it(given: Given) -> None:
    storage = await given.storage()
    poison = [
        update(1 << 63),
        update(5, body=b"a chat beyond int8", chat=1 << 63),
        Incoming(BOT, UpdateId(6), "\ud800", "chat:1", b"{}", 1, 1),
    ]
    answers = await storage.accept([update(1), *poison, update(2)])
    assert answers == [NEW, REFUSED, REFUSED, REFUSED, NEW]
    assert ids(await drained(storage)) == [1, 2]


@case(11)
async def acceptors_and_claimers_side_by_side_keep_every_lane_in_order(given: Given) -> None:
    storage = await given.storage()
    acceptors, each, chats = 4, 60, 5
    ran: dict[str, list[int]] = {}
    now: set[str] = set()

    async def accepts(mine: int) -> None:
        for n in range(each):
            await storage.accept([update(mine * 1000 + n, n % chats)])

    async def handles() -> None:
        while sum(map(len, ran.values())) < acceptors * each:
            for lease in await storage.claim(2):
                assert lease.lane not in now
                now.add(lease.lane)
                await asyncio.sleep(0)
                ran.setdefault(lease.lane, []).append(lease.update_id)
                now.remove(lease.lane)
                assert await storage.finish(lease.token)
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*map(accepts, range(acceptors)), *(handles() for _ in range(4)))
    for order in ran.values():
        for mine in range(acceptors):
            own = [n for n in order if n // 1000 == mine]
            assert own == sorted(own)


@case(11)
async def what_waits_is_told_at_once(given: Given) -> None:
    storage = await given.storage()
    await storage.wait(0.05)
    async with asyncio.timeout(5):
        waiting = asyncio.create_task(storage.wait(30))
        await asyncio.sleep(0.1)
        await storage.accept([update(1)])
        await waiting


@case(11)
async def waiting_ends_after_its_time(given: Given) -> None:
    storage = await given.storage()
    await storage.wait(0.05)
    async with asyncio.timeout(5):
        await storage.wait(0.05)
