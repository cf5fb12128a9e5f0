"""Messages that are dead, as the sender leaves them: filed, claimed, and ended by a turn."""

from collections.abc import Sequence
from typing import Any

import msgspec

from pillarbox.ids import BotId
from pillarbox.outbound.lanes import Filing, Lanes

QUEUE = "q"
BOT, OTHER = BotId(7), BotId(8)
WORKER = ("worker", "incarnation")


def lane_of(chat: object, queue: str = QUEUE) -> str:
    return f"{queue}:lane:{BOT}:interactive:{chat}"


async def queue_of(redis: Any, chat: object, queue: str = QUEUE) -> list[bytes]:
    """The elements of a chat that wait, in order."""
    return [line.partition(b"\n")[2] for line in await redis.lrange(lane_of(chat, queue), 0, -1)]


async def turn(
    redis: Any, ends: Sequence[Sequence[Any]] = (), slots: int = 1000, queue: str = QUEUE
) -> list[Any]:
    """A turn of a worker; what it claims, as `turn.lua` tells it."""
    bots = msgspec.msgpack.encode([str(BOT), str(OTHER)])
    given = msgspec.msgpack.encode([list(end) for end in ends])
    answer = await Lanes(redis, queue).scripts.call("turn", *WORKER, slots, 10_000, bots, given)
    return list(answer[5])


async def bury(
    redis: Any,
    elements: Sequence[bytes],
    *,
    reason: str = "refused",
    detail: str = "",
    errors: tuple[str, str] = ("answered:400", "answered:400"),
    bulk: bool = False,
    queue: str = QUEUE,
) -> None:
    """Files each and lets its send fail twice: once for a while, and then for good."""
    await Lanes(redis, queue).file([Filing(element, BOT, bulk=bulk) for element in elements])
    while claims := await turn(redis, queue=queue):
        again = [end(claim, "again", 0, "attempts", errors[0]) for claim in claims]
        claims = await turn(redis, again, queue=queue)
        await turn(redis, [end(claim, "dead", reason, detail, errors[1]) for claim in claims], 0, queue)


def end(claim: Sequence[Any], verdict: str, first: object, second: str, error: str) -> list[Any]:
    lane, token = claim[0].decode(), claim[1].decode()
    return [WORKER[1], lane, token, verdict, first, second, "", error]
