import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pillarbox.settings import (
    BotSettings,
    InboxSettings,
    Port,
    RedisSettings,
    Seconds,
    Settings,
    TelegramSettings,
)

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def _unpinned(value: bool) -> bool:
    if value:
        raise ValueError("sealed updates do not exist yet, so no key would ever be pinned or checked")
    return value


def _module(value: str) -> str:
    if value.endswith(".py"):
        raise ValueError("it names a module, as `import` does: without .py, and with dots for slashes")
    if not MODULE.fullmatch(value):
        raise ValueError("it names a module, as `import` does: names with dots between them, and no path")
    return value


class HandlersSettings(Settings):
    handlers: Annotated[str, AfterValidator(_module)] = Field(
        description="the module with `router` or `setup(dispatcher)`", examples=["bot"]
    )


class DispatcherSettings(HandlersSettings, InboxSettings, RedisSettings, BotSettings, TelegramSettings):
    handler_timeout: float = Field(
        300.0, ge=0, description="seconds after which a handler is cancelled; 0 is never", examples=["300"]
    )
    concurrency: int = Field(64, ge=1, le=4096, description="lanes handled at once", examples=["64"])
    answers: Literal["direct", "outbox"] = Field(
        "direct",
        description="where `await message.answer(...)` goes: `direct`, `outbox`",
        examples=["direct"],
    )
    retry_on: str = Field(
        "",
        description="errors of handlers that may pass: builtin or dotted names, comma between",
        examples=["ConnectionError,sqlalchemy.exc.OperationalError"],
    )
    retry_first: Seconds = Field(
        1.0,
        description="seconds to the first retry of RETRY_ON; then twice as long each time",
        examples=["1"],
    )
    retry_most: Seconds = Field(60.0, description="and never longer than this", examples=["60"])
    retry_times: int = Field(
        5, ge=1, le=1000, description="retries of RETRY_ON, after which the update has failed", examples=["5"]
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
