"""The runs under way, and those that nobody waits for any more."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pillarbox.ids import Token
from pillarbox.inbox import End, Lease
from pillarbox_dispatcher import cancels

Why = Literal["lost", "stop"]


@dataclass(slots=True)
class Run:
    lease: Lease
    task: "asyncio.Task[End]"
    since: float
    cancelled: Why | None = None

    def cancel(self, why: Why) -> None:
        if self.cancelled is None:
            self.cancelled = why
            cancels.cancel(self.task)


class Underway:
    """`unwilling` are tasks that went on when they were cancelled: no longer runs, and still there."""

    def __init__(self) -> None:
        self._runs: dict[Token, Run] = {}
        self._unwilling: set[asyncio.Task[End]] = set()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self._runs.values()))

    def add(self, run: Run) -> None:
        self._runs[run.lease.token] = run

    def get(self, token: Token) -> Run | None:
        return self._runs.get(token)

    def pop(self, token: Token, task: "asyncio.Task[End]") -> Run | None:
        """The run that `task` was, now that it has ended; None where nobody waits for it."""
        self._unwilling.discard(task)
        return self._runs.pop(token, None)

    def disown(self, run: Run) -> None:
        del self._runs[run.lease.token]
        self._unwilling.add(run.task)
        cancels.cancel(run.task)

    @property
    def endless(self) -> int:
        """After a stop: all that did not end."""
        return len(self._runs) + len(self._unwilling)

    def stop(self) -> None:
        for run in self:
            run.cancel("stop")
        for task in self._unwilling:
            cancels.cancel(task)

    async def wait(self, seconds: float) -> None:
        if tasks := [*(run.task for run in self), *self._unwilling]:
            await asyncio.wait(tasks, timeout=seconds)
