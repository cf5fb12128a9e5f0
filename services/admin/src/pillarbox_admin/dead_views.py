"""What the API takes and gives of dead messages, as JSON."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    model_validator,
)

from pillarbox.ids import BotId
from pillarbox.outbound.acts import Which
from pillarbox.outbound.dead import DeadFilter
from pillarbox_admin.problems import Problem
from pillarbox_admin.views import MOST_IDS, Id, View, Word

NO_FILTER = 'This filter asks for nothing. For all dead messages send {"all": true}.'


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has characters that no id has")
    return text


def _text(value: object) -> object:
    return str(value) if type(value) is int else value


MessageId = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_printable)]
Chat = Annotated[Word, BeforeValidator(_text)]


class DeadMessage(View):
    number: int = Field(examples=[51])
    bot_id: Id | None = Field(examples=[123456])
    lane: str = Field(description="empty for what is no message", examples=["123456:interactive:42"])
    chat: str = Field(description="of its lane", examples=["42"])
    id: str = Field(description="as its producer named it; empty where it did not", examples=["campaign:7"])
    method: str = Field(examples=["sendMessage"])
    reason: str = Field(examples=["refused"])
    detail: str = Field(description="without the right to `payload` without the words of an answer")
    attempts: int
    first_error: str = Field(description="kind and status, or the error's type", examples=["answered:502"])
    last_error: str = Field(examples=["doubt:ServerDisconnectedError"])
    died_at: datetime
    size: int = Field(description="bytes")


class DeadMessages(View):
    items: list[DeadMessage]
    next: str | None = Field(description="give it as `after` for the next page; null on the last one")


class DeadMessageInFull(DeadMessage):
    payload: Any = Field(description="the element as JSON, as it came; null where it is no JSON")
    payload_base64: str = Field(description="the same, byte for byte")


class DeadLike(BaseModel):
    """The same words as in the list's address; everything that is given must hold."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    bot_id: Id | None = None
    since: AwareDatetime | None = Field(None, alias="from")
    to: AwareDatetime | None = None
    reason: Word | None = None
    method: Word | None = None
    chat_id: Chat | None = Field(None, examples=[42, "@channel"])
    id: MessageId | None = None
    numbers: list[Id] | None = Field(None, max_length=MOST_IDS)

    @property
    def asked(self) -> DeadFilter:
        return DeadFilter(
            bot_id=None if self.bot_id is None else BotId(self.bot_id),
            reason=self.reason,
            method=self.method,
            chat=self.chat_id,
            since=self.since,
            until=self.to,
            id=self.id,
            numbers=None if self.numbers is None else tuple(self.numbers),
        )


class DeadChoice(BaseModel):
    """One of three: the numbers, a filter, or all of every bot."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"numbers": [51]}, {"all": True}, {"filter": {"bot_id": 123456, "reason": "doubt"}}]
        },
    )

    numbers: list[Id] | None = Field(None, min_length=1, max_length=MOST_IDS)
    all: StrictBool = False
    filter: DeadLike | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if [self.numbers is not None, self.all, self.filter is not None].count(True) != 1:
            raise ValueError("give one of `numbers`, `filter` and `all: true`")
        return self

    @property
    def which(self) -> Which:
        if self.numbers is not None:
            return self.numbers
        asked = self.filter.asked if self.filter is not None else DeadFilter()
        if asked == DeadFilter() and not self.all:
            raise Problem(400, NO_FILTER)
        return asked


class Cancel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: MessageId = Field(examples=["campaign:7"])


class Cancelled(BaseModel):
    cancelled: bool = True
    in_doubt: bool = Field(description="an earlier send of it may have reached the Bot API")


class Act(View):
    at: datetime
    bot_id: Id | None
    by: str = Field(description="the token's name, or the account that ran the command")
    action: str = Field(description="retry, edit, discard or cancel")
    id: str
    lane: str
    number: int | None
    reason: str | None


class Acts(View):
    items: list[Act]
