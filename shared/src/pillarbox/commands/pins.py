"""`pillarbox pins …`: which key is trusted for a person."""

from dataclasses import asdict

import typer

from pillarbox.client import Pin
from pillarbox.commands.options import Bot, Database, Json, client
from pillarbox.commands.telling import as_json, told

app = typer.Typer(no_args_is_help=True, help="The key that is trusted for a person: get, trust, forget.")


@app.command()
def get(user_id: int, database: Database = None, bot: Bot = None, json: Json = False) -> None:
    """The pinned key's fingerprint; exit code 1 where there is none."""
    with told(), client(database, bot) as given:
        _said(given.pin(user_id), json)


@app.command()
def trust(
    user_id: int, fingerprint: str, database: Database = None, bot: Bot = None, json: Json = False
) -> None:
    """Pin this key, in the place of whichever was pinned."""
    with told(), client(database, bot) as given:
        _said(given.trust_key(user_id, fingerprint), json)


@app.command()
def forget(user_id: int, database: Database = None, bot: Bot = None, json: Json = False) -> None:
    """The next key that is seen will be pinned. Says which one was."""
    with told(), client(database, bot) as given:
        _said(given.forget_key(user_id), json)


def _said(pin: Pin | None, json: bool) -> None:
    if pin is None:
        typer.echo("pillarbox: no key is pinned for this person", err=True)
        raise typer.Exit(1)
    if json:
        as_json(asdict(pin))
    else:
        typer.echo(f"{pin.fingerprint}  pinned at {pin.pinned_at.isoformat(timespec='seconds')}")
