"""The judge: markers in the texts of calls that took effect tell what was lost, doubled or reordered.

A marker is `#<stream>:<n>`; a stream is the chat's id, with a letter before it where one chat has several:
`#42:1`, `#a42:1`, `#b-100:7`. Numbers begin at 1.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pillarbox_simulator.ledger import Entry, text_of
from pillarbox_simulator.limits import Limits, Pace, is_paced

MARKER = re.compile(r"#([a-z]?-?\d+):(\d+)")
STREAMS = re.compile(r"([a-z]?)(-?\d+)(?:\.\.(-?\d+))?\Z")
MOST_EXPECTED = 2_000_000
UNDER_WAY = 0.25
"""Seconds after a 429 in which a call to the same chat may have been on its way already."""

Expected = Mapping[str, int]


def expected_of(words: str) -> dict[str, int]:
    """`42:10,a1..200:5`: ten in chat 42, five in each of the streams a1 to a200. Raises ValueError."""
    pairs = (word.strip().rpartition(":") for word in words.split(",") if word.strip())
    return {stream: int(count) for stream, _, count in pairs}


def spread(expected: Expected) -> dict[str, int]:
    """Each stream by its own name. Raises ValueError for a key that names none."""
    streams: dict[str, int] = {}
    most = MOST_EXPECTED
    for key, count in expected.items():
        match = STREAMS.match(key)
        if match is None:
            raise ValueError(
                f"{key!r} is no stream: write a chat's id, a letter before it or not, or a range a1..200"
            )
        prefix, first, last = match[1], int(match[2]), int(match[3] or match[2])
        most -= max(last - first + 1, 0) * max(count, 1)
        if most < 0:
            raise ValueError(f"more than {MOST_EXPECTED:,} markers are expected; ask for fewer at a time")
        streams.update({f"{prefix}{chat}": count for chat in range(first, last + 1)})
    return streams


def check(entries: Iterable[Entry], limits: Limits, expected: Expected | None = None) -> dict[str, Any]:
    """What the ledger proves. Without `expected`, a gap below the highest number of a stream is lost."""
    calls = list(entries)
    seen: Counter[tuple[str, int]] = Counter()
    highest: dict[str, int] = {}
    reordered = []
    for stream, number in _markers(calls):
        seen[(stream, number)] += 1
        if number < highest.get(stream, 0):
            reordered.append({"marker": _name(stream, number), "after": _name(stream, highest[stream])})
        highest[stream] = max(number, highest.get(stream, 0))
    due = highest if expected is None else spread(expected)
    lost = [_name(s, n) for s, most in due.items() for n in range(1, most + 1) if (s, n) not in seen]
    unexpected = [_name(s, n) for s, n in seen if expected is not None and n > due.get(s, 0)]
    findings: dict[str, Any] = {
        "lost": lost,
        "doubled": {_name(s, n): times for (s, n), times in seen.items() if times > 1},
        "reordered": reordered,
        "unexpected": unexpected,
        "limits_broken": limits_broken(calls, limits),
        "retry_after_ignored": retry_after_ignored(calls),
    }
    return findings | {"seen": len(seen), "counts": {name: len(found) for name, found in findings.items()}}


def _markers(calls: list[Entry]) -> Iterable[tuple[str, int]]:
    for call in calls:
        if call.effect:
            for stream, number in MARKER.findall(text_of(call)):
                yield stream, int(number)


def _name(stream: str, number: int) -> str:
    return f"#{stream}:{number}"


def limits_broken(calls: list[Entry], limits: Limits) -> list[dict[str, Any]]:
    """Calls that a limit of a chat or group does not allow, whether they were answered 429 or not."""
    if limits.mode == "off":
        return []
    pace, broken = Pace(limits), []
    for call in calls:
        if is_paced(call.method) and "chat_id" in call.params:
            found = pace.broken(call.bot_id, call.params["chat_id"], call.at, bulk=False)
            if found is not None:
                broken.append(_place(call) | {"limit": found[0], "early": round(found[1], 3)})
    return broken


def retry_after_ignored(calls: list[Entry]) -> list[dict[str, Any]]:
    """Calls to a chat before its `retry_after` ended, but for those already under way."""
    waits: dict[tuple[int, str], tuple[float, float]] = {}
    ignored = []
    for call in calls:
        if "chat_id" not in call.params:
            continue
        scope = (call.bot_id, str(call.params["chat_id"]))
        since, until = waits.get(scope, (0.0, 0.0))
        if since + UNDER_WAY < call.at < until:
            ignored.append(_place(call) | {"early": round(until - call.at, 3)})
        if call.status == 429 and call.retry_after:
            waits[scope] = (call.at, call.at + call.retry_after)
    return ignored


def _place(call: Entry) -> dict[str, Any]:
    return {
        "bot_id": call.bot_id,
        "chat_id": call.params.get("chat_id"),
        "method": call.method,
        "at": call.at,
    }
