"""MemoryStorage, and what a unit test of the dispatcher does to it and looks at."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox import (
    End,
    Incoming,
    Later,
    Limits,
    OutboxRow,
    Released,
    Renewer,
    Retried,
    Turn,
    Uncounted,
)
from pillarbox.inbox.memory import MemoryStorage
from pillarbox.inbox.memory.lanes import Lane, LaneKey


class MemoryInbox(MemoryStorage):
    """Leases that end when a test takes them away, and an outage that it switches on."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.ends: list[End] = []
        self.uncounted: list[Token] = []
        self.runs: dict[RowId, int] = {}
        self.away = False
        self.locked: set[str] = set()
        self.turns = 0
        self._rows: dict[Token, RowId] = {}
        self._ids = itertools.count(1)

    @property
    def lanes(self) -> dict[LaneKey, Lane]:
        return self._state.lanes.lanes

    @property
    def held(self) -> dict[Token, LaneKey]:
        return self._state.lanes.held

    @property
    def outbox(self) -> list[OutboxRow]:
        return self._state.outbox

    @outbox.setter
    def outbox(self, rows: list[OutboxRow]) -> None:
        self._state.outbox = rows

    @property
    def is_empty(self) -> bool:
        return not self.lanes

    def put(
        self, lane: str, body: bytes = b"{}", *, bot_id: int = 42, accepted_at: datetime | None = None
    ) -> RowId:
        update = Incoming(BotId(bot_id), UpdateId(next(self._ids)), "message", lane, body)
        at = self._now() if accepted_at is None else accepted_at.timestamp()
        self._state.lanes.append(update, at)
        self._came.set()
        return RowId(self._state.lanes.last)

    def take_away(self, token: Token) -> None:
        """As when the lease ended and another dispatcher has the lane now."""
        self.held.pop(token)

    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn:
        await asyncio.sleep(0)
        if self.away:
            raise StorageUnavailable("switched off")
        self.turns += 1
        locked = {
            end.token for end in ends if end.token in self.held and self.held[end.token][1] in self.locked
        }
        ends = [end for end in ends if end.token not in locked]
        turn = replace(await super().turn(ends, slots, suspects=suspects), locked=frozenset(locked))
        for end in ends:
            if isinstance(end, Uncounted):
                self.uncounted.append(end.token)
            elif end.token not in turn.lost:
                self.ends.append(end)
                self.runs[self._rows[end.token]] -= isinstance(end, Released | Later | Retried)
        for lease in turn.leases:
            self._rows[lease.token] = lease.row
            self.runs[lease.row] = lease.run
        return turn

    def renewer(self) -> Renewer:
        return _Renewer(self, super().renewer())


class _Renewer:
    def __init__(self, inbox: MemoryInbox, renewer: Renewer) -> None:
        self._inbox = inbox
        self._renewer = renewer

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        if self._inbox.away:
            raise StorageUnavailable("switched off")
        return self._renewer.renew(tokens)

    def close(self) -> None:
        self._renewer.close()
