"""The page at `/`: the same readings and acts as the API's, drawn on the server, without a script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Path, Query, Request, Response
from starlette.responses import RedirectResponse

from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox import Filter, Moved, Which
from pillarbox_admin import payload, shown
from pillarbox_admin.access import same_site, session
from pillarbox_admin.cursor import Cursor
from pillarbox_admin.holders import Holder, Right
from pillarbox_admin.jobs import Job
from pillarbox_admin.parts import Given
from pillarbox_admin.problems import Problem
from pillarbox_admin.views import INT64, Id

ROWS = 100
REFRESH = 2
"""Seconds, while a job goes on."""

Reads = Annotated[Holder, Depends(session(Right.READ))]
Acting = Annotated[Holder, Depends(session(Right.ACT))]
BotPath = Annotated[BotId, Path(ge=0, le=INT64)]
UpdatePath = Annotated[UpdateId, Path(ge=0, le=INT64)]
RowQuery = Annotated[RowId | None, Query(ge=0, le=INT64)]

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Group:
    """Failures of one type at one place: all of them counted, those of this page listed."""

    type: str
    place: str
    count: int
    updates: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        return shown.type_and_place(self.type, self.place)


@router.get("/")
async def bots(request: Request, given: Given, _: Reads) -> Response:
    return given.drawing.page(request, "bots.html", here="bots", bots=await given.reader.bots())


@router.get("/malformed")
async def malformed(request: Request, given: Given, _: Reads, after: str = "") -> Response:
    page = await given.reader.malformed(Cursor.read(after) if after else None, ROWS)
    return given.drawing.page(request, "malformed.html", here="malformed", bodies=page.rows, next=page.next)


@router.get("/bots/{bot_id}")
async def bot(request: Request, given: Given, holder: Reads, bot_id: BotPath, after: str = "") -> Response:
    asked = _asked(request.query_params)
    counts = await given.reader.groups(bot_id, asked)
    page = await given.reader.failed(bot_id, asked, Cursor.read(after) if after else None, ROWS)
    job = given.jobs.get(request.query_params.get("job", ""))
    drawn = given.drawing.page(
        request,
        "bot.html",
        bot_id=bot_id,
        asked=asked,
        filter=_filter(asked),
        total=sum(group.number for group in counts),
        groups=_grouped(counts, page.rows),
        may_see=Right.PAYLOAD in holder.rights,
        next=urlencode(_filter(asked) | {"after": str(page.next)}) if page.next else None,
        may_act=Right.ACT in holder.rights,
        said=shown.job(job) if job is not None else shown.result(request.query_params),
    )
    if job is not None and job.state == "running":
        drawn.headers["Refresh"] = str(REFRESH)
    return drawn


@router.get("/bots/{bot_id}/failed/{update_id}")
async def update(
    request: Request,
    given: Given,
    holder: Reads,
    bot_id: BotPath,
    update_id: UpdatePath,
    row: RowQuery = None,
) -> Response:
    found = await given.reader.failed_update(bot_id, update_id, row)
    if found is None:
        raise Problem(404, "This update is not in the failed list any more.")
    return given.drawing.page(
        request,
        "update.html",
        bot_id=bot_id,
        update=found,
        size=len(found.body),
        payload=payload.pretty(found.body) if Right.PAYLOAD in holder.rights else None,
        may_see=Right.PAYLOAD in holder.rights,
        may_act=Right.ACT in holder.rights,
    )


class Choice:
    """What a form of a bot's page names: the chosen updates, those like the filter, or all."""

    def __init__(
        self,
        which: Annotated[Literal["chosen", "like", "all"], Form()],
        update_id: Annotated[list[Id], Form(max_length=ROWS)] = [],  # noqa: B006 - FastAPI copies it
        error: Annotated[str, Form()] = "",
        kind: Annotated[str, Form()] = "",
        chat_id: Annotated[str, Form()] = "",
        sure: Annotated[bool, Form()] = False,
    ) -> None:
        self.name = which
        self.filter = {"error": error, "kind": kind, "chat_id": chat_id} if which == "like" else {}
        self.update_ids = [UpdateId(number) for number in update_id] if which == "chosen" else []
        self.sure = sure

    @property
    def which(self) -> Which:
        if self.name == "all":
            return None
        return self._like() if self.name == "like" else self.update_ids

    def _like(self) -> Filter:
        asked = _asked(self.filter)
        if asked == Filter():
            raise Problem(400, "This filter asks for nothing, so nothing was done.")
        return asked


Chosen = Annotated[Choice, Depends()]


@router.post("/bots/{bot_id}/retry", dependencies=[Depends(same_site)])
async def retry(given: Given, holder: Acting, bot_id: BotPath, choice: Chosen) -> Response:
    return _back(await given.acts.retry(bot_id, choice.which, holder.name))


@router.post("/bots/{bot_id}/discard", dependencies=[Depends(same_site)])
async def discard(
    request: Request, given: Given, holder: Acting, bot_id: BotPath, choice: Chosen
) -> Response:
    """Asks first: what is discarded cannot be brought back."""
    if choice.sure or choice.which == []:
        return _back(await given.acts.discard(bot_id, choice.which, holder.name))
    count = len(choice.update_ids) or sum(
        group.number for group in await given.reader.groups(bot_id, _asked(choice.filter))
    )
    return given.drawing.page(request, "confirm.html", bot_id=bot_id, choice=choice, count=count)


def _asked(words: Mapping[str, str]) -> Filter:
    """A filter from a form's fields, where an empty one is none."""
    chat = words.get("chat_id", "").strip()
    try:
        chat_id = int(chat) if chat else None
    except ValueError:
        chat_id = INT64 + 1
    if chat_id is not None and abs(chat_id) > INT64:
        raise Problem(422, "A chat is a whole number, such as -1001234567890.")
    return Filter(
        kind=_word(words, "kind"),
        chat_id=chat_id,
        error=_word(words, "error"),
    )


def _word(words: Mapping[str, str], name: str) -> str | None:
    return words.get(name, "").replace("\0", "").strip() or None


def _filter(asked: Filter) -> dict[str, str]:
    """The fields of a form that `_asked` reads as this filter."""
    fields = {"error": asked.error, "kind": asked.kind, "chat_id": asked.chat_id}
    return {name: str(value) for name, value in fields.items() if value is not None}


def _grouped(counts: Sequence[Any], rows: Sequence[Any]) -> list[Group]:
    groups = {(row.type, row.place): Group(row.type, row.place, row.number) for row in counts}
    for row in rows:
        group = groups.setdefault((row.type, row.place), Group(row.type, row.place, 1))
        group.updates.append(row)
    return [group for group in groups.values() if group.updates]


def _back(job: Job) -> Response:
    words: dict[str, str | int] = {"did": job.act, "moved": job.moved}
    if isinstance(job.result, Moved):
        words |= {"unknown": len(job.result.unknown), "running": len(job.result.running)}
    else:
        words |= {"job": job.id}
    return RedirectResponse(f"/bots/{job.bot_id}?{urlencode(words)}", 303)
