"""Reads the outline of JSON that is nested deeper than parsers go; it recurses nowhere and gives up early."""

import re

from pillarbox_ingest.lanes import Path

MOST_TOKENS = 50_000  # some 50 ms
DEEPEST_PATH = 4

_TOKEN = re.compile(
    rb"[ \t\r\n]*(?:"
    rb"(?P<mark>[{}\[\],:])"
    rb'|"(?P<string>[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+)"'
    rb"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
    rb"|(?P<word>true|false|null)"
    rb")"
)
_INTEGER = re.compile(rb"-?[0-9]{1,19}")
_BLANK = b" \t\r\n"


class Outline:
    """The keys of the outermost object with the first byte of each value, and whole numbers by their path."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.numbers: dict[Path, int] = {}


def scan(body: bytes) -> Outline:
    """Raises ValueError for what is no JSON object, or is too much of one."""
    return _Scan(body).run()


class _Scan:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._outline = Outline()
        self._stack: list[bytes] = []
        self._path: list[str | None] = []
        self._expect = self._value

    def run(self) -> Outline:
        position = 0
        for _ in range(MOST_TOKENS):
            match = _TOKEN.match(self._body, position)
            if match is None:
                raise ValueError("not JSON")
            position = match.end()
            self._expect(match)
            if not self._stack:
                if self._body[position:].strip(_BLANK) or match["mark"] != b"}":
                    raise ValueError("not one JSON object")
                return self._outline
        raise ValueError("too many tokens")

    def _value(self, match: re.Match[bytes]) -> None:
        mark, number = match["mark"], match["number"]
        if len(self._path) == 1 and self._path[0] is not None:
            self._outline.keys[self._path[0]] = match[0].lstrip(_BLANK)[:1].decode()
        if mark in (b"{", b"["):
            self._stack.append(mark)
            self._path.append(None)
            self._expect = self._first_key if mark == b"{" else self._first_item
            return
        if mark is not None:
            raise ValueError("a value is missing")
        if number is not None and len(self._path) <= DEEPEST_PATH and _INTEGER.fullmatch(number):
            path = tuple(key for key in self._path if key is not None)
            if len(path) == len(self._path):
                self._outline.numbers[path] = int(number)
        self._expect = self._after_value

    def _first_item(self, match: re.Match[bytes]) -> None:
        if match["mark"] == b"]":
            self._close()
        else:
            self._value(match)

    def _first_key(self, match: re.Match[bytes]) -> None:
        if match["mark"] == b"}":
            self._close()
        else:
            self._key(match)

    def _key(self, match: re.Match[bytes]) -> None:
        if match["string"] is None:
            raise ValueError("a key is missing")
        self._path[-1] = match["string"].decode("utf-8", "replace")
        self._expect = self._colon

    def _colon(self, match: re.Match[bytes]) -> None:
        if match["mark"] != b":":
            raise ValueError("a colon is missing")
        self._expect = self._value

    def _after_value(self, match: re.Match[bytes]) -> None:
        inside, mark = self._stack[-1], match["mark"]
        if mark == b",":
            self._expect = self._key if inside == b"{" else self._value
        elif mark == (b"}" if inside == b"{" else b"]"):
            self._close()
        else:
            raise ValueError("a comma or an end is missing")

    def _close(self) -> None:
        self._stack.pop()
        self._path.pop()
        self._expect = self._after_value
