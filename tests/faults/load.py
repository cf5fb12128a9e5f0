"""What users write and apps push in one run: numbered, so that the ledger can be counted."""

import random
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tests.faults.verdict import Key

Said = tuple[int, int]
"""Chat and number."""

FIRST_CHAT = 1000


@dataclass(frozen=True)
class Load:
    """Updates and pushed messages, spread over the chats and over `seconds`.

    `failing` of the updates make the handler raise, `killers` end its process each time that they run.
    """

    seed: int = 1
    updates: int = 2000
    chats: int = 200
    pushed: int = 1000
    seconds: float = 30.0
    failing: int = 20
    killers: int = 0

    @cached_property
    def said(self) -> list[Said]:
        return self._spread(self.updates)

    @cached_property
    def pushes(self) -> list[Said]:
        return self._spread(self.pushed)

    def _spread(self, count: int) -> list[Said]:
        return [(FIRST_CHAT + i % self.chats, i // self.chats + 1) for i in range(count)]

    @cached_property
    def trouble(self) -> dict[Said, Literal["fails", "kills"]]:
        chosen = random.Random(self.seed).sample(self.said, self.failing + self.killers)
        return {said: "kills" if i < self.killers else "fails" for i, said in enumerate(chosen)}

    @cached_property
    def answered(self) -> list[Key]:
        """What must be in the ledger at the end."""
        said = [("u", chat, number) for chat, number in self.said if (chat, number) not in self.trouble]
        return said + [("p", chat, number) for chat, number in self.pushes]

    def text(self, chat: int, number: int) -> str:
        """What the user writes."""
        trouble = self.trouble.get((chat, number))
        return f"#{chat}:{number}" + (f" {trouble}" if trouble else "")
