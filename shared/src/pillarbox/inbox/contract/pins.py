"""Which key is trusted for a person."""

import asyncio

import pytest

from pillarbox.errors import FingerprintRefused
from pillarbox.inbox.contract.given import BOT, OTHER, Given, case

ONE, TWO, LONG = "A" * 40, "0123456789" * 4, "F" * 64
ANNA, BEN = 7, -(2**63)


@case(12)
async def the_first_key_that_is_seen_is_pinned(given: Given) -> None:
    storage = await given.storage()
    assert await storage.pinned(BOT, ANNA) is None
    first = await storage.pin(BOT, ANNA, ONE, "bot")
    assert (first.user_id, first.fingerprint) == (ANNA, ONE)
    assert await storage.pin(BOT, ANNA, TWO, "bot") == first
    assert await storage.pinned(BOT, ANNA) == first
    assert await storage.pinned(OTHER, ANNA) is None
    assert await storage.pinned(BOT, BEN) is None


@case(12)
async def of_many_at_once_one_is_first_and_all_are_told_which(given: Given) -> None:
    storage = await given.storage()
    others = await given.unlocked() if storage.durable else storage
    keys = [f"{n:040X}" for n in range(20)]
    seen = await asyncio.gather(
        *((storage, others)[n % 2].pin(BOT, ANNA, key, "bot") for n, key in enumerate(keys))
    )
    assert len(set(seen)) == 1
    assert [a.action for a in await storage.audit(BOT)] == ["pin"]


@case(12)
async def a_person_puts_another_key_in_its_place(given: Given) -> None:
    storage = await given.storage()
    await storage.pin(BOT, ANNA, ONE, "bot")
    trusted = await storage.trust(BOT, ANNA, LONG.lower(), "ben")
    assert trusted.fingerprint == LONG
    assert await storage.pin(BOT, ANNA, ONE, "bot") == trusted
    assert (await storage.trust(BOT, BEN, "0123 4567 89" * 4, "ben")).fingerprint == TWO
    assert await storage.pinned(BOT, ANNA) == trusted


@case(12)
async def after_a_pin_is_forgotten_the_next_key_is_the_first(given: Given) -> None:
    storage = await given.storage()
    first = await storage.pin(BOT, ANNA, ONE, "bot")
    await storage.pin(OTHER, ANNA, ONE, "bot")
    assert await storage.forget(BOT, ANNA, "ben") == first
    assert await storage.forget(BOT, ANNA, "ben") is None
    assert await storage.pinned(BOT, ANNA) is None
    assert (await storage.pin(BOT, ANNA, TWO, "bot")).fingerprint == TWO
    assert await storage.pinned(OTHER, ANNA) is not None


@case(12)
async def every_change_of_a_pin_is_audited(given: Given) -> None:
    storage = await given.storage()
    await storage.pin(BOT, ANNA, ONE, "bot")
    await storage.pin(BOT, ANNA, TWO, "bot")
    await storage.trust(BOT, ANNA, TWO, "ben")
    await storage.forget(BOT, ANNA, "carl")
    await storage.forget(BOT, ANNA, "carl")
    noted = [
        (a.action, a.by, a.user_id, a.update_id, a.old_fingerprint, a.new_fingerprint)
        for a in await storage.audit(BOT)
    ]
    assert noted == [
        ("forget", "carl", ANNA, None, TWO, None),
        ("trust", "ben", ANNA, None, ONE, TWO),
        ("pin", "bot", ANNA, None, None, ONE),
    ]
    assert await storage.audit(OTHER) == []


@case(12)
async def what_is_no_fingerprint_is_refused(given: Given) -> None:
    storage = await given.storage()
    for text in ("", "A" * 39, "A" * 41, "G" * 40, "A" * 63, "\0" + "A" * 39, "A" * 40 + "\n", "٣" * 40):
        with pytest.raises(FingerprintRefused):
            await storage.trust(BOT, ANNA, text, "ben")
        with pytest.raises(FingerprintRefused):
            await storage.pin(BOT, ANNA, text, "bot")
    assert await storage.pinned(BOT, ANNA) is None
    assert await storage.audit(BOT) == []


@case(12, "durable")
async def pins_are_there_after_a_restart(given: Given) -> None:
    storage = await given.storage()
    pinned = await storage.pin(BOT, ANNA, ONE, "bot")
    storage = await given.reopened(storage)
    assert await storage.pinned(BOT, ANNA) == pinned
    assert len(await storage.audit(BOT)) == 1
