"""The four forms of a call (Bot API, "Making requests"): query, urlencoded, JSON and multipart."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from pillarbox_simulator.answers import bad_request

NUMBER = re.compile(r"-?[0-9]{1,18}\Z")
NUMBERS = frozenset(
    ("offset", "limit", "timeout", "max_connections", "duration", "width", "height", "cache_time")
)
"""Parameters, besides ids, that are numbers; in a form they come as text."""
TEXT_IDS = frozenset(
    (
        "callback_query_id",
        "inline_message_id",
        "inline_query_id",
        "pre_checkout_query_id",
        "shipping_query_id",
        "business_connection_id",
        "message_effect_id",
        "file_id",
    )
)
TEXTS = frozenset(
    ("text", "caption", "title", "description", "question", "name", "first_name", "url", "payload")
)
"""What people write stays as it came, even when it looks like JSON."""

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Upload:
    filename: str
    kind: str
    data: bytes


Params = dict[str, Any]
Uploads = dict[str, Upload]
NO_UPLOADS: Uploads = {}


def read(kind: bytes, query: bytes, body: bytes) -> tuple[Params, Uploads]:
    """Parameters and files of a call; raises Refused when the body is not what its content type says."""
    form = kind.partition(b";")[0].strip().lower()
    if form == b"application/json" and not query:
        return (_json(body) if body else {}), NO_UPLOADS
    params = _form(query) if query else {}
    if not body:
        return params, NO_UPLOADS
    if form == b"application/json":
        return params | _json(body), NO_UPLOADS
    if form == b"multipart/form-data":
        fields, uploads = _multipart(kind, body)
        return params | fields, uploads
    return params | _form(body), NO_UPLOADS


def _json(body: bytes) -> Params:
    try:
        params = _decode(body)
    except msgspec.DecodeError:
        raise bad_request("can't parse JSON object") from None
    if not isinstance(params, dict):
        raise bad_request("object expected as JSON request body")
    markup = params.get("reply_markup")
    if isinstance(markup, str):
        params["reply_markup"] = _value("reply_markup", markup)
    return params


def _form(data: bytes) -> Params:
    try:
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise bad_request("strings must be encoded in UTF-8") from None
    return {name: _value(name, value) for name, value in pairs}


def _value(name: str, value: str) -> Any:
    """A form has only text: numbers, booleans and nested JSON are told by name and looks."""
    if name in TEXTS or not value:
        return value
    if value[0] in "[{":
        try:
            return _decode(value)
        except msgspec.DecodeError:
            raise bad_request(f"can't parse {name.replace('_', ' ')} JSON object") from None
    if value in ("true", "True"):
        return True
    if value in ("false", "False"):
        return False
    numeric = name in NUMBERS or (name.endswith("_id") and name not in TEXT_IDS)
    return int(value) if numeric and NUMBER.match(value) else value


class _Parts:
    """Gathers the parts of one multipart body."""

    def __init__(self) -> None:
        self.params: Params = {}
        self.uploads: Uploads = {}
        self._field = self._header = b""
        self._headers: dict[bytes, bytes] = {}
        self._data = bytearray()

    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin,
            "on_part_data": lambda data, start, end: self._data.extend(data[start:end]),
            "on_part_end": self._end,
            "on_header_field": self._add_field,
            "on_header_value": self._add_value,
            "on_header_end": self._end_header,
        }

    def _begin(self) -> None:
        self._headers, self._data = {}, bytearray()

    def _add_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _end_header(self) -> None:
        self._headers[self._field.lower()] = self._header
        self._field = self._header = b""

    def _end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" in options:
            kind = self._headers.get(b"content-type", b"application/octet-stream").decode("latin-1")
            filename = options[b"filename"].decode("utf-8", "replace")
            self.uploads[name] = Upload(filename, kind, bytes(self._data))
            self.params.setdefault(name, f"attach://{name}")
            return
        try:
            self.params[name] = _value(name, self._data.decode("utf-8"))
        except UnicodeDecodeError:
            raise bad_request("strings must be encoded in UTF-8") from None


def _multipart(kind: bytes, body: bytes) -> tuple[Params, Uploads]:
    _, options = parse_options_header(kind)
    parts = _Parts()
    try:
        parser = MultipartParser(options.get(b"boundary", b""), parts.callbacks())
        parser.write(body)
        parser.finalize()
    except FormParserError:
        raise bad_request("can't parse multipart form") from None
    return parts.params, parts.uploads
