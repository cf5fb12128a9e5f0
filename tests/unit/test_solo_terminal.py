import io
import json

import pytest

from pillarbox_solo.terminal import Terminal, readable

LINE = {
    "event": "stored",
    "level": "info",
    "timestamp": "2026-01-02T03:04:05.6Z",
    "service": "ingest",
    "bot": 7,
}
FAILURE = {"event": "x", "error": "KeyError", "frames": ["a.py:1 f", "b.py:2 g"]}


@pytest.mark.parametrize(
    ("raw", "text", "level"),
    [
        (json.dumps(LINE), "03:04:05 stored bot=7", "info"),
        (json.dumps(FAILURE), "x error=KeyError at b.py:2 g", ""),
        ("Traceback (most recent call last):", "Traceback (most recent call last):", ""),
        ("[1, 2]", "[1, 2]", ""),
        ('{"no": "event"}', '{"no": "event"}', ""),
    ],
)
def test_a_line_of_a_service_is_made_readable(raw: str, text: str, level: str) -> None:
    assert readable(raw) == (text, level)


def test_an_event_in_the_middle_of_a_step_breaks_no_line() -> None:
    out = io.StringIO()
    terminal = Terminal(out, colour=False)
    with terminal.step("Tables"):
        terminal.event("sender", "hello")
    lines = out.getvalue().splitlines()
    assert [line.split() for line in lines] == [["Tables"], ["sender", "hello"], ["Tables", "0.0", "s"]]


def test_a_step_that_failed_says_so() -> None:
    out = io.StringIO()
    with pytest.raises(RuntimeError), Terminal(out, colour=False).step("Tables"):
        raise RuntimeError
    assert out.getvalue().split() == ["Tables", "not", "done"]


def test_colours_are_only_where_they_are_seen() -> None:
    for colour in (True, False):
        out = io.StringIO()
        Terminal(out, colour=colour).event("sender", json.dumps(LINE | {"level": "error"}))
        assert ("\x1b[31m" in out.getvalue()) is colour
