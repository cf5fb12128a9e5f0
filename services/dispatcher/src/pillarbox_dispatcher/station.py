"""What the dispatcher asks of the inbox."""

from collections.abc import Sequence
from typing import Protocol

from pillarbox.inbox import End, FsmKey, FsmValue, FsmWrite, Renewer, Turn
from pillarbox.inbox.storage import Filer


class Station(Protocol):
    """The part of `pillarbox.inbox.Storage` by which updates are handled; its promises are written there."""

    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn: ...

    def renewer(self) -> Renewer: ...

    async def wait(self, timeout: float) -> None: ...

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]: ...

    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool: ...

    async def relay(self, file: Filer, limit: int) -> int: ...
