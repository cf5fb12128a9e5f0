"""Logs hold no token and nothing that people wrote; readiness names what is away."""

import json
import os
import subprocess
import sys

from prometheus_client import CollectorRegistry, Counter

from pillarbox.telemetry import Probes

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
PRIVATE = "what Ann wrote"


def logged(body: str) -> list[dict[str, object]]:
    """What a process that runs `body` logs, as JSON."""
    program = f"""
import logging
from pillarbox import telemetry
telemetry.configure("tests", "json", "info")
log, library = telemetry.get_logger(), logging.getLogger("some.library")
{body}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_a_line_is_json_with_service_time_and_level() -> None:
    (line,) = logged("log.info('accepted', updates=3)")
    assert line["event"] == "accepted"
    assert line["service"] == "tests"
    assert line["level"] == "info"
    assert line["updates"] == 3
    assert str(line["timestamp"]).endswith("Z")


def test_an_error_is_its_type_and_place_without_its_words() -> None:
    lines = logged(f"""
try:
    raise ValueError("{PRIVATE}")
except ValueError:
    log.exception("handler_failed")
    library.exception("it broke")
""")
    assert len(lines) == 2
    for line in lines:
        assert line["error"] == "ValueError"
        assert line["frames"]
        assert PRIVATE not in json.dumps(line)


def test_errors_in_a_group_are_named() -> None:
    (line,) = logged("log.error('stopped', exc_info=ExceptionGroup('many', [KeyError('x'), OSError()]))")
    assert line["error"] == "ExceptionGroup[KeyError, OSError]"


def test_a_library_that_logs_an_address_shows_no_token() -> None:
    lines = logged(f"""
library.warning("GET %s", "https://api.telegram.org/bot{TOKEN}/getMe")
log.info("called", url="/bot{TOKEN}/getMe")
log.info("called", urls=["/bot{TOKEN}/getMe", {{"token": "{TOKEN}"}}])
""")
    assert len(lines) == 3
    assert TOKEN not in json.dumps(lines)


async def fails() -> None:
    raise ConnectionError(PRIVATE)


async def works() -> None:
    return None


async def test_ready_when_every_check_returns() -> None:
    status, _, body = await Probes({"database": works}).answer("/readyz")
    assert (status, json.loads(body)) == (200, {"ready": True, "failing": {}, "pid": os.getpid()})


async def test_not_ready_names_what_is_away() -> None:
    status, _, body = await Probes({"database": fails, "redis": works}).answer("/readyz")
    assert status == 503
    failing = {"database": "ConnectionError"}
    assert json.loads(body) == {"ready": False, "failing": failing, "pid": os.getpid()}


async def test_alive_though_nothing_is_ready() -> None:
    assert (await Probes({"database": fails}).answer("/healthz"))[0] == 200


async def test_metrics_and_no_other_path() -> None:
    registry = CollectorRegistry()
    Counter("pillarbox_things", "Things", registry=registry).inc()
    probes = Probes(registry=registry)
    assert b"pillarbox_things_total 1.0" in (await probes.answer("/metrics"))[2]
    assert (await probes.answer("/"))[0] == 404
