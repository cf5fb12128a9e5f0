"""`pillarbox …`: what people run by hand, and what a deployment runs once.

Exit codes: 0 done, 1 passing (try again), 2 a setting is missing or wrong.
"""

from importlib.metadata import entry_points

import typer

from pillarbox import db
from pillarbox.commands import dead, failed, pins
from pillarbox.commands.cancel import cancel
from pillarbox.commands.check import check
from pillarbox.commands.push import push
from pillarbox.commands.telling import told
from pillarbox.settings import DatabaseSettings, load

COMMANDS = "pillarbox.commands"
"""The entry points by which an installed service adds a command: a function as typer takes it."""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(failed.app, name="failed")
app.add_typer(pins.app, name="pins")
app.add_typer(dead.app, name="dead")
app.command()(push)
app.command()(cancel)
app.command()(check)


@app.callback()
def pillarbox() -> None:
    """A durable inbox and outbox for Telegram bots."""


@app.command()
def migrate() -> None:
    """Bring the database of DATABASE_URL to this version's schema; several at once do no harm."""
    with told():
        db.migrate(load(DatabaseSettings).direct_url)
        print(f"the database is at revision {db.REVISION}")


def main() -> None:
    for entry in entry_points(group=COMMANDS):
        app.command(entry.name)(entry.load())
    app()
