"""Accept: one statement a batch, and a batch never fails for one of its updates."""

from collections.abc import Callable, Sequence

from pillarbox.errors import StorageLocked, StorageRefused
from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Bytes, Int8s, Texts
from pillarbox.inbox.connections import Pool
from pillarbox.inbox.repeats import Key, key, storable
from pillarbox.inbox.states import Accepted, Incoming


async def accept(
    pool: Pool, updates: Sequence[Incoming], hint: Callable[[], object], *, rides: bool = False
) -> list[Accepted]:
    """Raises StorageUnavailable; then nothing, or all of a part of the batch, was stored.

    `hint` is called where something was. With `rides` dispatchers hear of it at its commit instead, if the
    database refuses nothing of it.
    """
    answers = [Accepted.REPEAT if storable(update) else Accepted.REFUSED for update in updates]
    first: dict[Key, int] = {}
    for position, update in enumerate(updates):
        if answers[position] is not Accepted.REFUSED:
            first.setdefault(key(update), position)
    batch = list(first.items())
    locked = False
    if not rides or not await _stored_with_hint(pool, updates, batch, answers):
        locked = await _store(pool, updates, batch, answers)
        if Accepted.NEW in answers or Accepted.NEW_BODY in answers:
            hint()
    if locked:
        raise StorageLocked("somebody else's transaction holds the lane of an update; the others are stored")
    _mark_new_bodies(first, answers)
    return answers


async def _stored_with_hint(
    pool: Pool, updates: Sequence[Incoming], batch: list[tuple[Key, int]], answers: list[Accepted]
) -> bool:
    """A full queue of hints refuses what it would tell of, so that may be stored without one."""
    try:
        await _store_whole(pool, updates, batch, answers, hint=True)
    except (StorageRefused, StorageLocked):
        return False
    return True


async def _store(
    pool: Pool, updates: Sequence[Incoming], batch: list[tuple[Key, int]], answers: list[Accepted]
) -> bool:
    """Whether a lane was locked, and so not all of them are stored."""
    try:
        await _store_whole(pool, updates, batch, answers)
    except (StorageRefused, StorageLocked) as error:
        locked = isinstance(error, StorageLocked)
        if len(batch) == 1:
            answers[batch[0][1]] = Accepted.REFUSED
            return locked
        half = len(batch) // 2
        before = await _store(pool, updates, batch[:half], answers)
        return await _store(pool, updates, batch[half:], answers) or before
    return False


async def _store_whole(
    pool: Pool,
    updates: Sequence[Incoming],
    batch: list[tuple[Key, int]],
    answers: list[Accepted],
    *,
    hint: bool = False,
) -> None:
    if not batch:
        return
    sealed = [n for n, (_, position) in enumerate(batch, 1) if updates[position].sealed]
    stored = await pool.execute(sql.ACCEPT, [*_parameters(updates, batch), hint, Int8s(sealed)])
    for n, known in stored:
        answers[batch[n - 1][1]] = Accepted.NEW_BODY if known else Accepted.NEW


def _parameters(updates: Sequence[Incoming], batch: list[tuple[Key, int]]) -> list[Int8s | Bytes | Texts]:
    came = [updates[position] for _, position in batch]
    return [
        Int8s([u.bot_id for u in came]),
        Int8s([u.update_id for u in came]),
        Bytes([known[2] for known, _ in batch]),
        Texts([u.lane.encode() for u in came]),
        Texts([u.kind.encode() for u in came]),
        Int8s([u.chat_id for u in came]),
        Int8s([u.user_id for u in came]),
        Bytes([u.body for u in came]),
    ]


def _mark_new_bodies(first: dict[Key, int], answers: list[Accepted]) -> None:
    """Two bodies of one id in one batch: the statement sees neither of them as known."""
    ids: set[tuple[int, int]] = set()
    for (bot_id, update_id, _), position in first.items():
        if answers[position] is Accepted.NEW and (bot_id, update_id) in ids:
            answers[position] = Accepted.NEW_BODY
        ids.add((bot_id, update_id))
