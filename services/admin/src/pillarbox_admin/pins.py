"""Which key is trusted for a person: read, trust another one, forget."""

from typing import Annotated

from fastapi import APIRouter, Path

from pillarbox.inbox import Pin
from pillarbox_admin.api import PROBLEMS, BotPath, MayAct, MayRead
from pillarbox_admin.parts import Given
from pillarbox_admin.problems import Problem
from pillarbox_admin.views import INT64, Key, PinView

ADDRESS = "/bots/{bot_id}/pins/{user_id}"

UserPath = Annotated[int, Path(ge=-INT64 - 1, le=INT64, examples=[42])]

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)


@router.get(ADDRESS, response_model=PinView)
async def pinned(given: Given, _: MayRead, bot_id: BotPath, user_id: UserPath) -> Pin:
    return _found(await given.storage.pinned(bot_id, user_id))


@router.put(ADDRESS, response_model=PinView)
async def trust(given: Given, holder: MayAct, bot_id: BotPath, user_id: UserPath, key: Key) -> Pin:
    """In the place of whichever key was pinned; the audit keeps both."""
    return await given.acts.trust(bot_id, user_id, key.fingerprint, holder.name)


@router.delete(ADDRESS, response_model=PinView)
async def forget(given: Given, holder: MayAct, bot_id: BotPath, user_id: UserPath) -> Pin:
    """The next key that is seen will be pinned. Answers the pin that is gone."""
    return _found(await given.acts.forget(bot_id, user_id, holder.name))


def _found(pin: Pin | None) -> Pin:
    if pin is None:
        raise Problem(404, "No key is pinned for this person.")
    return pin
