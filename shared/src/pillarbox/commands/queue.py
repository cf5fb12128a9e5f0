"""Which queue a command speaks to."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from pillarbox.client.operations import account
from pillarbox.errors import SettingError
from pillarbox.outbound.acts import DeadActs
from pillarbox.outbound.connection import connect
from pillarbox.outbound.scripts import Scripts
from pillarbox.outbound.settings import QueueSettings
from pillarbox.settings import load

T = TypeVar("T")

EnvFile = Annotated[
    Path | None, typer.Option(help="a file with REDIS_URL=…, such as the demo's .pillarbox/env")
]
By = Annotated[str | None, typer.Option(help="whom the audit names; your account where not given")]


def settings_of(file: Path | None) -> QueueSettings:
    """The environment's own settings come before the file's."""
    if file is None or os.environ.get("REDIS_URL"):
        return load(QueueSettings)
    try:
        words = shlex.split(file.read_text(encoding="utf-8"), comments=True)
    except (OSError, ValueError):
        raise SettingError(f"--env: {file} cannot be read; is the demo's folder another one?") from None
    urls = [word.partition("=")[2] for word in words if word.startswith("REDIS_URL=")]
    return load(QueueSettings, redis_url=urls[0]) if urls else load(QueueSettings)


def on_queue(file: Path | None, work: Callable[[DeadActs, Scripts], Awaitable[T]]) -> T:
    """What the work returns. Raises SettingError and QueueUnavailable."""

    async def run() -> T:
        settings = settings_of(file)
        redis = connect(settings)
        try:
            scripts = Scripts(redis, settings.redis_messages_key)
            return await work(DeadActs(scripts, settings.reader), scripts)
        finally:
            await redis.aclose()

    return asyncio.run(run())


def whom(by: str | None) -> str:
    return by or account()
