"""Dead messages and what people do with messages, in the REST API."""

from dataclasses import replace
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Body, Depends, Path, Query, Response

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound.dead import Dead, DeadFilter
from pillarbox_admin import dead_acts, payload
from pillarbox_admin.api import (
    LARGE,
    PROBLEMS,
    After,
    BotPath,
    Limit,
    MayAct,
    MayRead,
    MaySeePayload,
    Time,
    answered,
)
from pillarbox_admin.cursor import Cursor
from pillarbox_admin.dead_views import (
    Acts,
    Cancel,
    Cancelled,
    Chat,
    DeadChoice,
    DeadLike,
    DeadMessage,
    DeadMessageInFull,
    DeadMessages,
    MessageId,
)
from pillarbox_admin.holders import Right
from pillarbox_admin.parts import Given
from pillarbox_admin.problems import Problem
from pillarbox_admin.views import INT64, MOST_IDS, DeadResult, Id, Word

NumberPath = Annotated[int, Path(ge=0, le=INT64, examples=[51])]
OfBot = Annotated[BotId | None, Query(ge=0, le=INT64, description="only where it is this bot's")]
GONE = "There is no dead message with this number."
LATE = {
    "unknown": (404, "No message with this id was filed for this bot within 24 hours."),
    "sending": (409, "It cannot be cancelled: its send is out."),
    "ended": (409, "It cannot be cancelled: it was sent, is dead, or was cancelled before."),
}

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)


def asked(
    bot_id: Annotated[Id | None, Query(examples=[123456])] = None,
    since: Annotated[Time, Query(alias="from", description="died then or later")] = None,
    to: Annotated[Time, Query(description="died before then")] = None,
    reason: Annotated[Word | None, Query(examples=["refused"])] = None,
    method: Annotated[Word | None, Query(examples=["sendMessage"])] = None,
    chat_id: Annotated[Chat | None, Query(examples=["-1001234567890", "@channel"])] = None,
    id: Annotated[MessageId | None, Query(description="as its producer named it")] = None,
    numbers: Annotated[list[Id] | None, Query(description="one of these", max_length=MOST_IDS)] = None,
) -> DeadFilter:
    given = {"bot_id": bot_id, "reason": reason, "method": method, "chat_id": chat_id, "id": id}
    return DeadLike(since=since, to=to, numbers=numbers, **given).asked


@router.get("/outbound/dead", response_model=DeadMessages)
async def dead(
    given: Given,
    holder: MayRead,
    asked: Annotated[DeadFilter, Depends(asked)],
    after: After = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """Messages that will not be tried again, the newest first."""
    page = await given.outbound.dead(asked, Cursor.read(after) if after else None, limit)
    rows = page.rows if Right.PAYLOAD in holder.rights else [without_words(row) for row in page.rows]
    return {"items": rows, "next": str(page.next) if page.next else None}


@router.get("/outbound/dead/{number}", response_model=DeadMessageInFull)
async def dead_message(given: Given, _: MaySeePayload, number: NumberPath, bot_id: OfBot = None) -> Response:
    """With the element as it came."""
    found = await given.outbound.dead_message(number, bot_id)
    if found is None:
        raise Problem(404, GONE)
    return Response(msgspec.json.encode(in_full(found)), media_type="application/json")


@router.post("/outbound/dead/retry", response_model=DeadResult, responses=LARGE)
async def retry(given: Given, holder: MayAct, choice: DeadChoice) -> Response:
    """Puts them at the ends of their lanes, the oldest first; more than 1,000 as a job."""
    return answered(await dead_acts.move(given, "retry", choice.which, holder.name))


@router.post("/outbound/dead/discard", response_model=DeadResult, responses=LARGE)
async def discard(given: Given, holder: MayAct, choice: DeadChoice) -> Response:
    """Forgets them; the audit keeps which, and the token's name; more than 1,000 as a job."""
    return answered(await dead_acts.move(given, "discard", choice.which, holder.name))


@router.post("/outbound/dead/{number}/edit", response_model=DeadResult)
async def edit(
    given: Given,
    holder: MayAct,
    number: NumberPath,
    changes: Annotated[
        dict[str, Any],
        Body(
            examples=[{"params": {"chat_id": 42, "text": "hi"}}, {"method": "sendPhoto", "expires_at": None}]
        ),
    ],
    bot_id: OfBot = None,
) -> Any:
    """Sends it with these fields in the place of its own; null takes a field away. Checked as a push is."""
    try:
        done = await given.outbound.edit(number, changes, holder.name, bot_id)
    except (MessageRefused, MessageKept) as refused:
        raise Problem(422, f"It stays as it was: {refused}.", reason=refused.reason) from None
    return {"moved": int(done), "unknown": [] if done else [number], "refused": []}


@router.post("/bots/{bot_id}/messages/cancel", response_model=Cancelled)
async def cancel(given: Given, holder: MayAct, bot_id: BotPath, named: Cancel) -> Cancelled:
    """A message that waits, or is not due yet, never goes out; its id stays filed. 409: its send is out."""
    found = await given.outbound.cancel(bot_id, named.id, holder.name)
    if found.outcome != "cancelled":
        status, detail = LATE[found.outcome]
        raise Problem(status, detail, outcome=found.outcome)
    return Cancelled(in_doubt=found.in_doubt)


@router.get("/outbound/audit", response_model=Acts)
async def audit(given: Given, _: MayRead, limit: Limit = 50) -> dict[str, Any]:
    """What people did with messages, the newest first; the last 20,000 are kept."""
    return {"items": await given.outbound.audited(limit)}


def without_words(found: Dead) -> Dead:
    """Of a refusal its status alone: an answer may quote the message."""
    if found.reason != "refused":
        return found
    return replace(found, detail=found.detail.partition(" ")[0])


def in_full(found: Dead) -> dict[str, Any]:
    element = found.element or b""
    fields = {name: getattr(found, name) for name in DeadMessage.model_fields}
    return fields | {"payload": payload.as_json(element), "payload_base64": payload.as_base64(element)}
