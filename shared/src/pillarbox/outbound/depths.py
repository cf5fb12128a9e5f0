"""What waits in the queue, where, and for how long: for metrics and for people."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redis.asyncio import Redis

from pillarbox.outbound.connection import passing
from pillarbox.outbound.keys import Keys

CLASSES = ("answer", "interactive", "paid", "bulk")
ACTS = ("retry", "edit", "discard", "cancel")
LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class BotDepths:
    """`waiting` is in lanes, by class, with what is being sent. `oldest`: the longest wait, in seconds, among
    the heads of the lanes that are next in turn. `paused`: why no worker sends for this bot now; `unserved`
    where something waits and no living worker has its token.
    """

    waiting: Mapping[str, int] = field(default_factory=dict)
    delayed: int = 0
    dead: int = 0
    oldest: float = 0.0
    paused: str | None = None


@dataclass(frozen=True, slots=True)
class Depths:
    """`doors` are not filed yet, by list; `sending` by worker; `buried` counts the dead ever, by reason, and
    `acts` what people did with messages ever, by act.
    """

    doors: Mapping[str, int]
    sending: Mapping[str, int]
    bots: Mapping[str, BotDepths]
    buried: Mapping[str, int]
    trimmed: int
    acts: Mapping[str, int] = field(default_factory=dict)


async def depths(redis: "Redis", queue: str) -> Depths:
    """Raises QueueUnavailable."""
    keys = Keys(queue)
    with passing():
        bots = sorted(_text(bot) for bot in await redis.smembers(f"{queue}:bots"))
        workers = await _texts(redis, keys.workers)
        pipe = redis.pipeline(transaction=False)
        for door in keys.doors:
            pipe.llen(door)
        for incarnation in workers:
            pipe.hlen(keys.claims(incarnation))
        pipe.hgetall(f"{queue}:buried")
        pipe.hmget(f"{queue}:numbers", "trimmed", *ACTS)
        answers = await pipe.execute()
        *counts, buried, numbers = answers
        trimmed, *acts = (int(number or 0) for number in numbers)
        return Depths(
            doors=dict(zip(keys.doors, counts, strict=False)),
            sending=dict(zip(workers.values(), counts[2:], strict=True)),
            bots={bot: await _bot(redis, queue, bot) for bot in bots},
            buried={reason.decode(): int(n) for reason, n in buried.items()},
            trimmed=trimmed,
            acts=dict(zip(ACTS, acts, strict=True)),
        )


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


async def _texts(redis: "Redis", key: str) -> dict[str, str]:
    found = await redis.hgetall(key)
    return {_text(name): _text(value) for name, value in found.items()}


async def _bot(redis: "Redis", queue: str, bot: str) -> BotDepths:
    pipe = redis.pipeline(transaction=False)
    pipe.hgetall(f"{queue}:depth:{bot}")
    pipe.zcard(f"{queue}:delayed:{bot}")
    pipe.zcard(f"{queue}:dead:{bot}")
    pipe.hget(f"{queue}:pause:{bot}", "kind")
    pipe.exists(f"{queue}:served:{bot}")
    pipe.time()
    for kind in CLASSES:
        pipe.zrange(f"{queue}:ready:{bot}:{kind}", 0, LOOKED_AT - 1)
    waiting, delayed, dead, paused, served, clock, *chats = await pipe.execute()
    lanes = [
        f"{queue}:lane:{bot}:{kind}:{chat.decode()}"
        for kind, ready in zip(CLASSES, chats, strict=True)
        for chat in ready
    ]
    in_lanes = {kind.decode(): int(n) for kind, n in waiting.items()}
    if not served and (delayed or any(in_lanes.values())):
        paused = b"unserved"
    return BotDepths(
        waiting=in_lanes,
        delayed=delayed,
        dead=dead,
        oldest=await _oldest(redis, lanes, clock[0] + clock[1] / 1e6),
        paused=paused.decode() if paused else None,
    )


async def _oldest(redis: "Redis", lanes: list[str], now: float) -> float:
    pipe = redis.pipeline(transaction=False)
    for lane in lanes:
        pipe.lindex(lane, 0)
    heads = [head for head in await pipe.execute() if head]
    filed = [int(head.split(b"\t", 2)[1]) / 1000 for head in heads]
    return max(0.0, now - min(filed)) if filed else 0.0
