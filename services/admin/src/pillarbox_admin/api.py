"""The REST API under `/api/v1`."""

from dataclasses import asdict
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import AwareDatetime

from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox import Filter, Which
from pillarbox_admin import in_full
from pillarbox_admin.access import bearer, with_right
from pillarbox_admin.cursor import Cursor
from pillarbox_admin.holders import Holder, Right
from pillarbox_admin.jobs import Job
from pillarbox_admin.parts import Given
from pillarbox_admin.problems import MEDIA_TYPE, Problem
from pillarbox_admin.reader import LIMIT, Page
from pillarbox_admin.shown import type_and_place
from pillarbox_admin.views import (
    INT64,
    MOST_IDS,
    BotCounts,
    Bots,
    Choice,
    FailedUpdate,
    FailedUpdateInFull,
    FailedUpdates,
    FailedUpdatesInFull,
    Id,
    JobView,
    MalformedBodies,
    ProblemDetails,
    Queue,
    Result,
    Word,
    result_of,
)

MayRead = Annotated[Holder, Depends(bearer(Right.READ))]
MayAct = Annotated[Holder, Depends(bearer(Right.ACT))]
MaySeePayload = Annotated[Holder, Depends(bearer(Right.PAYLOAD))]

BotPath = Annotated[BotId, Path(ge=0, le=INT64, examples=[123456])]
UpdatePath = Annotated[UpdateId, Path(ge=0, le=INT64, examples=[730152498])]
Limit = Annotated[int, Query(ge=1, le=LIMIT)]
After = Annotated[str | None, Query(description="`next` of the page before", max_length=200)]
Time = Annotated[AwareDatetime | None, Query(examples=["2026-01-31T12:00:00Z"])]


def asked(
    since: Annotated[AwareDatetime | None, Query(alias="from", description="failed then or later")] = None,
    to: Annotated[AwareDatetime | None, Query(description="failed before then")] = None,
    kind: Annotated[Word | None, Query(examples=["message"])] = None,
    chat_id: Annotated[int | None, Query(ge=-INT64 - 1, le=INT64)] = None,
    error: Annotated[Word | None, Query(description="the error's type", examples=["KeyError"])] = None,
    update_ids: Annotated[list[Id] | None, Query(description="one of these", max_length=MOST_IDS)] = None,
) -> Filter:
    return Filter(since, to, kind, chat_id, error, _ids(update_ids))


NO_FILTER = 'This filter asks for nothing. For all failed updates of the bot send {"all": true}.'
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "model": ProblemDetails,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
    for status in (401, 403, 422, 503)
}
LARGE: dict[int | str, dict[str, Any]] = {
    202: {"model": JobView, "description": "It goes on; look at the job."}
}
NO_JOB = (
    "Admin has no such job: it ended long ago, or admin was started again since. What it moved stays moved; "
    "ask again for the rest."
)
router = APIRouter(prefix="/api/v1", responses=PROBLEMS)


@router.get("/bots", response_model=Bots)
async def bots(given: Given, _: MayRead) -> dict[str, Any]:
    return {"items": await given.reader.bots()}


@router.get("/bots/{bot_id}", response_model=BotCounts)
async def bot(given: Given, _: MayRead, bot_id: BotPath) -> dict[str, Any]:
    if not await given.storage.knows(bot_id):
        raise Problem(404, "Nothing was ever stored of this bot.")
    return {"bot_id": bot_id} | asdict(await given.storage.counts(bot_id))


@router.get("/bots/{bot_id}/failed-updates", response_model=FailedUpdates | FailedUpdatesInFull)
async def failed_updates(
    given: Given,
    holder: MayRead,
    bot_id: BotPath,
    asked: Annotated[Filter, Depends(asked)],
    after: After = None,
    limit: Limit = 50,
    with_payload: Annotated[
        bool, Query(alias="payload", description="each in full; needs the right to `payload` too")
    ] = False,
) -> Any:
    """From the newest failure to the oldest."""
    if with_payload:
        with_right(Right.PAYLOAD, holder)
        return await in_full.page(given.storage, bot_id, asked, _cursor(after), limit)
    page = await given.reader.failed(bot_id, asked, _cursor(after), limit)
    return _listed(page) if Right.PAYLOAD in holder.rights else _without_messages(page)


@router.get("/bots/{bot_id}/failed-updates/{update_id}", response_model=FailedUpdateInFull)
async def failed_update(
    given: Given,
    _: MaySeePayload,
    bot_id: BotPath,
    update_id: UpdatePath,
    row: Annotated[RowId | None, Query(ge=0, le=INT64)] = None,
) -> Response:
    """With the payload as Telegram sent it; the newest, unless `row` names one of several with this id."""
    found = await given.reader.failed_update(bot_id, update_id, row)
    if found is None:
        raise Problem(404, "This bot has no failed update with this id.")
    return Response(msgspec.json.encode(in_full.of(found)), media_type="application/json")


@router.post("/bots/{bot_id}/failed-updates/retry", response_model=Result, responses=LARGE)
async def retry(given: Given, holder: MayAct, bot_id: BotPath, choice: Choice) -> Response:
    """Puts them at the ends of their lanes, as if they had just come; more than 1,000 as a job."""
    return answered(await given.acts.retry(bot_id, _which(choice), holder.name))


@router.post("/bots/{bot_id}/failed-updates/discard", response_model=Result, responses=LARGE)
async def discard(given: Given, holder: MayAct, bot_id: BotPath, choice: Choice) -> Response:
    """Forgets them; the audit keeps which, and the token's name; more than 1,000 as a job."""
    return answered(await given.acts.discard(bot_id, _which(choice), holder.name))


@router.get("/jobs/{job_id}", response_model=JobView)
async def job(
    given: Given,
    _: MayAct,
    job_id: Annotated[str, Path(max_length=100)],
    wait: Annotated[float, Query(ge=0, le=20, description="seconds; answered sooner when it ends")] = 0,
) -> JobView:
    """How far it is. Admin forgets its jobs when it ends; what they moved stays moved."""
    found = given.jobs.get(job_id)
    if found is None:
        raise Problem(404, NO_JOB)
    await found.wait(wait)
    return JobView.of(found)


@router.get("/malformed", response_model=MalformedBodies)
async def malformed(given: Given, _: MayRead, after: After = None, limit: Limit = 50) -> dict[str, Any]:
    """Bodies that no update could be read from, the newest first."""
    return _listed(await given.reader.malformed(_cursor(after), limit))


@router.get("/outbound", response_model=Queue)
async def outbound(given: Given, _: MayRead) -> dict[str, Any]:
    found = await given.outbound.depths()
    bots = [
        {
            "bot_id": int(bot) if bot.isdigit() else None,
            "waiting": depths.waiting,
            "delayed": depths.delayed,
            "dead": depths.dead,
            "oldest_seconds": depths.oldest,
            "paused": depths.paused,
        }
        for bot, depths in found.bots.items()
    ]
    return {
        "doors": found.doors,
        "sending": found.sending,
        "bots": bots,
        "buried": found.buried,
        "trimmed": found.trimmed,
        "acts": found.acts,
    }


def answered(job: Job) -> Response:
    if job.result is not None:
        return Response(result_of(job.result).model_dump_json(), media_type="application/json")
    headers = {"Location": f"/api/v1/jobs/{job.id}"}
    return Response(JobView.of(job).model_dump_json(), 202, headers, "application/json")


def _listed(page: Page) -> dict[str, Any]:
    return {"items": page.rows, "next": str(page.next) if page.next else None}


def _without_messages(page: Page) -> dict[str, Any]:
    listed = _listed(page)
    items = [
        {name: getattr(row, name) for name in FailedUpdate.model_fields}
        | {"error": type_and_place(row.type, row.place)}
        for row in page.rows
    ]
    return listed | {"items": items}


def _cursor(after: str | None) -> Cursor | None:
    return Cursor.read(after) if after else None


def _ids(given: list[int] | None) -> tuple[UpdateId, ...] | None:
    return None if given is None else tuple(map(UpdateId, given))


def _which(choice: Choice) -> Which:
    if choice.filter is not None:
        given = choice.filter
        ids = _ids(given.update_ids)
        asked = Filter(given.since, given.to, given.kind, given.chat_id, given.error, ids)
        if asked == Filter():
            raise Problem(400, NO_FILTER)
        return asked
    return None if choice.all else [UpdateId(update_id) for update_id in choice.update_ids or ()]
