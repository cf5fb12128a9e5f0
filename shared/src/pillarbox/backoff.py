"""Waiting longer after each failure, and at once again after a success."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Delays of `first`, then twice the last, up to `most` seconds; chance shortens each by up to a half."""

    first: float = 0.1
    most: float = 5.0
    _next: float = field(default=0.0, init=False)

    @property
    def fresh(self) -> bool:
        """Nothing has failed since the start, or since the last success."""
        return not self._next

    def delay(self) -> float:
        """Seconds to wait now; the next answer is up to twice as long."""
        current = self._next or self.first
        self._next = min(current * 2, self.most)
        return current * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret

    def reset(self) -> None:
        self._next = 0.0
