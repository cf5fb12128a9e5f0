"""All that the inbox holds, as plain objects, and its rules as functions: no clock, no lock, no loop."""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pillarbox.ids import BotId, RowId
from pillarbox.inbox.filtering import Filter, Which
from pillarbox.inbox.handing import handful
from pillarbox.inbox.memory.lanes import Lanes, Moment, at
from pillarbox.inbox.memory.pinning import Pins
from pillarbox.inbox.repeats import Key, key, storable
from pillarbox.inbox.states import (
    Accepted,
    Audited,
    Counts,
    End,
    FailedUpdate,
    Incoming,
    Malformed,
    Moved,
    OutboxRow,
    Place,
    Turn,
)


@dataclass
class State:
    lanes: Lanes
    seen: dict[Key, float] = field(default_factory=dict)
    bodies: Counter[tuple[int, int]] = field(default_factory=Counter)
    failed: list[FailedUpdate] = field(default_factory=list)
    """The newest last."""
    malformed: list[Malformed] = field(default_factory=list)
    trimmed: Counter[tuple[str, BotId]] = field(default_factory=Counter)
    outbox: list[OutboxRow] = field(default_factory=list)
    audit: list[Audited] = field(default_factory=list)
    pins: Pins = field(init=False)

    def __post_init__(self) -> None:
        self.pins = Pins(self.audit)

    def accept(self, updates: Sequence[Incoming], now: float) -> list[Accepted]:
        return [self._accept(u, now) if storable(u) else Accepted.REFUSED for u in updates]

    def _accept(self, update: Incoming, now: float) -> Accepted:
        known, which = key(update), (update.bot_id, update.update_id)
        if known in self.seen:
            return Accepted.REPEAT
        self.seen[known] = now
        self.bodies[which] += 1
        self.lanes.append(update, now)
        return Accepted.NEW if self.bodies[which] == 1 else Accepted.NEW_BODY

    def keep_malformed(self, body: Malformed) -> None:
        self.malformed.append(body)
        kept = [m for m in self.malformed if m.bot_id == body.bot_id]
        if len(kept) > self.lanes.limits.max_malformed:
            self.malformed.remove(kept[0])
            self.trimmed["malformed", body.bot_id] += 1

    def turn(
        self,
        ends: Sequence[End],
        slots: int,
        *,
        suspects: bool,
        moment: Moment,
        bots: Set[BotId] | None = None,
    ) -> Turn:
        turn = self.lanes.turn(ends, slots, suspects=suspects, moment=moment, bots=bots)
        self.outbox += self.lanes.outbox
        self._keep(self.lanes.failures)
        self.lanes.outbox, self.lanes.failures = [], []
        return turn

    def _keep(self, written: Sequence[FailedUpdate]) -> None:
        """The newest stay, and what was just written in any case."""
        self.failed = sorted([*self.failed, *written], key=age)
        rows = {failed.row for failed in written}
        for bot_id in {failed.bot_id for failed in written}:
            mine = [failed for failed in self.failed if failed.bot_id == bot_id]
            old = mine[: max(len(mine) - self.lanes.limits.max_failed, 0)]
            gone = {failed.row for failed in old} - rows
            self.failed = [failed for failed in self.failed if failed.row not in gone]
            self.trimmed["failed", bot_id] += len(gone)

    def oldest_outbox(self, limit: int, bots: Set[BotId] | None = None) -> list[OutboxRow]:
        rows = [row for row in self.outbox if bots is None or row.bot_id in bots]
        return handful(sorted(rows, key=lambda row: (row.row, row.n)), limit)

    def relayed(self, rows: Sequence[OutboxRow]) -> None:
        gone = {row.id for row in rows}
        self.outbox = [row for row in self.outbox if row.id not in gone]

    def requeue(self, bot_id: BotId, which: Which, by: str, now: float) -> Moved:
        picked = self._pick("retry", bot_id, which, by, now)
        moved = self._moved(bot_id, which, picked)
        for f in picked:
            back = Incoming(bot_id, f.update_id, f.kind, f.lane, f.body, f.chat_id, f.user_id, f.sealed)
            self.lanes.append(back, now)
        return moved

    def discard(self, bot_id: BotId, which: Which, by: str, now: float) -> Moved:
        return self._moved(bot_id, which, self._pick("discard", bot_id, which, by, now))

    def _pick(
        self,
        action: Literal["retry", "discard"],
        bot_id: BotId,
        which: Which,
        by: str,
        now: float,
    ) -> list[FailedUpdate]:
        """Takes them off the failed list, in the order of acceptance."""
        matching = which if isinstance(which, Filter) else Filter()
        wanted = None if which is None or isinstance(which, Filter) else set(which)
        picked = [
            f
            for f in self.failed
            if f.bot_id == bot_id and matching.takes(f) and (wanted is None or f.update_id in wanted)
        ]
        picked.sort(key=lambda f: f.row)
        rows = {f.row for f in picked}
        self.failed = [f for f in self.failed if f.row not in rows]
        self.audit += [Audited(at(now), bot_id, f.update_id, by, action) for f in picked]
        return picked

    def _moved(self, bot_id: BotId, which: Which, picked: Sequence[FailedUpdate]) -> Moved:
        ids = () if which is None or isinstance(which, Filter) else which
        done = {f.update_id for f in picked}
        left = [update_id for update_id in dict.fromkeys(ids) if update_id not in done]
        waiting = {update.update_id for update in self.lanes.waiting(bot_id)}
        return Moved(
            len(picked),
            unknown=[update_id for update_id in left if update_id not in waiting],
            running=[update_id for update_id in left if update_id in waiting],
        )

    def failed_updates(
        self,
        bot_id: BotId,
        before: FailedUpdate | Place | None,
        limit: int,
        matching: Filter | None = None,
    ) -> list[FailedUpdate]:
        taken = matching or Filter()
        mine = [f for f in reversed(self.failed) if f.bot_id == bot_id and taken.takes(f)]
        return [f for f in mine if before is None or age(f) < age(before)][:limit]

    def audited(self, bot_id: BotId, limit: int) -> list[Audited]:
        return [noted for noted in reversed(self.audit) if noted.bot_id == bot_id][:limit]

    def counts(self, bot_id: BotId) -> Counts:
        return Counts(
            pending=len(self.lanes.waiting(bot_id)),
            failed=sum(f.bot_id == bot_id for f in self.failed),
            failed_trimmed=self.trimmed["failed", bot_id],
            malformed=sum(m.bot_id == bot_id for m in self.malformed),
            malformed_trimmed=self.trimmed["malformed", bot_id],
            outbox=sum(row.bot_id == bot_id for row in self.outbox),
        )

    def forget(self, now: float) -> None:
        old = now - self.lanes.limits.seen_for
        expired = [known for known, seen in self.seen.items() if seen < old]
        for bot_id in {BotId(known[0]) for known in expired}:
            here = {update.update_id for update in self.lanes.waiting(bot_id)}
            here |= {f.update_id for f in self.failed if f.bot_id == bot_id}
            for known in expired:
                if known[0] == bot_id and known[1] not in here:
                    del self.seen[known]
                    self.bodies[known[:2]] -= 1


def age(failed: FailedUpdate | Place) -> tuple[datetime, RowId]:
    return failed.failed_at, failed.row
