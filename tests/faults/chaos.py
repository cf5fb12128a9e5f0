"""What is killed, and when: drawn from a seed, so that a run can be had again."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

KILLS_EACH: Final = 3
SERVERS: Final = ("postgres", "valkey")


@dataclass(frozen=True, slots=True)
class Kill:
    """At `at` seconds of the run `kill -9`, and `down` seconds later started again."""

    at: float
    name: str
    down: float


def plan(seed: int, services: list[str], seconds: float, servers: Sequence[str] = SERVERS) -> list[Kill]:
    """Each service three times, each server once, at random moments; no process twice while it is down."""
    chance = random.Random(seed)
    kills = []
    for name in services:
        part = seconds / KILLS_EACH
        for number in range(KILLS_EACH):
            at = (number + chance.uniform(0.1, 0.9)) * part
            kills.append(Kill(at, name, chance.uniform(0.1, min(1.0, part * 0.1))))
    for name in servers:
        kills.append(Kill(chance.uniform(0.2, 0.8) * seconds, name, chance.uniform(0.5, 1.5)))
    return sorted(kills, key=lambda kill: kill.at)
