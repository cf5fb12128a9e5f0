"""Rule 7: FSM state is written with its update's end, or not at all."""

import asyncio

from pillarbox.inbox.contract.given import BOT, OTHER, SHORT, Filed, Given, case, claimed, ids, update
from pillarbox.inbox.states import NOTHING, Failed, Finished, FsmKey, FsmWrite, Later, Released, Retried
from pillarbox.inbox.storage import Storage

KEY = FsmKey(BOT, "42:42")
ANOTHER = FsmKey(BOT, "7:7")


async def _set(storage: Storage, key: FsmKey, state: str | None, data: bytes | None = None) -> None:
    (value,) = await storage.read_fsm([key])
    assert await storage.write_fsm([FsmWrite(key, value.version, state, data)])


async def _state(storage: Storage, key: FsmKey = KEY) -> str | None:
    (value,) = await storage.read_fsm([key])
    return value.state


@case(7)
async def what_is_written_is_read(given: Given) -> None:
    storage = await given.storage()
    assert await storage.read_fsm([]) == []
    assert await storage.read_fsm([KEY, ANOTHER]) == [NOTHING, NOTHING]
    await _set(storage, KEY, "Form:city", b'{"city": "\\u0000"}')
    await _set(storage, FsmKey(OTHER, KEY.key), None, b"\x00\xff")
    nothing, theirs, ours = await storage.read_fsm([ANOTHER, FsmKey(OTHER, KEY.key), KEY])
    assert nothing == NOTHING
    assert (theirs.state, theirs.data) == (None, b"\x00\xff")
    assert (ours.state, ours.data) == ("Form:city", b'{"city": "\\u0000"}')


@case(7)
async def an_empty_value_is_none(given: Given) -> None:
    storage = await given.storage()
    await _set(storage, KEY, "A")
    await _set(storage, KEY, None)
    assert await storage.read_fsm([KEY]) == [NOTHING]
    await _set(storage, KEY, None)
    assert await storage.read_fsm([KEY]) == [NOTHING]


@case(7)
async def who_read_an_old_version_writes_nothing(given: Given) -> None:
    storage = await given.storage()
    await _set(storage, KEY, "A")
    (first,) = await storage.read_fsm([KEY])
    await _set(storage, KEY, "B")
    both = [FsmWrite(ANOTHER, 0, "new"), FsmWrite(KEY, first.version, "late")]
    assert not await storage.write_fsm(both)
    assert not await storage.write_fsm([FsmWrite(KEY, 0, "late")])
    assert (await _state(storage), await _state(storage, ANOTHER)) == ("B", None)
    assert (await storage.read_fsm([ANOTHER])) == [NOTHING]


@case(7)
async def a_version_is_never_used_twice(given: Given) -> None:
    storage = await given.storage()
    await _set(storage, KEY, "A")
    (first,) = await storage.read_fsm([KEY])
    await _set(storage, KEY, None)
    await _set(storage, KEY, "B")
    assert not await storage.write_fsm([FsmWrite(KEY, first.version, "late")])
    assert await _state(storage) == "B"


@case(7)
async def state_is_written_with_the_finish(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    assert await storage.finish(lease.token, [b"hi"], [FsmWrite(KEY, 0, "A", b"{}")])
    await storage.relay(filed.file, 100)
    assert (await _state(storage), filed.bodies) == ("A", [b"hi"])


@case(7)
async def only_who_finished_by_token_writes_state(given: Given) -> None:
    storage = await given.storage(lease=SHORT)
    await storage.accept([update(1)])
    (first,) = await storage.claim(1)
    (second,) = await claimed(storage)
    late = await storage.turn([Finished(first.token, (), (FsmWrite(KEY, 0, "late"),))], 0)
    assert late.lost == {first.token}
    assert not late.stale
    assert await storage.read_fsm([KEY]) == [NOTHING]
    assert await storage.finish(second.token, (), [FsmWrite(KEY, 0, "A")])
    assert await _state(storage) == "A"


@case(7)
async def two_lanes_that_share_a_key_lose_no_write(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1, 1), update(2, 2)])
    one, two = await storage.claim(2)
    assert await storage.finish(one.token, [b"one"], [FsmWrite(KEY, 0, "one")])
    turn = await storage.turn(
        [Finished(two.token, (b"two",), (FsmWrite(KEY, 0, "two"), FsmWrite(ANOTHER, 0, "two")))], 1
    )
    assert turn.stale == {two.token}
    assert not turn.lost
    (again,) = turn.leases or await claimed(storage)
    assert (again.update_id, again.run) == (two.update_id, 1)
    await storage.relay(filed.file, 100)
    assert (await _state(storage), await _state(storage, ANOTHER), filed.bodies) == ("one", None, [b"one"])
    (value,) = await storage.read_fsm([KEY])
    assert await storage.finish(again.token, (), [FsmWrite(KEY, value.version, "two")])
    assert await _state(storage) == "two"


@case(7)
async def of_two_in_one_turn_one_wins(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, 1), update(2, 2), update(3, 3)])
    one, two, three = await storage.claim(3)
    turn = await storage.turn(
        [
            Finished(one.token, (), (FsmWrite(KEY, 0, "one"),)),
            Finished(two.token, (), (FsmWrite(KEY, 0, "two"),)),
            Finished(three.token, (), (FsmWrite(ANOTHER, 0, "three"),)),
        ],
        0,
    )
    assert len(turn.stale) == 1
    assert turn.stale < {one.token, two.token}
    loser, winner = (two, "one") if turn.stale == {two.token} else (one, "two")
    assert (await _state(storage), await _state(storage, ANOTHER)) == (winner, "three")
    assert ids(await storage.claim(3)) == [loser.update_id]


@case(7)
async def writers_at_once_lose_no_write(given: Given) -> None:
    storage = await given.storage()

    async def counts(times: int) -> None:
        while times:
            (value,) = await storage.read_fsm([KEY])
            more = b"%d" % (int(value.data or 0) + 1)
            times -= await storage.write_fsm([FsmWrite(KEY, value.version, None, more)])

    async with asyncio.timeout(30):
        await asyncio.gather(*(counts(10) for _ in range(4)))
    (value,) = await storage.read_fsm([KEY])
    assert value.data == b"40"


@case(7)
async def any_other_end_writes_no_state(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n) for n in range(4)])
    await _set(storage, KEY, "A")
    one, two, three, four = [lease.token for lease in await storage.claim(4)]
    await storage.turn([Failed(one, "E"), Released(two), Later(three, 60), Retried(four, "E", 60, 60, 1)], 0)
    assert await _state(storage) == "A"


@case(7, "durable")
async def state_is_there_after_a_restart(given: Given) -> None:
    storage = await given.storage()
    await _set(storage, KEY, "A", b"{}")
    storage = await given.reopened(storage)
    (value,) = await storage.read_fsm([KEY])
    assert (value.state, value.data) == ("A", b"{}")


@case(7)
async def a_lease_brings_what_is_named_like_its_lane(given: Given) -> None:
    storage = await given.storage()
    ours, others = FsmKey(BOT, "chat:1"), FsmKey(OTHER, "chat:2")
    await _set(storage, ours, "A", b"{}")
    await _set(storage, others, "B")
    await storage.accept([update(1, 1), update(2, 1), update(3, 2)])
    one, three = sorted((await storage.turn((), 2, fsm=True)).leases, key=lambda lease: lease.update_id)
    assert one.fsm is not None
    assert three.fsm == NOTHING
    assert (one.fsm.state, one.fsm.data) == ("A", b"{}")
    end = Finished(one.token, (), (FsmWrite(ours, one.fsm.version, "next"),))
    (two,) = (await storage.turn([end], 1, fsm=True)).leases
    assert two.fsm is not None
    assert (two.update_id, two.fsm.state) == (2, "next")
    assert await storage.finish(two.token, (), [FsmWrite(ours, two.fsm.version, None)])
    assert await storage.read_fsm([ours]) == [NOTHING]
