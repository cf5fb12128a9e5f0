"""Files of messages: their bytes wait beside the lanes, `Q:file:<id>`, and the message names them.

An app sets the key itself, with an expiry of its choice, before it pushes. What old producers wrote into the
message is moved here as it is filed; such a file is for that message alone (`once`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from redis.asyncio import Redis

from pillarbox.errors import FileGone, MessageRefused
from pillarbox.outbound.connection import passing

KEPT = 7 * 86400
"""Seconds that a message may wait for its own file, from when it was filed and from each send on."""
KEPT_AFTER_SENT = 600
"""The end of a send may be lost, and its message sent again."""
MOST_BYTES = 20 << 20
"""Of all files of a message."""
MOST_FILES = 32

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
FILENAME = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,256}")
ABOUT = frozenset({"id", "filename", "once"})


@dataclass(frozen=True, slots=True)
class File:
    """`attach://<its name>` in the params stands for it."""

    id: str
    filename: str | None = field(default=None, repr=False)
    once: bool = False


def files_of(fields: Mapping[str, Any]) -> dict[str, File]:
    """`files` of an element. Raises MessageRefused."""
    files = fields.get("files")
    if files is None:
        return {}
    if not isinstance(files, dict) or len(files) > MOST_FILES:
        raise MessageRefused("files", f"an object with {MOST_FILES} names at most")
    return {name: _file(name, about) for name, about in files.items()}


def _file(name: str, about: Any) -> File:
    if not NAME.fullmatch(name) or not isinstance(about, dict) or not about.keys() <= ABOUT:
        raise MessageRefused("files", "each a name and an object with id, filename, once")
    identity, filename, once = about.get("id"), about.get("filename"), about.get("once", False)
    if not isinstance(identity, str) or not NAME.fullmatch(identity):
        raise MessageRefused("files", "an id has 1 to 64 of the characters A-Z a-z 0-9 _ -")
    if filename is not None and (not isinstance(filename, str) or not FILENAME.fullmatch(filename)):
        raise MessageRefused("files", "a filename has 1 to 256 characters, none of them a control character")
    if type(once) is not bool:
        raise MessageRefused("files", "once is true or false")
    return File(identity, filename, once)


def described(files: Mapping[str, File]) -> dict[str, dict[str, Any]]:
    """What `files_of` reads."""
    return {name: _described(file) for name, file in files.items()}


def _described(file: File) -> dict[str, Any]:
    about: dict[str, Any] = {"id": file.id}
    if file.filename is not None:
        about["filename"] = file.filename
    return about | {"once": True} if file.once else about


class Files:
    """Every method raises QueueUnavailable."""

    def __init__(self, redis: "Redis", queue: str) -> None:
        self._redis = redis
        self._queue = queue

    def _key(self, identity: str) -> str:
        return f"{self._queue}:file:{identity}"

    async def keep(self, contents: Mapping[str, bytes]) -> None:
        """By id; before the message that names them is filed."""
        with passing():
            for identity, content in contents.items():
                await self._redis.set(self._key(identity), content, ex=KEPT)

    async def read(self, files: Mapping[str, File]) -> dict[str, bytes]:
        """By name. Raises FileGone."""
        return {name: await self._read(file) for name, file in files.items()}

    async def _read(self, file: File) -> bytes:
        key = self._key(file.id)
        with passing():
            content = await (self._redis.getex(key, ex=KEPT) if file.once else self._redis.get(key))
        if content is None:
            raise FileGone(file.id)
        return cast("bytes", content)

    async def sent(self, files: Iterable[File]) -> None:
        with passing():
            for file in files:
                if file.once:
                    await self._redis.expire(self._key(file.id), KEPT_AFTER_SENT)
