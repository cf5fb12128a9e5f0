"""What the API takes and gives, as JSON. Ids are 64-bit integers: a client must not read them as floats."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StrictBool, model_validator

from pillarbox.inbox import Moved
from pillarbox.inbox.fingerprints import fingerprint_of
from pillarbox.outbound.acts import MovedDead
from pillarbox_admin import problems
from pillarbox_admin.jobs import Job

INT64 = 2**63 - 1
MOST_IDS = 1000


def _storable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has characters that no such word has")
    return text


Id = Annotated[int, Field(ge=-INT64 - 1, le=INT64)]
Word = Annotated[str, Field(max_length=200), AfterValidator(_storable)]


class View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Bot(View):
    bot_id: Id = Field(examples=[123456])
    waiting: int = Field(
        description="updates that are stored and not yet done, running ones too", examples=[12]
    )
    running: int | None = Field(
        description="lanes whose first update is being handled now; null where that is not counted",
        examples=[3],
    )
    failed: int = Field(examples=[2])
    oldest_waiting: datetime | None = Field(description="when the oldest of them was accepted")
    newest_failed: datetime | None


class BotCounts(View):
    bot_id: Id = Field(examples=[123456])
    pending: int = Field(description="updates that are stored and not yet done, running ones too")
    failed: int
    failed_trimmed: int = Field(description="failed updates that the list had no room for, ever")
    malformed: int
    malformed_trimmed: int
    outbox: int = Field(description="messages that are not yet in the queue")


class Bots(View):
    items: list[Bot]


class FailedUpdate(View):
    update_id: Id = Field(examples=[730152498])
    row: int = Field(description="our own number of it; one update id may have several", examples=[51])
    chat_id: Id | None = Field(examples=[-1001234567890])
    kind: str = Field(examples=["message"])
    failed_at: datetime
    runs: int = Field(description="how often its handlers were started", examples=[1])
    error: str = Field(
        description="type, message and place; without the right to `payload` type and place alone",
        examples=["KeyError: 'city' at bot.py:31"],
    )


class FailedUpdates(View):
    items: list[FailedUpdate]
    next: str | None = Field(description="give it as `after` for the next page; null on the last one")


class FailedUpdateInFull(FailedUpdate):
    user_id: Id | None
    lane: str = Field(examples=["chat:-1001234567890"])
    accepted_at: datetime
    sealed: bool = Field(description="it holds an OpenPGP message, so no message of its error was kept")
    payload: Any = Field(description="the update as JSON, as Telegram wrote it; null where it is no JSON")
    payload_base64: str = Field(description="the same, byte for byte")


class FailedUpdatesInFull(View):
    items: list[FailedUpdateInFull]
    next: str | None


class PinView(View):
    user_id: Id = Field(examples=[42])
    fingerprint: str = Field(examples=["3F1A9C0D52E7B8A46C110D93E2F47A559B10C6D2"])
    pinned_at: datetime


class Key(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fingerprint: Annotated[str, Field(max_length=200), AfterValidator(fingerprint_of)] = Field(
        description="40 or 64 hexadecimal digits", examples=["3F1A9C0D52E7B8A46C110D93E2F47A559B10C6D2"]
    )


class MalformedBody(View):
    row: int
    bot_id: Id
    received_at: datetime
    reason: str
    size: int = Field(description="bytes")


class MalformedBodies(View):
    items: list[MalformedBody]
    next: str | None


class BotOutbound(View):
    bot_id: Id | None = Field(description="null for what names no bot", examples=[123456])
    waiting: dict[str, int] = Field(description="in lanes, by class", examples=[{"interactive": 3}])
    delayed: int
    dead: int
    oldest_seconds: float = Field(description="the longest wait among those that are next in turn")
    paused: str | None = Field(
        description="why nothing is sent for this bot now: flood, outage, trial, token (Telegram refused it),"
        " unserved (no sender has its token)",
        examples=["token"],
    )


class Queue(View):
    doors: dict[str, int] = Field(description="pushed, not yet filed", examples=[{"pillarbox:outbound": 0}])
    sending: dict[str, int] = Field(description="in flight, by worker")
    bots: list[BotOutbound]
    buried: dict[str, int] = Field(description="dead messages ever, by reason", examples=[{"doubt": 1}])
    trimmed: int = Field(description="dead messages that the list had no room for")
    acts: dict[str, int] = Field(description="what people did with messages, ever", examples=[{"discard": 2}])


class Filter(BaseModel):
    """The same words as in the list's address; everything that is given must hold."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    since: AwareDatetime | None = Field(None, alias="from")
    to: AwareDatetime | None = None
    kind: Word | None = None
    chat_id: Id | None = None
    error: Word | None = None
    update_ids: list[Id] | None = Field(None, max_length=MOST_IDS)


class Choice(BaseModel):
    """One of three: the ids, a filter, or all of the bot."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"update_ids": [730152498]}, {"all": True}, {"filter": {"error": "KeyError"}}]
        },
    )

    update_ids: list[Id] | None = Field(None, min_length=1, max_length=MOST_IDS)
    all: StrictBool = False
    filter: Filter | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if [self.update_ids is not None, self.all, self.filter is not None].count(True) != 1:
            raise ValueError("give one of `update_ids`, `filter` and `all: true`")
        return self


class Result(View):
    moved: int = Field(examples=[2])
    unknown: list[Id] = Field(description="ids that are not in the failed list")
    running: list[Id] = Field(description="ids that wait or run already")

    @classmethod
    def of(cls, moved: Moved) -> "Result":
        return cls(moved=moved.moved, unknown=list(moved.unknown), running=list(moved.running))


class DeadResult(View):
    moved: int = Field(examples=[2])
    unknown: list[Id] = Field(description="numbers that are not in the list")
    refused: list[Id] = Field(description="no messages, or with an id that was filed since: they stay")


def result_of(moved: Moved | MovedDead) -> Result | DeadResult:
    if isinstance(moved, MovedDead):
        return DeadResult.model_validate(moved)
    return Result.of(moved)


class JobView(BaseModel):
    job: str = Field(examples=["9f2c4e0d17a35b68"])
    act: Literal["retry", "discard"]
    bot_id: Id | None = Field(description="null for dead messages of any bot")
    state: Literal["running", "done", "failed"]
    moved: int = Field(description="so far; each batch is whole", examples=[1500])
    problem: str | None = Field(
        description="why it ended before its end; what is left can be asked for again"
    )
    began_at: datetime
    ended_at: datetime | None
    result: Result | DeadResult | None = Field(description="when it is done")

    @classmethod
    def of(cls, job: Job) -> "JobView":
        return cls(
            job=job.id,
            act=job.act,
            bot_id=job.bot_id,
            state=job.state,
            moved=job.moved,
            problem=None if job.error is None else problems.of(job.error).detail,
            began_at=job.began_at,
            ended_at=job.ended_at,
            result=None if job.result is None else result_of(job.result),
        )


class ProblemDetails(BaseModel):
    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Forbidden"])
    status: int = Field(examples=[403])
    detail: str = Field(examples=["This token has no right to `act`."])
    errors: list[dict[str, str]] | None = None
