"""FSM state in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pillarbox.inbox.states import NOTHING, FsmKey, FsmValue, FsmWrite


@dataclass
class Fsm:
    values: dict[FsmKey, FsmValue] = field(default_factory=dict)

    def read(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        return [self.values.get(key, NOTHING) for key in keys]

    def write(self, writes: Sequence[FsmWrite], number: Callable[[], int]) -> bool:
        """All or none; `number` gives versions. False: one was written since it was read."""
        if any(self.values.get(write.key, NOTHING).version != write.version for write in writes):
            return False
        for write in writes:
            if write.is_empty:
                self.values.pop(write.key, None)
            else:
                self.values[write.key] = FsmValue(number(), write.state, write.data)
        return True
