"""A message that waits is taken back before it goes out."""

from dataclasses import dataclass
from typing import Literal

from pillarbox.ids import BotId
from pillarbox.outbound.scripts import Runs

Outcome = Literal["cancelled", "sending", "ended", "unknown"]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """`in_doubt`: an earlier send of it may have reached the Bot API."""

    outcome: Outcome
    in_doubt: bool = False


async def cancel(runs: Runs, bot_id: BotId, id: str, by: str) -> Cancelled:
    """A message that waits, in a lane or until it is due, never goes out; its id stays filed. Raises
    QueueUnavailable. What the door has not filed yet is `unknown`.
    """
    for _ in range(2):  # a second look, as lanes move between the parts of the first
        skip, word, parts, doubt = 0, b"more", 0, 0
        while word == b"more":
            word, doubt, skip = await runs.call("cancel", str(bot_id), id, by, skip)
            parts += 1
        if word != b"ended" or parts == 1:
            break
    return Cancelled(word.decode(), bool(doubt))  # type: ignore[arg-type]
