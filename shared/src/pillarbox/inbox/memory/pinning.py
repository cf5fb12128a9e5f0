"""Which key is trusted for a person, in memory."""

from dataclasses import dataclass, field
from typing import Literal

from pillarbox.ids import BotId
from pillarbox.inbox.fingerprints import fingerprint_of
from pillarbox.inbox.memory.lanes import at
from pillarbox.inbox.states import Audited, Pin


@dataclass
class Pins:
    audit: list[Audited]
    """What is changed here is noted there."""
    pins: dict[tuple[BotId, int], Pin] = field(default_factory=dict)

    def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        return self.pins.get((bot_id, user_id))

    def pin(self, bot_id: BotId, user_id: int, fingerprint: str, by: str, now: float) -> Pin:
        new = Pin(user_id, fingerprint_of(fingerprint), at(now))
        return self.pinned(bot_id, user_id) or self._put("pin", bot_id, new, by)

    def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str, now: float) -> Pin:
        return self._put("trust", bot_id, Pin(user_id, fingerprint_of(fingerprint), at(now)), by)

    def forget(self, bot_id: BotId, user_id: int, by: str, now: float) -> Pin | None:
        old = self.pins.pop((bot_id, user_id), None)
        if old is not None:
            self.audit.append(Audited(at(now), bot_id, None, by, "forget", user_id, old.fingerprint))
        return old

    def _put(self, action: Literal["pin", "trust"], bot_id: BotId, new: Pin, by: str) -> Pin:
        old = self.pinned(bot_id, new.user_id)
        self.pins[bot_id, new.user_id] = new
        noted = Audited(
            new.pinned_at,
            bot_id,
            None,
            by,
            action,
            new.user_id,
            old.fingerprint if old else None,
            new.fingerprint,
        )
        self.audit.append(noted)
        return new
