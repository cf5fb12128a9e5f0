"""`pillarbox …`: what people run by hand, and what a deployment runs once.

Exit codes: 0 done, 1 passing (try again), 2 a setting is missing or wrong.
"""

import asyncio
from importlib.metadata import entry_points
from typing import Annotated

import typer

from pillarbox import db
from pillarbox.commands import failed, pins
from pillarbox.commands.push import push
from pillarbox.commands.telling import told
from pillarbox.errors import PillarboxError, SettingError
from pillarbox.settings import DatabaseSettings, InboxSettings, RedisSettings, Settings, load

SERVICES = "pillarbox.settings"
"""The entry points by which an installed service names its settings."""

COMMANDS = "pillarbox.commands"
"""The entry points by which an installed service adds a command: a function as typer takes it."""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(failed.app, name="failed")
app.add_typer(pins.app, name="pins")
app.command()(push)


@app.callback()
def pillarbox() -> None:
    """A durable inbox and outbox for Telegram bots."""


@app.command()
def migrate() -> None:
    """Bring the database of DATABASE_URL to this version's schema; several at once do no harm."""
    with told():
        db.migrate(load(DatabaseSettings).direct_url)
        print(f"the database is at revision {db.REVISION}")


@app.command()
def check(
    services: Annotated[list[str] | None, typer.Argument(help="all that are installed, unless named")] = None,
) -> None:
    """Check settings, database and Redis with the same functions as the services at their start."""
    installed = {entry.name: entry for entry in entry_points(group=SERVICES)}
    codes = []
    for name in services or sorted(installed):
        if name not in installed:
            raise typer.BadParameter(
                f"no service {name} is installed; there are {', '.join(sorted(installed))}"
            )
        codes.append(checked(name, installed[name].load()))
    raise typer.Exit(max(codes, default=0))


def checked(name: str, settings: type[Settings]) -> int:
    """The exit code for one service; its line is printed."""
    try:
        loaded = load(settings)
        asyncio.run(reached(loaded))
    except PillarboxError as error:
        print(f"{name}: {error}")
        return 2 if isinstance(error, SettingError) else 1
    print(f"{name}: ok")
    return 0


async def reached(settings: Settings) -> None:
    if isinstance(settings, InboxSettings):
        await opened(settings)
    if isinstance(settings, RedisSettings) and settings.redis_url.get_secret_value():
        await answered(settings)


async def opened(settings: InboxSettings) -> None:
    from pillarbox.inbox.opening import shared_storage_of, storage_of

    storage = storage_of(settings) if settings.one_process else shared_storage_of(settings)
    try:
        await storage.open()
    finally:
        await storage.close()


async def answered(settings: RedisSettings) -> None:
    from pillarbox.outbound.connection import connect, passing

    client = connect(settings)
    try:
        with passing():
            await client.ping()
    finally:
        await client.aclose()


def main() -> None:
    for entry in entry_points(group=COMMANDS):
        app.command(entry.name)(entry.load())
    app()
