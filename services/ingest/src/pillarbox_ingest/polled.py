"""From one answer of getUpdates to the bodies of its updates, byte for byte as they came."""

import re

import msgspec


class _Answer(msgspec.Struct):
    result: list[msgspec.Raw]


_answer = msgspec.json.Decoder(_Answer)
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]', re.DOTALL)
_BLANK = b" \t\r\n"


def bodies_of(answer: bytes) -> list[bytes]:
    """ValueError where there is no list of updates."""
    try:
        return [bytes(raw) for raw in _answer.decode(answer).result]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _split(answer)  # one update that the parser refuses must not hide the others


def _split(answer: bytes) -> list[bytes]:
    bodies: list[bytes] = []
    depth, start, key = 0, -1, b""
    for match in _TOKEN.finditer(answer):
        token = match[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth == 2 and token == b"[" and key == b'"result"':
                start = match.end()
        elif token in (b"]", b"}"):
            depth -= 1
            if start >= 0 and depth == 1:
                bodies.append(answer[start : match.start()].strip(_BLANK))
                return [body for body in bodies if body]
        elif token != b"," and depth == 1:
            key = token
        elif token == b"," and start >= 0 and depth == 2:
            bodies.append(answer[start : match.start()].strip(_BLANK))
            start = match.end()
    raise ValueError("no list of updates")
