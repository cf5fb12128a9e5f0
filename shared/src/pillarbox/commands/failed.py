"""`pillarbox failed …`: look at failed updates, run them again, or forget them."""

from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from json import dumps
from typing import Annotated, Any

import typer

from pillarbox.client import FailedUpdate, Filter, Moved
from pillarbox.commands.options import Bot, Database, Json, client
from pillarbox.commands.telling import as_json, plain, table, told, told_how_far

app = typer.Typer(no_args_is_help=True, help="Updates whose handlers failed: list, show, retry, discard.")

Ids = Annotated[list[int] | None, typer.Argument(help="update ids")]
All = Annotated[bool, typer.Option("--all", help="every failed update of the bot")]
Error = Annotated[str | None, typer.Option(help="the error's type, such as KeyError")]
Kind = Annotated[str | None, typer.Option(help="such as message or callback_query")]
Chat = Annotated[int | None, typer.Option(help="the chat's id")]
Since = Annotated[datetime | None, typer.Option(help="failed then or later, in UTC")]
Until = Annotated[datetime | None, typer.Option(help="failed before then, in UTC")]


@app.command("list")
def list_(
    database: Database = None,
    bot: Bot = None,
    error: Error = None,
    kind: Kind = None,
    chat: Chat = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="how many at most")] = 50,
    json: Json = False,
) -> None:
    """From the newest failure to the oldest, without what people wrote."""
    with told(), client(database, bot) as given:
        chosen = _named(error, kind, chat, since, until)
        found = list(islice(given.failed_updates(**chosen), limit))
        if json:
            for failed in found:
                as_json(_line(failed))
        else:
            rows = [tuple(plain(str(value)) for value in _line(failed).values()) for failed in found]
            table(("UPDATE", "FAILED AT", "KIND", "CHAT", "RUNS", "ERROR"), rows)


@app.command()
def show(update_id: int, database: Database = None, bot: Bot = None, json: Json = False) -> None:
    """One update with its payload, as Telegram sent it."""
    with told(), client(database, bot) as given:
        found = list(given.failed_updates([update_id]))
        if not found:
            typer.echo(f"pillarbox: {update_id} is not on the failed list", err=True)
            raise typer.Exit(1)
        for failed in found:
            _shown(failed, json)


@app.command()
def retry(
    update_ids: Ids = None,
    every: All = False,
    database: Database = None,
    bot: Bot = None,
    error: Error = None,
    kind: Kind = None,
    chat: Chat = None,
    since: Since = None,
    until: Until = None,
    json: Json = False,
) -> None:
    """Back in the queue, at the ends of their chats: these, those that match, or --all."""
    chosen = _named(error, kind, chat, since, until)
    _check_one(update_ids, every, chosen)
    with told(), client(database, bot) as given:
        with told_how_far("waiting again") as progress:
            moved = given.retry_failed(update_ids or None, **chosen, progress=progress)
        _moved("waiting again", moved, json)


@app.command()
def discard(
    update_ids: Ids = None,
    every: All = False,
    database: Database = None,
    bot: Bot = None,
    error: Error = None,
    kind: Kind = None,
    chat: Chat = None,
    since: Since = None,
    until: Until = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    json: Json = False,
) -> None:
    """Forget them for good: these, those that match, or --all."""
    chosen = _named(error, kind, chat, since, until)
    _check_one(update_ids, every, chosen)
    if not yes:
        typer.confirm("What is discarded cannot be brought back. Go on?", abort=True, err=True)
    with told(), client(database, bot) as given:
        with told_how_far("discarded") as progress:
            moved = given.discard_failed(update_ids or None, **chosen, progress=progress)
        _moved("discarded", moved, json)


def _named(
    error: str | None, kind: str | None, chat: int | None, since: datetime | None, until: datetime | None
) -> dict[str, Any]:
    """The filter in the client's words; a time without a zone is UTC."""
    times = [at and (at if at.tzinfo else at.replace(tzinfo=UTC)) for at in (since, until)]
    return {"error": error, "kind": kind, "chat_id": chat, "since": times[0], "until": times[1]}


def _check_one(update_ids: list[int] | None, every: bool, chosen: dict[str, Any]) -> None:
    with told():
        filtered = Filter(**chosen) != Filter()
    if [bool(update_ids), every, filtered].count(True) != 1:
        raise typer.BadParameter("give update ids, or a filter such as --error, or --all")


def _line(failed: FailedUpdate) -> dict[str, Any]:
    return {
        "update_id": failed.update_id,
        "failed_at": failed.failed_at.isoformat(timespec="seconds"),
        "kind": failed.kind,
        "chat_id": failed.chat_id,
        "runs": failed.runs,
        "error": failed.error,
    }


def _shown(failed: FailedUpdate, json: bool) -> None:
    if json:
        as_json(_line(failed) | {"payload": failed.payload})
        return
    for name, value in _line(failed).items():
        typer.echo(f"{name:10} {plain(str(value))}")
    text = dumps(failed.payload, indent=2, ensure_ascii=False) if failed.payload is not None else None
    for line in (text or failed.body.decode("utf-8", "backslashreplace")).splitlines():
        typer.echo(plain(line))


def _moved(done: str, moved: Moved, json: bool) -> None:
    if json:
        as_json(asdict(moved))
        return
    typer.echo(f"{moved.moved} {done}")
    for ids, state in (
        (moved.unknown, "not on the failed list"),
        (moved.running, "waiting or running already"),
    ):
        if ids:
            typer.echo(f"{state}: {', '.join(map(str, ids))}")
