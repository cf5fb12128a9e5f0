"""`pillarbox push`: what any app does with RPUSH, for people without redis-cli."""

import asyncio
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from pillarbox.commands.telling import told
from pillarbox.errors import SettingError
from pillarbox.outbound.connection import connect, passing
from pillarbox.outbound.settings import QueueSettings
from pillarbox.settings import load

Element = Annotated[str, typer.Argument(help='such as {"method": "sendMessage", "params": {…}}')]
EnvFile = Annotated[
    Path | None, typer.Option(help="a file with REDIS_URL=…, such as the demo's .pillarbox/env")
]


def push(element: Element, env: EnvFile = None) -> None:
    """Push one message to the door of REDIS_URL; refused with the reason where it can never be one."""
    with told():
        settings = _settings(env)
        settings.reader.read(element.encode("utf-8", "surrogateescape"))
        waiting = asyncio.run(_pushed(settings, element))
        typer.echo(f"pushed; {waiting} at the door")


async def _pushed(settings: QueueSettings, element: str) -> int:
    client = connect(settings)
    try:
        with passing():
            return await client.rpush(settings.redis_messages_key, element)
    finally:
        await client.aclose()


def _settings(file: Path | None) -> QueueSettings:
    """The environment's own settings come before the file's."""
    if file is None or os.environ.get("REDIS_URL"):
        return load(QueueSettings)
    try:
        words = shlex.split(file.read_text(encoding="utf-8"), comments=True)
    except (OSError, ValueError):
        raise SettingError(f"--env: {file} cannot be read; is the demo's folder another one?") from None
    urls = [word.partition("=")[2] for word in words if word.startswith("REDIS_URL=")]
    return load(QueueSettings, redis_url=urls[0]) if urls else load(QueueSettings)
