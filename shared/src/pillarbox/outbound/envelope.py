"""One outbound message on the wire: the only module that reads or writes our own form (DESIGN, Outbound).

`envelope.schema.json` says the same to programs in other languages; `reading` knows other producers' forms.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import msgspec

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound.files import NAME, File, described, files_of
from pillarbox.outbound.methods import METHOD, may_be_queued
from pillarbox.outbound.paths import PERHAPS_A_PATH, names_a_path

OnDoubt = Literal["resend", "drop", "hold"]

VERSION = 1
PRINTABLE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,256}")
ON_DOUBT = frozenset({"resend", "drop", "hold"})
LONGEST_NAME = 64
KEYS = frozenset(
    {"v", "method", "params", "files", "bot", "id", "not_before", "expires_at", "on_doubt", "trace"}
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A Bot API call to make. Times are Unix seconds; `params` are what the Bot API's JSON takes, where
    `attach://<name>` is the file of that name in `files`.
    """

    method: str
    params: dict[str, Any] = field(repr=False)
    bot: BotId | None = None
    id: str | None = None
    not_before: float | None = None
    expires_at: float | None = None
    on_doubt: OnDoubt = "resend"
    trace: str | None = None
    files: dict[str, File] = field(default_factory=dict, repr=False)


def encode(envelope: Envelope) -> bytes:
    """One element of the door: a JSON object with what is set and nothing else."""
    fields: dict[str, Any] = {"method": envelope.method, "params": envelope.params}
    for name in ("bot", "id", "not_before", "expires_at", "trace"):
        value = getattr(envelope, name)
        if value is not None:
            fields[name] = value
    if envelope.on_doubt != "resend":
        fields["on_doubt"] = envelope.on_doubt
    if envelope.files:
        fields["files"] = described(envelope.files)
    return msgspec.json.encode(fields)


def decode(element: bytes) -> Envelope:
    """Reads one element. Raises MessageRefused for what will never be a message here, and MessageKept for
    what a later run with another configuration can read. Errors name the field and never quote a value.
    """
    return of_fields(fields_of(element), element)


def of_fields(fields: dict[str, Any], element: bytes) -> Envelope:
    """As `decode`, of an element that was read already."""
    envelope = _envelope(fields)
    if PERHAPS_A_PATH.search(element) and names_a_path(envelope.params):
        raise MessageRefused("file_path", "a file is named by its id, its URL, or in `files`")
    return envelope


def _envelope(fields: dict[str, Any]) -> Envelope:
    version = fields.get("v", VERSION)
    if type(version) is int and version > VERSION:
        raise MessageKept("version")
    unknown = [name for name in fields if name not in KEYS]
    if unknown or version != VERSION or isinstance(version, bool):
        raise MessageRefused("unknown_field", _named(unknown or ["v"], missing="method" not in fields))
    files = files_of(fields)
    return Envelope(
        method=_method(fields),
        params=_params(fields, in_a_form=bool(files)),
        bot=_bot(fields),
        id=_text(fields, "id"),
        not_before=_time(fields, "not_before"),
        expires_at=_time(fields, "expires_at"),
        on_doubt=_on_doubt(fields),
        trace=_text(fields, "trace"),
        files=files,
    )


def fields_of(element: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(element)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise MessageRefused("json") from None
    if not isinstance(fields, dict):
        raise MessageRefused("shape", "not a JSON object")
    return fields


def _named(unknown: list[str], *, missing: bool) -> str:
    """The first name as far as it can be printed, and how many more there are."""
    first = "".join(c if c.isprintable() else "?" for c in unknown[0][:LONGEST_NAME])
    more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return f"{first}{more}{'; there is no method' if missing else ''}"


def _method(fields: dict[str, Any]) -> str:
    method = fields.get("method")
    if method is None:
        raise MessageRefused("method", "there is no method")
    if not isinstance(method, str) or not METHOD.fullmatch(method):
        raise MessageRefused("method", "it must be the name of a Bot API method")
    if not may_be_queued(method):
        raise MessageRefused("method_refused", "it may not be queued")
    return method


def _params(fields: dict[str, Any], *, in_a_form: bool) -> dict[str, Any]:
    params = fields.get("params", {})
    if not isinstance(params, dict):
        raise MessageRefused("params", "they must be a JSON object")
    if in_a_form and not all(map(NAME.fullmatch, params)):
        raise MessageRefused("params", "a name has 1 to 64 of the characters A-Z a-z 0-9 _ -")
    return params


def _bot(fields: dict[str, Any]) -> BotId | None:
    bot = fields.get("bot")
    if bot is None:
        return None
    if type(bot) not in (int, float) or not 0 < bot < 1 << 63 or int(bot) != bot:
        raise MessageRefused("bot", "it must be the number before the colon of a token")
    return BotId(int(bot))


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not PRINTABLE.fullmatch(value):
        raise MessageRefused(name, "1 to 256 characters, none of them a control character")
    return value


def _time(fields: dict[str, Any], name: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value) or not 0 <= value < 1e11:
        raise MessageRefused(name, "Unix seconds")
    return float(value)


def _on_doubt(fields: dict[str, Any]) -> OnDoubt:
    value = fields.get("on_doubt", "resend")
    if not isinstance(value, str) or value not in ON_DOUBT:
        raise MessageRefused("on_doubt", "resend, drop or hold")
    return cast("OnDoubt", value)
