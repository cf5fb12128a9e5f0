"""Rules 8 and 9: the failed list, retry and discard."""

from datetime import UTC, datetime

from pillarbox.ids import UpdateId
from pillarbox.inbox.contract.given import (
    BOT,
    OTHER,
    SHORT,
    Given,
    case,
    crashed,
    drained,
    failed,
    ids,
    sealed,
    update,
)
from pillarbox.inbox.filtering import Filter
from pillarbox.inbox.states import Counts, End, Failed, Finished, Malformed, Retried
from pillarbox.inbox.storage import Storage

ERROR = "KeyError: 'city' at bot.py:31"


async def _failed_ids(storage: Storage) -> list[int]:
    return [kept.update_id for kept in await storage.failed_updates(BOT)]


@case(8)
async def a_failed_update_is_kept_with_its_error(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1, 5)])
    (lease,) = await storage.claim(1)
    turn = await storage.turn([Failed(lease.token, ERROR)], 1)
    assert (turn.failed, turn.leases) == (1, [])
    (kept,) = await storage.failed_updates(BOT)
    assert (kept.bot_id, kept.update_id, kept.kind, kept.lane) == (BOT, 1, "message", "chat:5")
    assert (kept.chat_id, kept.user_id, kept.runs, kept.error) == (5, 5, 1, ERROR)
    assert (kept.body, kept.row) == (update(1, 5).body, lease.row)
    assert kept.failed_at >= kept.accepted_at


@case(8)
async def a_failure_does_not_stop_its_lane(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(1), update(2)])
    (lease,) = await storage.claim(1)
    assert await storage.fail(lease.token, ERROR)
    assert [(lease.update_id, lease.run) for lease in await storage.claim(1)] == [(2, 1)]


@case(8)
async def the_failed_list_is_read_newest_first_and_in_pages(given: Given) -> None:
    storage = await given.storage()
    for n in range(7):
        await failed(storage, update(n))
    pages: list[list[int]] = []
    last = None
    while page := await storage.failed_updates(BOT, before=last, limit=3):
        pages.append([kept.update_id for kept in page])
        last = page[-1]
    assert pages == [[6, 5, 4], [3, 2, 1], [0]]


@case(8)
async def the_failed_list_keeps_the_newest_and_counts_what_it_forgot(given: Given) -> None:
    storage = await given.storage(max_failed=3)
    for n in range(5):
        await failed(storage, update(n))
    await failed(storage, update(100, bot=OTHER))
    assert await _failed_ids(storage) == [4, 3, 2]
    counts = await storage.counts(BOT)
    assert (counts.failed, counts.failed_trimmed) == (3, 2)
    assert (await storage.counts(OTHER)).failed == 1


@case(8)
async def an_old_update_that_fails_again_at_the_cap_stays(given: Given) -> None:
    """The list is by time of failure: the oldest update is its newest failure."""
    storage = await given.storage(max_failed=2)
    await failed(storage, update(0, 0), update(1, 1))
    assert (await storage.requeue(BOT, [UpdateId(0)], "anna")).moved == 1
    (old,) = await storage.claim(1)
    await failed(storage, update(2, 2))
    assert await storage.fail(old.token, ERROR)
    assert await _failed_ids(storage) == [0, 2]
    assert (await storage.counts(BOT)).failed_trimmed == 1


@case(8)
async def retry_starts_at_one_at_the_end_of_its_lane(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1))
    await storage.accept([update(2), update(3)])
    moved = await storage.requeue(BOT, [UpdateId(1)], "anna")
    assert (moved.moved, moved.unknown, moved.running) == (1, [], [])
    ran = await drained(storage)
    assert ids(ran) == [2, 3, 1]
    assert {lease.run for lease in ran} == {1}
    assert await _failed_ids(storage) == []


@case(8)
async def retry_works_a_second_time(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1))
    for _ in range(3):
        assert (await storage.requeue(BOT, [UpdateId(1)], "anna")).moved == 1
        await failed(storage)
    assert await _failed_ids(storage) == [1]


@case(8)
async def retry_of_all_keeps_their_order(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n % 50) for n in range(750)])
    while leases := await storage.claim(50):
        await storage.turn([Failed(lease.token, ERROR) for lease in leases], 0)
    assert (await storage.requeue(BOT, None, "anna")).moved == 750
    ran = ids(await drained(storage, 50))
    assert len(ran) == 750
    assert all([n for n in ran if n % 50 == lane] == list(range(lane, 750, 50)) for lane in range(50))


@case(8)
async def retry_and_discard_tell_what_is_unknown_and_what_runs(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1, 1))
    await storage.accept([update(2, 2), update(3, 2), update(4, 4)])
    leases = await storage.claim(2)
    await storage.finish(next(lease.token for lease in leases if lease.update_id == 4))
    asked = [UpdateId(n) for n in (4, 2, 1, 3, 99)]
    moved = await storage.requeue(BOT, asked, "anna")
    assert (moved.moved, moved.unknown, moved.running) == (1, [4, 99], [2, 3])
    dropped = await storage.discard(BOT, asked, "anna")
    assert (dropped.moved, dropped.unknown, dropped.running) == (0, [4, 99], [2, 1, 3])


@case(8)
async def an_id_with_two_bodies_is_acted_on_twice(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1, body=b"first"), update(1, body=b"second"))
    assert (await storage.requeue(BOT, [UpdateId(1)], "anna")).moved == 2
    assert [lease.body for lease in await drained(storage)] == [b"first", b"second"]


@case(8)
async def discarded_updates_are_gone(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1), update(2), update(3))
    assert (await storage.discard(BOT, [UpdateId(2)], "anna")).moved == 1
    assert await _failed_ids(storage) == [3, 1]
    assert (await storage.discard(BOT, None, "anna")).moved == 2
    assert await _failed_ids(storage) == []
    assert await drained(storage) == []


@case(8)
async def one_bots_failures_are_not_the_others(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1), update(1, bot=OTHER))
    assert (await storage.discard(OTHER, None, "anna")).moved == 1
    assert await _failed_ids(storage) == [1]
    assert await storage.failed_updates(OTHER) == []


@case(8)
async def retries_and_discards_are_audited(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1), update(2))
    await storage.requeue(BOT, [UpdateId(1), UpdateId(50)], "anna")
    await storage.discard(BOT, None, "ben")
    noted = await storage.audit(BOT)
    assert [(a.update_id, a.by, a.action) for a in noted] == [(2, "ben", "discard"), (1, "anna", "retry")]
    assert len(await storage.audit(BOT, limit=1)) == 1
    assert await storage.audit(OTHER) == []


@case(8, "durable")
async def failures_and_audit_are_there_after_a_restart(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1), update(2))
    await storage.discard(BOT, [UpdateId(1)], "anna")
    storage = await given.reopened(storage)
    assert await _failed_ids(storage) == [2]
    assert len(await storage.audit(BOT)) == 1
    assert (await storage.requeue(BOT, None, "anna")).moved == 1
    assert ids(await drained(storage)) == [2]


@case(8)
async def sweeping_keeps_lists_to_their_caps(given: Given) -> None:
    storage = await given.storage(max_failed=3)
    for n in range(4):
        await failed(storage, update(n))
    await storage.sweep()
    assert await _failed_ids(storage) == [3, 2, 1]


@case(8)
async def malformed_bodies_are_kept_to_a_cap_and_counted(given: Given) -> None:
    storage = await given.storage(max_malformed=2)
    for n in range(5):
        await storage.malformed(Malformed(BOT, "json", b"\x00\xff%d" % n))
    counts = await storage.counts(BOT)
    assert (counts.malformed, counts.malformed_trimmed) == (2, 3)


@case(8)
async def a_bot_that_nobody_knows_has_nothing(given: Given) -> None:
    storage = await given.storage()
    await storage.ping()
    assert await storage.counts(OTHER) == Counts(0, 0, 0, 0, 0, 0)
    assert (await storage.requeue(OTHER, None, "anna")).moved == 0


@case(9)
async def an_error_of_any_text_is_kept(given: Given) -> None:
    storage = await given.storage()
    errors = ["E: \0 in it", "E: \ud800 in it", "E: " + "x" * 100_000]
    for n, error in enumerate(errors):
        await failed(storage, update(n, n), error=error)
    kept = await storage.failed_updates(BOT)
    assert [k.error for k in kept] == ["E: " + "x" * 1997, "E: ? in it", "E:  in it"]


@case(9)
async def the_place_of_a_long_error_is_kept(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1), error="E: " + "x" * 5000 + " at bot.py:31")
    (kept,) = await storage.failed_updates(BOT)
    assert len(kept.error) == 2000
    assert kept.error.endswith("x at bot.py:31")


SEALED: list[tuple[str, str]] = [
    (ERROR, "KeyError at bot.py:31"),
    ("app.errors.Wrong: it says: no at noon at bot.py:31", "app.errors.Wrong at bot.py:31"),
    ("KeyError: no place in it", "KeyError"),
    ("KeyError: x\n at y.py:1\nmore", "KeyError"),
    ("KeyError at bot.py:31", "KeyError at bot.py:31"),
    ("KeyError: " + "x" * 5000 + " at bot.py:31", "KeyError at bot.py:31"),
    ("KeyError", "KeyError"),
    ("what it said", "Error"),
    ("", "Error"),
]


@case(9)
async def of_a_sealed_updates_error_type_and_place_are_kept_and_no_message(given: Given) -> None:
    storage = await given.storage()
    for n, (error, kept) in enumerate(SEALED):
        await failed(storage, sealed(n), error=error)
        (found,) = await storage.failed_updates(BOT, limit=1)
        assert (found.update_id, found.sealed, found.error) == (n, True, kept)
    await failed(storage, update(50), error=ERROR)
    (found,) = await storage.failed_updates(BOT, limit=1)
    assert (found.sealed, found.error) == (False, ERROR)


@case(9)
async def a_sealed_update_is_sealed_whichever_way_it_fails(given: Given) -> None:
    storage = await given.storage(lease=SHORT, max_handler_runs=2)
    await failed(storage, sealed(1))
    await storage.requeue(BOT, None, "anna")
    (lease,) = await storage.claim(1)
    await storage.turn([Retried(lease.token, ERROR, 0.0, 0.0, 0)], 0)
    assert [(k.sealed, k.error) for k in await storage.failed_updates(BOT)] == [
        (True, "KeyError at bot.py:31")
    ]
    await storage.requeue(BOT, None, "anna")
    await crashed(storage, 2)
    assert [(k.sealed, k.error) for k in await storage.failed_updates(BOT)] == [(True, "NoEnd")]


@case(10)
async def one_end_of_a_turn_harms_no_other(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n) for n in range(3)])
    one, two, three = await storage.claim(3)
    ends: list[End] = [
        Failed(one.token, "\ud800\0"),
        Finished(two.token, (b"\x00\xff",)),
        Finished(three.token),
    ]
    assert not (await storage.turn(ends, 0)).lost
    counts = await storage.counts(BOT)
    assert (counts.pending, counts.failed, counts.outbox) == (0, 1, 1)


TYPES = (
    "KeyError: 'city' at bot.py:31",
    "KeyErrorLike: x at bot.py:3",
    "ValueError at b.py:9",
    "ran 5 times",
)
FILTERS: list[tuple[Filter, list[int]]] = [
    (Filter(), [3, 2, 1, 0]),
    (Filter(kind="message"), [3, 2, 1, 0]),
    (Filter(kind="poll"), []),
    (Filter(chat_id=2), [2]),
    (Filter(error="KeyError"), [0]),
    (Filter(error="ValueError"), [2]),
    (Filter(error="ran 5 times"), [3]),
    (Filter(error="KeyError", chat_id=1), []),
    (Filter(since=datetime(2000, 1, 1, tzinfo=UTC)), [3, 2, 1, 0]),
    (Filter(until=datetime(2000, 1, 1, tzinfo=UTC)), []),
    (Filter(update_ids=(UpdateId(0), UpdateId(2), UpdateId(9), UpdateId(77))), [2, 0]),
    (Filter(update_ids=(UpdateId(0), UpdateId(2)), error="KeyError"), [0]),
    (Filter(update_ids=()), []),
]


@case(8)
async def the_failed_list_is_filtered_and_moved_by_the_same_words(given: Given) -> None:
    storage = await given.storage()
    for n, error in enumerate(TYPES):
        await failed(storage, update(n, n), error=error)
    await failed(storage, update(9, 9, bot=OTHER))
    for matching, found in FILTERS:
        kept = await storage.failed_updates(BOT, matching=matching)
        assert [k.update_id for k in kept] == found, matching
        assert [k.update_id for k in await storage.failed_updates(BOT, matching=matching, limit=1)] == found[
            :1
        ]
    middle = (await storage.failed_updates(BOT))[1].failed_at
    assert [k.update_id for k in await storage.failed_updates(BOT, matching=Filter(since=middle))][-1] == 2
    assert (await storage.requeue(BOT, Filter(error="KeyError"), "anna")).moved == 1
    assert (await storage.requeue(BOT, Filter(error="KeyError"), "anna")).moved == 0
    assert (await storage.discard(BOT, Filter(chat_id=1), "anna")).moved == 1
    assert await _failed_ids(storage) == [3, 2]
    assert (await storage.discard(BOT, Filter(update_ids=()), "anna")).moved == 0
    assert ids(await drained(storage)) == [0]
    assert (await storage.counts(OTHER)).failed == 1


@case(8)
async def a_filter_moves_more_than_a_batch_and_nothing_else(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n % 50) for n in range(1300)])
    while leases := await storage.claim(50):
        errors = [(lease.token, "ValueError" if lease.update_id % 2 else "KeyError") for lease in leases]
        await storage.turn([Failed(token, f"{error} at bot.py:1") for token, error in errors], 0)
    told: list[int] = []
    moved = await storage.requeue(BOT, Filter(error="KeyError"), "anna", progress=told.append)
    assert (moved.moved, sum(told)) == (650, 650)
    assert sorted(ids(await drained(storage, 50))) == list(range(0, 1300, 2))
    moved = await storage.discard(BOT, Filter(error="ValueError"), "anna", progress=told.append)
    assert (moved.moved, sum(told)) == (650, 1300)


@case(8)
async def an_empty_choice_moves_nothing(given: Given) -> None:
    storage = await given.storage()
    await failed(storage, update(1))
    too_large = UpdateId(1 << 63)
    assert (await storage.requeue(BOT, [], "anna")).moved == 0
    moved = await storage.discard(BOT, [too_large], "anna")
    assert (moved.moved, moved.unknown) == (0, [too_large])
    assert await _failed_ids(storage) == [1]
