"""Text that people read out of HTML that bots write (Bot API, "HTML style"), with offsets in UTF-16 units."""

import html
import re
from typing import Any

from pillarbox_simulator.answers import bad_request

MODES = frozenset(("html", "markdown", "markdownv2"))
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
HREF = re.compile(r"href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
TYPES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "blockquote": "blockquote",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "tg-emoji": "custom_emoji",
    "tg-time": "date_time",
}
KEPT = frozenset(("bold", "italic", "underline", "strikethrough", "code", "pre", "blockquote", "spoiler"))

Entity = dict[str, Any]


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def plain(text: str, mode: str) -> tuple[str, list[Entity]]:
    """What is shown of `text` in a parse mode. Markdown is not read: it stays as it was written."""
    if mode.lower() not in MODES:
        raise bad_request("unsupported parse_mode")
    return _from_html(text) if mode.lower() == "html" else (text, [])


def _from_html(source: str) -> tuple[str, list[Entity]]:
    text, position, opened, found = "", 0, list[tuple[str, str, int]](), list[Entity]()
    for tag in TAG.finditer(source):
        text += html.unescape(source[position : tag.start()])
        position = tag.end()
        name = tag[2].lower()
        if name not in TYPES:
            raise _wrong(f'Unsupported start tag "{name}"', source, tag.start())
        if not tag[1]:
            opened.append((name, tag[3], units(text)))
        else:
            _close(opened, name, found, units(text), _wrong("Unexpected end tag", source, tag.start()))
    text += html.unescape(source[position:])
    if opened:
        raise bad_request(
            f"can't parse entities: Can't find end tag corresponding to start tag \"{opened[-1][0]}\""
        )
    return text, sorted(found, key=lambda entity: (entity["offset"], -entity["length"]))


def _close(
    opened: list[tuple[str, str, int]], name: str, found: list[Entity], end: int, wrong: Exception
) -> None:
    if not opened or opened[-1][0] != name:
        raise wrong
    _, attributes, start = opened.pop()
    kind = TYPES[name]
    href = HREF.search(attributes) if kind == "text_link" else None
    if end == start or (kind not in KEPT and href is None):
        return
    entity: Entity = {"type": kind, "offset": start, "length": end - start}
    if href is not None:
        entity["url"] = html.unescape(href[1] or href[2] or href[3] or "")
    found.append(entity)


def _wrong(problem: str, source: str, at: int) -> Exception:
    return bad_request(f"can't parse entities: {problem} at byte offset {len(source[:at].encode())}")
