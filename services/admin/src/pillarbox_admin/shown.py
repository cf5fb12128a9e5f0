"""How times, numbers and results are written on the page."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from markupsafe import Markup

from pillarbox_admin import problems
from pillarbox_admin.jobs import Job

STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
PLACE = re.compile(r"[^ /]{1,200}\.py:[0-9]+")
MOST_TYPE = 100
DONE = {"retry": "{} given back to the bot, to be handled again.", "discard": "{} discarded."}
DEAD_DONE = {"retry": "{} given back to the senders.", "discard": "{} discarded."}


def number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def clock(now: datetime) -> Markup:
    return _time(now, now.astimezone(UTC).strftime("%H:%M:%S UTC"))


def ago(now: datetime, at: datetime | None) -> Markup | str:
    """`3 min ago`, with the time in UTC for whoever points at it."""
    if at is None:
        return "–"
    seconds = (now - at).total_seconds()
    return _time(at, f"{wait(seconds)} ago" if seconds >= 1 else "just now")


def wait(seconds: float) -> str:
    """`3 min`: the largest unit alone."""
    for size, unit in STEPS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "–"


def _time(at: datetime, words: str) -> Markup:
    moment = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(), moment.strftime("%Y-%m-%d %H:%M:%S UTC"), words
    )


def dead_result(words: Mapping[str, str]) -> str | None:
    """As `result`, of dead messages."""
    did = DEAD_DONE.get(words.get("did", ""))
    if did is None:
        return None
    moved, unknown, refused = (_count(words.get(name, "")) for name in ("moved", "unknown", "refused"))
    if not moved + unknown + refused:
        return "Nothing was chosen."
    sentences = [did.format(number(moved))]
    if unknown:
        sentences.append(f"{number(unknown)} not in the list any more.")
    if refused:
        sentences.append(f"{number(refused)} cannot be sent as they are; they stay.")
    return " ".join(sentences)


def result(words: Mapping[str, str]) -> str | None:
    """What an act did. Only numbers come from the address: a forged link can say nothing else."""
    did = DONE.get(words.get("did", ""))
    if did is None:
        return None
    moved, unknown, running = (_count(words.get(name, "")) for name in ("moved", "unknown", "running"))
    if not moved + unknown + running:
        return "Nothing was chosen."
    sentences = [did.format(number(moved))]
    if unknown:
        sentences.append(f"{number(unknown)} not in the failed list any more.")
    if running:
        sentences.append(f"{number(running)} waiting or running already.")
    return " ".join(sentences)


def job(found: Job, done: Mapping[str, str] = DONE) -> str:
    """How far a large one is, or how it ended."""
    did = done[found.act].format(number(found.moved))
    if found.error is not None:
        return f"{did} Then it stopped. {problems.of(found.error).detail} Choose the rest again."
    return f"{did} More follow." if found.state == "running" else did


def type_and_place(type_: str, place: str) -> str:
    """`ValueError at bot.py:5`: a message may quote what people wrote. Neither may these two."""
    where = place_alone(place)
    return f"{type_alone(type_)} at {where}" if where else type_alone(type_)


def type_alone(type_: str) -> str:
    return type_ if type_.isascii() and type_.isidentifier() else type_.partition(":")[0][:MOST_TYPE]


def place_alone(place: str) -> str:
    return place if PLACE.fullmatch(place) else ""


def without_place(error: str, place: str) -> str:
    """The page shows the place beside it."""
    return error.removesuffix(f" at {place}") if place else error


def _count(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0
