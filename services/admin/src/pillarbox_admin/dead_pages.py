"""The page of the outbound queue: depths, dead messages, and what people do with them."""

from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Path, Request, Response
from starlette.responses import RedirectResponse

from pillarbox.ids import BotId
from pillarbox.outbound.acts import MovedDead, Which
from pillarbox.outbound.dead import Dead, DeadFilter
from pillarbox_admin import dead_acts, payload, shown
from pillarbox_admin.access import same_site
from pillarbox_admin.cursor import Cursor
from pillarbox_admin.dead_api import GONE, without_words
from pillarbox_admin.holders import Right
from pillarbox_admin.jobs import Act, Job
from pillarbox_admin.pages import REFRESH, ROWS, Acting, Reads
from pillarbox_admin.parts import Given
from pillarbox_admin.problems import Problem
from pillarbox_admin.views import INT64, Id

FIELDS = ("bot_id", "reason", "method", "chat_id", "id")
NumberPath = Annotated[int, Path(ge=0, le=INT64)]

router = APIRouter(include_in_schema=False)


@router.get("/outbound")
async def outbound(request: Request, given: Given, holder: Reads, after: str = "") -> Response:
    asked = _asked(request.query_params)
    depths = await given.outbound.depths()
    page = await given.outbound.dead(asked, Cursor.read(after) if after else None, ROWS)
    job = given.jobs.get(request.query_params.get("job", ""))
    filter = _filter(request.query_params)
    drawn = given.drawing.page(
        request,
        "outbound.html",
        here="outbound",
        depths=depths,
        total=sum(of.dead for of in depths.bots.values()),
        filter=filter,
        dead=[_seen(dead, holder.rights) for dead in page.rows],
        next=urlencode(filter | {"after": str(page.next)}) if page.next else None,
        may_act=Right.ACT in holder.rights,
        said=shown.job(job, shown.DEAD_DONE) if job else shown.dead_result(request.query_params),
    )
    if job is not None and job.state == "running":
        drawn.headers["Refresh"] = str(REFRESH)
    return drawn


@router.get("/outbound/dead/{number}")
async def message(request: Request, given: Given, holder: Reads, number: NumberPath) -> Response:
    found = await given.outbound.dead_message(number)
    if found is None:
        raise Problem(404, GONE)
    may_see = Right.PAYLOAD in holder.rights
    return given.drawing.page(
        request,
        "dead.html",
        here="outbound",
        dead=_seen(found, holder.rights),
        payload=payload.pretty(found.element or b"") if may_see else None,
        may_act=Right.ACT in holder.rights,
    )


class Choice:
    """What a form of the page names: the chosen messages, those like the filter, or all."""

    def __init__(
        self,
        which: Annotated[Literal["chosen", "like", "all"], Form()],
        number: Annotated[list[Id], Form(max_length=ROWS)] = [],  # noqa: B006 - FastAPI copies it
        bot_id: Annotated[str, Form()] = "",
        reason: Annotated[str, Form()] = "",
        method: Annotated[str, Form()] = "",
        chat_id: Annotated[str, Form()] = "",
        id: Annotated[str, Form()] = "",
        sure: Annotated[bool, Form()] = False,
    ) -> None:
        words = {"bot_id": bot_id, "reason": reason, "method": method, "chat_id": chat_id, "id": id}
        self.name = which
        self.filter = _filter(words) if which == "like" else {}
        self.numbers = number if which == "chosen" else []
        self.sure = sure

    @property
    def which(self) -> Which:
        if self.name == "chosen":
            return self.numbers
        asked = _asked(self.filter)
        if self.name == "like" and asked == DeadFilter():
            raise Problem(400, "This filter asks for nothing, so nothing was done.")
        return asked


Chosen = Annotated[Choice, Depends()]


@router.post("/outbound/dead/retry", dependencies=[Depends(same_site)])
async def retry(given: Given, holder: Acting, choice: Chosen) -> Response:
    return _back("retry", await dead_acts.move(given, "retry", choice.which, holder.name))


@router.post("/outbound/dead/discard", dependencies=[Depends(same_site)])
async def discard(request: Request, given: Given, holder: Acting, choice: Chosen) -> Response:
    """Asks first: what is discarded cannot be brought back."""
    if choice.sure or choice.which == []:
        return _back("discard", await dead_acts.move(given, "discard", choice.which, holder.name))
    count = len(choice.numbers) or await given.outbound.count_dead(_asked(choice.filter))
    return given.drawing.page(request, "dead_confirm.html", here="outbound", choice=choice, count=count)


def _asked(words: Mapping[str, str]) -> DeadFilter:
    """A filter from a form's fields, where an empty one is none."""
    given = _filter(words)
    bot = given.get("bot_id")
    if bot is not None and not (bot.isascii() and bot.isdigit() and int(bot) <= INT64):
        raise Problem(422, "A bot is a whole number, the one before the colon of its token.")
    return DeadFilter(
        bot_id=BotId(int(bot)) if bot else None,
        reason=given.get("reason"),
        method=given.get("method"),
        chat=given.get("chat_id"),
        id=given.get("id"),
    )


def _filter(words: Mapping[str, str]) -> dict[str, str]:
    """What is given, without what no such word has."""
    fields = {name: "".join(filter(str.isprintable, words.get(name, ""))).strip() for name in FIELDS}
    return {name: value for name, value in fields.items() if value}


def _seen(found: Dead, rights: frozenset[Right]) -> Dead:
    return found if Right.PAYLOAD in rights else without_words(found)


def _back(act: Act, job: Job) -> Response:
    words: dict[str, str | int] = {"did": act, "moved": job.moved}
    if isinstance(job.result, MovedDead):
        words |= {"unknown": len(job.result.unknown), "refused": len(job.result.refused)}
    else:
        words |= {"job": job.id}
    return RedirectResponse(f"/outbound?{urlencode(words)}", 303)
