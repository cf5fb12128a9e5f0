"""What survives a restart, as lines of JSON: in the file before a request is answered, never waited for.

Each line is `[kind, bot_id, …]`:

    bot        next update_id             chat       chat_id, name, next message_id
    update     serial, expires_at, update message    chat_id, message
    settled    serial                     deleted    chat_id, message_id
    webhook    registration               keyboard   chat_id, keyboard
    commands   list                       forgotten  chat_id

At the start the lines are read and the file is written anew without what is gone.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import msgspec

from pillarbox.errors import SettingError
from pillarbox_simulator.bots import Bot, Bots, Registration
from pillarbox_simulator.changes import Change

FILE = "simulator.jsonl"
KEPT = frozenset(
    ("bot", "update", "settled", "webhook", "commands", "chat", "forgotten", "message", "deleted", "keyboard")
)
LARGEST = 256 << 20
"""Bytes after which the file is written anew while the process runs."""

_encode = msgspec.json.Encoder().encode


class Journal:
    def __init__(self, folder: Path, bots: Bots) -> None:
        self._path = folder / FILE
        self._bots = bots
        self._lines: list[bytes] = []
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Restores the bots and starts a fresh file; only the owner may read it: it holds webhook secrets.

        Raises SettingError when the folder or the file cannot be used.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                with self._path.open("rb") as lines:
                    for line in lines:
                        self._restore(line)
            self._rewrite()
        except OSError as error:
            raise SettingError(
                f"SIMULATOR_DATA: {error.filename} cannot be used ({error.strerror}); use another folder"
            ) from None
        except (msgspec.DecodeError, LookupError, TypeError, ValueError):
            raise SettingError(
                f"SIMULATOR_DATA: {self._path} is damaged; move it away, or name another folder"
            ) from None

    def _restore(self, line: bytes) -> None:
        if not line.endswith(b"\n"):  # the process was killed while it wrote its last line
            return
        kind, bot_id, *rest = msgspec.json.decode(line)
        RESTORE[kind](self._bots.create(bot_id), *rest)

    def _rewrite(self) -> None:
        if self._file is not None:
            self._file.close()
        fresh = self._path.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            for bot in self._bots:
                file.writelines(_encode(change) + b"\n" for change in snapshot(bot))
        fresh.replace(self._path)
        self._lines.clear()
        self._file = self._path.open("ab", buffering=0)

    def record(self, change: Change) -> None:
        """One write for the lines of one turn of the loop, or of one request."""
        if change[0] not in KEPT:
            return
        if not self._lines:
            asyncio.get_running_loop().call_soon(self.flush)
        self._lines.append(_encode(change))

    def flush(self) -> None:
        if self._file is None or not self._lines:
            return
        self._lines.append(b"")
        self._file.write(b"\n".join(self._lines))
        self._lines.clear()
        if self._file.tell() > LARGEST:
            self._rewrite()

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


def snapshot(bot: Bot) -> Iterator[Change]:
    yield "bot", bot.id, bot.updates.next_id
    yield "webhook", bot.id, asdict(bot.registration)
    yield "commands", bot.id, bot.commands
    for chat in bot.chats:
        yield "chat", bot.id, chat.id, chat.name, chat.next_id
        yield "keyboard", bot.id, chat.id, chat.keyboard
        for message in chat.messages.values():
            yield "message", bot.id, chat.id, message
    for pending in bot.updates.pending.values():
        yield "update", bot.id, pending.serial, pending.expires_at, msgspec.Raw(pending.body)


def _update(bot: Bot, serial: int, expires_at: float, update: dict[str, Any]) -> None:
    bot.updates.put(serial, expires_at, update)
    bot.updates.next_id = max(bot.updates.next_id, update["update_id"] + 1)


def _settled(bot: Bot, serial: int) -> None:
    bot.updates.pending.pop(serial, None)


def _next(bot: Bot, next_id: int) -> None:
    bot.updates.next_id = next_id


def _webhook(bot: Bot, registration: dict[str, Any]) -> None:
    bot.registration = Registration(**registration)


def _commands(bot: Bot, commands: list[dict[str, Any]]) -> None:
    bot.commands = commands


def _chat(bot: Bot, chat_id: int, name: str, next_id: int) -> None:
    bot.chats.get(chat_id, name).next_id = next_id


def _forgotten(bot: Bot, chat_id: int) -> None:
    bot.chats.by_id.pop(chat_id, None)


def _message(bot: Bot, chat_id: int, message: dict[str, Any]) -> None:
    chat = bot.chats.get(chat_id)
    chat.put(message)
    chat.next_id = max(chat.next_id, message["message_id"] + 1)


def _deleted(bot: Bot, chat_id: int, message_id: int) -> None:
    bot.chats.get(chat_id).remove(message_id)


def _keyboard(bot: Bot, chat_id: int, keyboard: dict[str, Any] | None) -> None:
    bot.chats.get(chat_id).lay(keyboard)


RESTORE: dict[str, Callable[..., None]] = {
    "bot": _next,
    "update": _update,
    "settled": _settled,
    "webhook": _webhook,
    "commands": _commands,
    "chat": _chat,
    "forgotten": _forgotten,
    "message": _message,
    "deleted": _deleted,
    "keyboard": _keyboard,
}
