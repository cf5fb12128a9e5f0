"""From a body to what the inbox must know of it, by three readers: quick, tolerant, and without recursion."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Incoming
from pillarbox.inbox.sealing import is_sealed
from pillarbox_ingest import lanes
from pillarbox_ingest.lanes import LaneBy, Path
from pillarbox_ingest.scanner import scan

KIND = re.compile(r"[a-z0-9_]{1,64}\Z")
LEAST, MOST = -(1 << 63), (1 << 63) - 1


class Unreadable(Exception):
    """No update can be read from the body. `reason` quotes nothing of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Peer(msgspec.Struct):
    id: int


class Message(msgspec.Struct):
    chat: Peer | None = None


class Event(msgspec.Struct):
    chat: Peer | None = None
    message: Message | None = None
    voter_chat: Peer | None = None
    from_: Peer | None = msgspec.field(name="from", default=None)
    user: Peer | None = None


class Dated(msgspec.Struct):
    date: int | None = None


_outside = msgspec.json.Decoder(dict[str, msgspec.Raw])
_number = msgspec.json.Decoder(int)
_event = msgspec.json.Decoder(Event)
_dated = msgspec.json.Decoder(Dated)

_FIRST_KEY = re.compile(rb'\s*\{\s*"update_id"\s*:\s*(-?[0-9]{1,19})\s*[,}]')

Outline = tuple[int, str, Mapping[Path, int]]


def parse(bot_id: BotId, body: bytes, lane_by: LaneBy = "chat") -> Incoming:
    """Raises Unreadable."""
    update_id, kind, ids = _outline(body)
    place = lanes.place(kind, update_id, ids, lane_by)
    for number in (update_id, place.chat_id or 0, place.user_id or 0):
        if not LEAST <= number <= MOST:
            raise Unreadable("an id is too large")
    return Incoming(
        bot_id, UpdateId(update_id), kind, place.lane, body, place.chat_id, place.user_id, is_sealed(body)
    )


def update_id_of(body: bytes) -> int | None:
    """Also of a body that is otherwise unreadable; Telegram writes it first."""
    first = _FIRST_KEY.match(body)
    if first is not None:
        return int(first[1])
    try:
        return scan(body).numbers.get(("update_id",))
    except ValueError:
        return None


def date_of(body: bytes) -> int | None:
    """When its event happened (Unix seconds), where the kind says so and the body is an ordinary one."""
    try:
        outside = _outside.decode(body)
        outside.pop("update_id", None)
        return max((_dated.decode(event).date or 0 for event in outside.values()), default=0) or None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _outline(body: bytes) -> Outline:
    try:
        return _quick(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # lone surrogates, deep nesting, an event of an unknown form; or no JSON at all
    try:
        return _tolerant(body)
    except (ValueError, RecursionError):
        return _scanned(body)


def _quick(body: bytes) -> Outline:
    outside = _outside.decode(body)
    if "update_id" not in outside:
        raise Unreadable("update_id is missing")
    update_id = _number.decode(outside.pop("update_id"))
    kind = _kind(outside)
    event = _event.decode(outside[kind])
    ids: dict[Path, int] = {}
    if event.chat is not None:
        ids[lanes.CHAT] = event.chat.id
    if event.from_ is not None:
        ids[lanes.FROM] = event.from_.id
    if event.message is not None and event.message.chat is not None:
        ids[lanes.CHAT_OF_MESSAGE] = event.message.chat.id
    if event.user is not None:
        ids[lanes.USER] = event.user.id
    if event.voter_chat is not None:
        ids[lanes.VOTER_CHAT] = event.voter_chat.id
    return update_id, kind, ids


def _tolerant(body: bytes) -> Outline:
    outside = json.loads(body)
    if not isinstance(outside, dict):
        raise Unreadable("it is no JSON object")
    update_id = outside.pop("update_id", None)
    if type(update_id) is not int:
        raise Unreadable("update_id is missing")
    kind = _kind(outside)
    event = outside[kind]
    if not isinstance(event, dict):
        raise Unreadable("the event is no object")
    found = {path: _at(event, path) for path in lanes.PATHS}
    return update_id, kind, {path: value for path, value in found.items() if type(value) is int}


def _at(event: Any, path: Path) -> Any:
    for key in path:
        event = event.get(key) if isinstance(event, dict) else None
    return event


def _scanned(body: bytes) -> Outline:
    try:
        outline = scan(body)
    except ValueError:
        raise Unreadable("it is no JSON") from None
    update_id = outline.numbers.get(("update_id",))
    if update_id is None:
        raise Unreadable("update_id is missing")
    del outline.keys["update_id"]
    kind = _kind(outline.keys)
    if outline.keys[kind] != "{":
        raise Unreadable("the event is no object")
    return update_id, kind, {path[1:]: n for path, n in outline.numbers.items() if path[0] == kind}


def _kind(keys: Mapping[str, object]) -> str:
    """The one other key; of several, should that ever come, one that we know."""
    if not keys:
        raise Unreadable("the event is missing")
    kind = next((key for key in keys if key in lanes.KINDS), None) or next(iter(keys))
    if not KIND.match(kind):
        raise Unreadable("the kind is no name")
    return kind
