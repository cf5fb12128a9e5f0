"""The right to handle a bot, where one process has it."""

import pytest

from pillarbox.errors import PollingConflictError
from pillarbox.inbox.contract.given import BOT, OTHER, Given, case, drained, ids, update


@case(4)
async def the_right_is_had_more_than_once_by_the_same(given: Given) -> None:
    storage = await given.storage(BOT)
    assert await storage.try_lock([BOT])
    assert await storage.try_lock([BOT, OTHER])
    await storage.lock([OTHER])


@case(4, "one process")
async def a_second_one_is_refused_until_the_first_ends(given: Given) -> None:
    first = await given.storage(BOT)
    second = await given.unlocked()
    assert not await second.try_lock([BOT])
    with pytest.raises(PollingConflictError):
        await second.lock([BOT])
    await first.close()
    given.opened.remove(first)
    assert await second.try_lock([BOT])


@case(4, "one process")
async def who_is_refused_one_bot_gets_none_of_them(given: Given) -> None:
    await given.storage(BOT)
    second, third = await given.unlocked(), await given.unlocked()
    assert not await second.try_lock([OTHER, BOT])
    assert await third.try_lock([OTHER])


@case(4, "one process")
async def a_bot_is_handled_by_who_has_the_right_and_no_other(given: Given) -> None:
    ours, theirs = await given.storage(BOT), await given.storage(OTHER)
    await ours.accept([update(1), update(2, bot=OTHER)])
    assert ids(await drained(ours)) == [1]
    assert ids(await drained(theirs)) == [2]


@case(8, "one process")
async def failed_updates_are_anybodys(given: Given) -> None:
    ours = await given.storage(BOT)
    await ours.accept([update(1)])
    (lease,) = await ours.claim(1)
    await ours.fail(lease.token, "E: at bot.py:1")
    people = await given.unlocked()
    assert [kept.update_id for kept in await people.failed_updates(BOT)] == [1]
    assert (await people.requeue(BOT, None, "anna")).moved == 1
    assert ids(await drained(ours)) == [1]
