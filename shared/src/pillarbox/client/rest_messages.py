"""Dead and waiting messages over admin's REST API."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlencode

from pillarbox.client.source import PAGE, Mark
from pillarbox.errors import MessageRefused, RequestRefused
from pillarbox.ids import BotId
from pillarbox.outbound.acts import MovedDead, Progress
from pillarbox.outbound.cancelling import Cancelled
from pillarbox.outbound.dead import Dead, DeadFilter

MOST_NUMBERS = 1000
SAME = ("number", "lane", "id", "method", "reason", "detail", "attempts", "first_error", "last_error", "size")
Ask = Callable[..., Awaitable[Any]]
Done = Callable[[str, object, Progress], Awaitable[dict[str, Any]]]


class RestMessages:
    """`ask` makes one call; `done` waits for what one has moved."""

    def __init__(self, ask: Ask, done: Done) -> None:
        self._ask, self._done = ask, done

    async def page(self, matching: DeadFilter, mark: Mark) -> tuple[list[Dead], Mark]:
        if matching.numbers == ():  # an address cannot say so
            return [], None
        query = _words(matching) | {"limit": PAGE} | ({"after": mark} if mark else {})
        page = await self._ask("GET", f"/outbound/dead?{urlencode(query, doseq=True)}")
        return [_dead(item) for item in page["items"]], page["next"]

    async def find(self, bot_id: BotId, number: int) -> Dead | None:
        found = await self._ask("GET", f"/outbound/dead/{number}?bot_id={bot_id}", missing=None)
        return None if found is None else _dead(found)

    async def move(
        self, act: Literal["retry", "discard"], matching: DeadFilter, progress: Progress
    ) -> MovedDead:
        path, words = f"/outbound/dead/{act}", _words(matching)
        if matching.numbers is None:
            return _moved(await self._done(path, {"filter": words}, progress))
        total = MovedDead()
        for at in range(0, len(matching.numbers), MOST_NUMBERS):
            part = words | {"numbers": matching.numbers[at : at + MOST_NUMBERS]}
            moved = _moved(await self._done(path, {"filter": part}, progress))
            total = MovedDead(
                total.moved + moved.moved, total.unknown + moved.unknown, total.refused + moved.refused
            )
        return total

    async def edit(self, bot_id: BotId, number: int, changes: Mapping[str, Any]) -> bool:
        path = f"/outbound/dead/{number}/edit?bot_id={bot_id}"
        try:
            return bool((await self._ask("POST", path, dict(changes)))["moved"])
        except RequestRefused as refused:
            if "reason" not in refused.members:
                raise
            raise MessageRefused(refused.members["reason"], refused.members["detail"]) from None

    async def cancel(self, bot_id: BotId, id: str) -> Cancelled:
        try:
            found = await self._ask("POST", f"/bots/{bot_id}/messages/cancel", {"id": id})
        except RequestRefused as refused:
            if "outcome" not in refused.members:
                raise
            return Cancelled(refused.members["outcome"])
        return Cancelled("cancelled", found["in_doubt"])


def _words(matching: DeadFilter) -> dict[str, Any]:
    given = {
        "bot_id": matching.bot_id,
        "reason": matching.reason,
        "method": matching.method,
        "chat_id": matching.chat,
        "from": matching.since.isoformat() if matching.since else None,
        "to": matching.until.isoformat() if matching.until else None,
        "id": matching.id,
        "numbers": matching.numbers,
    }
    return {name: value for name, value in given.items() if value is not None}


def _dead(item: Mapping[str, Any]) -> Dead:
    element = item.get("payload_base64")
    return Dead(
        **{name: item[name] for name in SAME},
        bot_id=None if item["bot_id"] is None else BotId(item["bot_id"]),
        died_at=datetime.fromisoformat(item["died_at"]),
        element=None if element is None else base64.b64decode(element),
    )


def _moved(found: Mapping[str, Any]) -> MovedDead:
    return MovedDead(found["moved"], tuple(found["unknown"]), tuple(found["refused"]))
