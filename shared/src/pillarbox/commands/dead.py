"""`pillarbox dead …`: look at dead messages, send them again, changed or as they were, or forget them."""

from contextlib import suppress
from datetime import UTC, datetime
from json import dumps, loads
from typing import Annotated, Any

import typer

from pillarbox.commands.queue import By, EnvFile, on_queue, whom
from pillarbox.commands.telling import as_json, plain, table, told, told_how_far
from pillarbox.ids import BotId
from pillarbox.outbound.acts import MovedDead
from pillarbox.outbound.dead import Dead, DeadFilter

app = typer.Typer(no_args_is_help=True, help="Messages that were not sent: list, show, retry, edit, discard.")

HEAD = ("NUMBER", "BOT", "DIED AT", "LANE", "ID", "METHOD", "REASON", "SENDS", "FIRST", "LAST", "BYTES")

Numbers = Annotated[list[int] | None, typer.Argument(help="numbers of the list")]
All = Annotated[bool, typer.Option("--all", help="every dead message of every bot")]
Bot = Annotated[int | None, typer.Option(help="the bot's id; where not given, all bots")]
Reason = Annotated[str | None, typer.Option(help="such as refused or doubt")]
Method = Annotated[str | None, typer.Option(help="such as sendMessage")]
Chat = Annotated[str | None, typer.Option(help="the chat's id or @name")]
Since = Annotated[datetime | None, typer.Option(help="died then or later, in UTC")]
Until = Annotated[datetime | None, typer.Option(help="died before then, in UTC")]
Id = Annotated[str | None, typer.Option("--id", help="the id that its producer gave it")]
Json = Annotated[bool, typer.Option("--json", help="for programs")]


@app.command("list")
def list_(
    bot: Bot = None,
    reason: Reason = None,
    method: Method = None,
    chat: Chat = None,
    since: Since = None,
    until: Until = None,
    id: Id = None,
    limit: Annotated[int, typer.Option(min=1, help="how many at most")] = 50,
    json: Json = False,
    env: EnvFile = None,
) -> None:
    """From the newest to the oldest, without what they say."""
    with told():
        matching = _matching(bot, reason, method, chat, since, until, id)
        found = on_queue(env, lambda acts, _: acts.messages.page(matching, None, limit))
        if json:
            for dead in found:
                as_json(_line(dead))
        else:
            table(HEAD, [tuple(plain(str(value)) for value in _line(dead).values()) for dead in found])


@app.command()
def show(number: int, json: Json = False, env: EnvFile = None) -> None:
    """One message with all that is kept of it, as it came."""
    with told():
        found = on_queue(env, lambda acts, _: acts.messages.find(number))
        if found is None:
            _none(number)
        else:
            _shown(found, json)


@app.command()
def retry(
    numbers: Numbers = None,
    every: All = False,
    bot: Bot = None,
    reason: Reason = None,
    method: Method = None,
    chat: Chat = None,
    since: Since = None,
    until: Until = None,
    id: Id = None,
    by: By = None,
    json: Json = False,
    env: EnvFile = None,
) -> None:
    """To the ends of their chats' lanes, the oldest first: these, those that match, or --all."""
    with told():
        which = _which(numbers, every, _matching(bot, reason, method, chat, since, until, id))
        with told_how_far("waiting again") as progress:
            moved = on_queue(env, lambda acts, _: acts.retry(which, whom(by), progress=progress))
        _moved("waiting again", moved, json)


@app.command()
def discard(
    numbers: Numbers = None,
    every: All = False,
    bot: Bot = None,
    reason: Reason = None,
    method: Method = None,
    chat: Chat = None,
    since: Since = None,
    until: Until = None,
    id: Id = None,
    by: By = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    json: Json = False,
    env: EnvFile = None,
) -> None:
    """Forget them for good: these, those that match, or --all."""
    with told():
        which = _which(numbers, every, _matching(bot, reason, method, chat, since, until, id))
        if not yes:
            typer.confirm("What is discarded cannot be brought back. Go on?", abort=True, err=True)
        with told_how_far("discarded") as progress:
            moved = on_queue(env, lambda acts, _: acts.discard(which, whom(by), progress=progress))
        _moved("discarded", moved, json)


@app.command()
def edit(
    number: int,
    changes: Annotated[str, typer.Argument(help='as JSON, such as {"params": {…}, "expires_at": null}')],
    by: By = None,
    env: EnvFile = None,
) -> None:
    """Send one with these fields in the place of its own; null takes a field away."""
    with told():
        given = _object(changes)
        if on_queue(env, lambda acts, _: acts.edit(number, given, whom(by))):
            typer.echo("waiting again, with what you changed")
        else:
            _none(number)


def _matching(
    bot: int | None,
    reason: str | None,
    method: str | None,
    chat: str | None,
    since: datetime | None,
    until: datetime | None,
    id: str | None,
) -> DeadFilter:
    """A time without a zone is UTC."""
    since, until = (at and (at if at.tzinfo else at.replace(tzinfo=UTC)) for at in (since, until))
    return DeadFilter(None if bot is None else BotId(bot), reason, method, chat, since, until, id)


def _which(numbers: list[int] | None, every: bool, matching: DeadFilter) -> DeadFilter | list[int]:
    if [bool(numbers), every, matching != DeadFilter()].count(True) != 1:
        raise typer.BadParameter("give numbers, or a filter such as --reason, or --all")
    return numbers or matching


def _object(text: str) -> dict[str, Any]:
    try:
        given = loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise typer.BadParameter("the changes are a JSON object")
    return given


def _line(dead: Dead) -> dict[str, Any]:
    return {
        "number": dead.number,
        "bot_id": dead.bot_id,
        "died_at": dead.died_at.isoformat(timespec="seconds"),
        "lane": dead.lane,
        "id": dead.id,
        "method": dead.method,
        "reason": dead.reason,
        "attempts": dead.attempts,
        "first_error": dead.first_error,
        "last_error": dead.last_error,
        "size": dead.size,
    }


def _shown(dead: Dead, json: bool) -> None:
    element = (dead.element or b"").decode("utf-8", "backslashreplace")
    about = _line(dead) | {"detail": dead.detail}
    if json:
        as_json(about | {"element": element})
        return
    for name, value in about.items():
        typer.echo(f"{name:12} {plain(str(value))}")
    with suppress(ValueError, RecursionError):
        element = dumps(loads(element), indent=2, ensure_ascii=False)
    for line in element.splitlines():
        typer.echo(plain(line))


def _none(number: int) -> None:
    typer.echo(f"pillarbox: {number} is not in the list", err=True)
    raise typer.Exit(1)


def _moved(done: str, moved: MovedDead, json: bool) -> None:
    if json:
        as_json({"moved": moved.moved, "unknown": moved.unknown, "refused": moved.refused})
        return
    typer.echo(f"{moved.moved} {done}")
    for numbers, state in (
        (moved.unknown, "not in the list"),
        (moved.refused, "no messages, or their id was filed since; edit or discard them"),
    ):
        if numbers:
            typer.echo(f"{state}: {', '.join(map(str, numbers))}")
