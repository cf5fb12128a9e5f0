"""Outbox rows are handed to the queue so many bytes at a time, so that no call of it grows without bound."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from pillarbox.inbox.states import OutboxRow

RELAY_BYTES = 8 << 20
"""Of bodies that are filed at once; the row that reaches it is the last one."""


def handful(rows: Iterable[OutboxRow], limit: int) -> list[OutboxRow]:
    """The first of these rows, `limit` at most; reads no further than it must."""
    taken: list[OutboxRow] = []
    size = 0
    for row in rows:
        if len(taken) == limit:
            break
        taken.append(row)
        size += len(row.body)
        if size >= RELAY_BYTES:
            break
    return taken


async def in_handfuls(hand_on: Callable[[int], Awaitable[Sequence[OutboxRow]]], limit: int) -> int:
    """As long as it is their size that bounds them: there may be more then, within `limit`."""
    handed = 0
    while True:
        rows = await hand_on(limit - handed)
        handed += len(rows)
        if handed >= limit or sum(len(row.body) for row in rows) < RELAY_BYTES:
            return handed
