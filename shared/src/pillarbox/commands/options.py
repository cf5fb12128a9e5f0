"""Which bot of which database: what every command for people takes."""

from typing import Annotated

import typer

from pillarbox.client import SyncClient
from pillarbox.settings import BotSettings, InboxSettings, load

Database = Annotated[
    str | None,
    typer.Option(help="postgresql://…, or the SQLite file of `pillarbox run`; DATABASE_URL where not given"),
]
Bot = Annotated[int | None, typer.Option(help="the bot's id; where not given, the only one of BOT_TOKENS")]
Json = Annotated[bool, typer.Option("--json", help="for programs")]


def client(database: str | None, bot: int | None) -> SyncClient:
    where = database or load(InboxSettings).database_url.get_secret_value()
    return SyncClient(where, bot_id=only_bot() if bot is None else bot)


def only_bot() -> int:
    bots = list(load(BotSettings).bots)
    if len(bots) > 1:
        raise typer.BadParameter("BOT_TOKENS has several bots; name one with --bot")
    return bots[0]
