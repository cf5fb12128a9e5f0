"""How a command says what it has to say: one line for an error, plain text for a terminal, or JSON."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from pillarbox.errors import PillarboxError, SettingError


@contextmanager
def told() -> Iterator[None]:
    """One line instead of a traceback; exit code 2 for what has to be set otherwise, else 1."""
    try:
        yield
    except (PillarboxError, ValueError) as error:
        typer.echo(f"pillarbox: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, SettingError | ValueError) else 1) from None


@contextmanager
def told_how_far(done: str) -> Iterator[Callable[[int], None]]:
    """One line of standard error that counts up, where a person looks at it; it is wiped at the end."""
    if not sys.stderr.isatty():
        yield lambda moved: None
        return
    count = 0

    def progress(moved: int) -> None:
        nonlocal count
        count += moved
        typer.echo(f"\r{count} {done} …", nl=False, err=True)

    try:
        yield progress
    finally:
        typer.echo("\r\x1b[K", nl=False, err=True)


def plain(text: str) -> str:
    """What anybody may have written, without a character that commands the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def as_json(document: Any) -> None:
    """One line, in ASCII; times as ISO 8601."""
    typer.echo(json.dumps(document, default=str))


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        typer.echo("  ".join(map(str.ljust, row, widths)).rstrip())
