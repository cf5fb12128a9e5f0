"""A stop that comes while a service loads is a clean one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("service", ["ingest", "dispatcher", "sender", "admin", "solo"])
def test_a_stop_while_it_loads_is_clean(service: str) -> None:
    """Without a setting it would end with 2 once it has loaded."""
    words = [sys.executable, "-m", f"pillarbox_{service}", *(["run"] if service == "solo" else [])]
    with subprocess.Popen(words, env={"PATH": os.environ["PATH"]}, stderr=subprocess.DEVNULL) as process:
        _until_it_hears(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def _until_it_hears(process: "subprocess.Popen[bytes]") -> None:
    bit = 1 << (signal.SIGTERM - 1)
    until = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < until:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught, 16) & bit:
            return
        time.sleep(0.001)
