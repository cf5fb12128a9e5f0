"""`pillarbox push`: what any app does with RPUSH, for people without redis-cli."""

import asyncio
from typing import Annotated

import typer

from pillarbox.commands.queue import EnvFile, settings_of
from pillarbox.commands.telling import told
from pillarbox.outbound.connection import connect, passing
from pillarbox.outbound.settings import QueueSettings

Element = Annotated[str, typer.Argument(help='such as {"method": "sendMessage", "params": {…}}')]


def push(element: Element, env: EnvFile = None) -> None:
    """Push one message to the door of REDIS_URL; refused with the reason where it can never be one."""
    with told():
        settings = settings_of(env)
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
