"""`pillarbox cancel`: a message that waits is taken back."""

from typing import Annotated

import typer

from pillarbox.commands.options import only_bot
from pillarbox.commands.queue import By, EnvFile, on_queue, whom
from pillarbox.commands.telling import told
from pillarbox.ids import BotId
from pillarbox.outbound.cancelling import cancel as cancelled

SAID = {
    "cancelled": "cancelled; it will not be sent",
    "sending": "too late: its send is out",
    "ended": "too late: it was sent, is dead, or was cancelled before",
    "unknown": "no message with this id was filed for this bot within 24 hours",
}

Bot = Annotated[int | None, typer.Option(help="the bot's id; where not given, the only one of BOT_TOKENS")]


def cancel(
    id: Annotated[str, typer.Argument(help="the id that its producer gave it")],
    bot: Bot = None,
    by: By = None,
    env: EnvFile = None,
) -> None:
    """Take a message back that waits, or is not due yet; exit code 1 where it is too late."""
    with told():
        bot_id = BotId(only_bot() if bot is None else bot)
        found = on_queue(env, lambda _, scripts: cancelled(scripts, bot_id, id, whom(by)))
        typer.echo(SAID[found.outcome], err=found.outcome != "cancelled")
        if found.in_doubt:
            typer.echo("an earlier send of it may have reached the Bot API")
        if found.outcome != "cancelled":
            raise typer.Exit(1)
