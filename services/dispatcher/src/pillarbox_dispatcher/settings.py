from typing import Annotated

from pydantic import AfterValidator, Field

from pillarbox.settings import BotSettings, InboxSettings, Port, RedisSettings, Seconds, TelegramSettings


def _direct(value: str) -> str:
    if value == "outbox":
        raise ValueError("`outbox` does not exist yet; return the method, or give it to `outbox.add(...)`")
    if value != "direct":
        raise ValueError("`direct` is the only value")
    return value


def _unpinned(value: bool) -> bool:
    if value:
        raise ValueError("sealed updates do not exist yet, so no key would ever be pinned or checked")
    return value


class DispatcherSettings(InboxSettings, RedisSettings, BotSettings, TelegramSettings):
    handlers: str = Field(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$",
        description="the module with `router` or `setup(dispatcher)`",
        examples=["bot"],
    )
    handler_timeout: float = Field(
        300.0, ge=0, description="seconds after which a handler is cancelled; 0 is never", examples=["300"]
    )
    concurrency: int = Field(64, ge=1, le=4096, description="lanes handled at once", examples=["64"])
    answers: Annotated[str, AfterValidator(_direct)] = Field(
        "direct", description="where `await message.answer(...)` goes", examples=["direct"]
    )
    pin_keys: Annotated[bool, AfterValidator(_unpinned)] = Field(
        False,
        description="pin the first key seen for a person; refused until sealed updates exist",
        examples=["false"],
    )
    stop_timeout: Seconds = Field(
        65.0, description="seconds for the handlers that run at SIGTERM", examples=["65"]
    )
    dispatcher_host: str = Field("0.0.0.0", description="address of the probes", examples=["127.0.0.1"])
    dispatcher_port: Port = Field(8081, description="port of the probes", examples=["8081"])
