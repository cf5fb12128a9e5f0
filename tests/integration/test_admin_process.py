"""`python -m pillarbox_admin`: exit codes, and what it says."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from pillarbox_solo.ports import free_port

TOKEN = "a-token-of-16-characters-or-more"
COMMAND = [sys.executable, "-m", "pillarbox_admin"]


def environment(postgres_url: str, valkey_url: str, **more: str) -> dict[str, str]:
    return (
        os.environ
        | {
            "DATABASE_URL": postgres_url,
            "REDIS_URL": valkey_url,
            "ADMIN_HOST": "127.0.0.1",
            "ADMIN_TOKENS": f"ops:read:{TOKEN}",
        }
        | more
    )


def ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_it_stops_cleanly_and_says_no_token(postgres_url: str, valkey_url: str) -> None:
    port = free_port()
    given = environment(postgres_url, valkey_url, ADMIN_PORT=str(port))
    with subprocess.Popen(COMMAND, env=given, stderr=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 20
            while not ready(port):
                assert time.monotonic() < until
                time.sleep(0.05)
            request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/bots")
            request.add_header("Authorization", f"Bearer {TOKEN}")
            with urllib.request.urlopen(request, timeout=5) as response:
                assert response.status == 200
        finally:
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=20)[1]
    assert process.returncode == 0, said
    assert TOKEN not in said
    assert "Traceback" not in said


def test_a_wrong_setting_is_one_line(postgres_url: str, valkey_url: str) -> None:
    given = environment(postgres_url, valkey_url, ADMIN_TOKENS=f"ops:everything:{TOKEN}")
    ended = subprocess.run(COMMAND, env=given, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert ended.stderr == (
        "admin: ADMIN_TOKENS: entry 1 has rights other than read, act and payload, with + between; "
        "set it, for example ADMIN_TOKENS=ops:read+act:<a token of 16 or more characters>\n"
    )
