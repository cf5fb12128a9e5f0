"""What people did with messages: kept in the queue, in the same step that did it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pillarbox.ids import BotId
from pillarbox.outbound.scripts import Runs


@dataclass(frozen=True, slots=True)
class Audited:
    """One message and what a person did with it: retry, edit, discard or cancel."""

    at: datetime
    bot_id: BotId | None
    by: str
    action: str
    id: str
    lane: str
    number: int | None = None
    reason: str | None = None


async def audited(runs: Runs, most: int) -> list[Audited]:
    """The newest first. Raises QueueUnavailable."""
    return [_audited(json.loads(row)) for row in await runs.call("audited", most)]


def _audited(row: dict[str, Any]) -> Audited:
    bot = row["bot"]
    return Audited(
        at=datetime.fromtimestamp(row["at"] / 1000, UTC),
        bot_id=BotId(int(bot)) if bot.isdigit() else None,
        by=row["by"],
        action=row["action"],
        id=row["id"],
        lane=row["lane"],
        number=int(row["number"]) if "number" in row else None,
        reason=row.get("reason"),
    )
