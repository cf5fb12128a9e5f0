"""What a person sees: steps with their seconds, and one line for each event of a service."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

COLOURS = (36, 35, 32, 34, 33)  # one for each service; red is for what went wrong
LEVELS = {"warning": 33, "error": 31, "critical": 31}
WIDTH = 10
KNOWN = {"event", "level", "timestamp", "service", "frames", "logger"}


class Terminal:
    """Colours only where `colour` says that they are seen."""

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._names: dict[str, int] = {}
        self._gone = False
        self._step = ""  # the begun line of a step, which an event may interrupt

    def line(self, text: str = "") -> None:
        self._write(f"\n{text}\n" if self._step else f"{text}\n")
        self._step = ""

    def _write(self, text: str) -> None:
        """Once nobody reads any more (`make demo | head`) it is silent: what runs must still be stopped."""
        if self._gone:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:
            self._gone = True

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """One line: what is being done, and when that is over, how long it took."""
        began = time.monotonic()
        begun = f"  {text:<44} "
        self._write(begun)
        self._step = begun
        end = "not done"
        try:
            yield
            end = f"{time.monotonic() - began:4.1f} s"
        finally:
            self._write(f"{end}\n" if self._step else f"{begun}{end}\n")
            self._step = ""

    def event(self, service: str, raw: str) -> None:
        """A line that a service wrote: its JSON made readable, anything else as it is."""
        text, level = readable(raw)
        self.line(
            f"{self._paint(f'{service:<{WIDTH}}', self._own(service))} {self._paint(text, LEVELS.get(level))}"
        )

    def bold(self, text: str) -> str:
        return self._paint(text, 1)

    def _own(self, service: str) -> int:
        return self._names.setdefault(service, COLOURS[len(self._names) % len(COLOURS)])

    def _paint(self, text: str, code: int | None) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code else text


def readable(raw: str) -> tuple[str, str]:
    """The text of one line of a service's log, and its level."""
    try:
        event: Any = json.loads(raw)
    except ValueError:
        return raw, ""
    if not isinstance(event, dict) or "event" not in event:
        return raw, ""
    clock = str(event.get("timestamp", ""))[11:19]
    rest = " ".join(f"{name}={value}" for name, value in event.items() if name not in KNOWN)
    frames = event.get("frames") or []
    place = f"at {frames[-1]}" if frames else ""
    return " ".join(part for part in (clock, str(event["event"]), rest, place) if part), str(
        event.get("level", "")
    )
