"""PgBouncer in transaction mode, with fewer connections than callers: each call may meet another backend."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pillarbox_solo.account import Account
from pillarbox_solo.ports import free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
CONFIG = """
[databases]
* = host=127.0.0.1 port={postgres} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pooled(url: str, folder: Path) -> Iterator[str]:
    """The URL of the same database through a PgBouncer of its own."""
    if PROGRAM is None:
        raise RuntimeError(
            'PgBouncer is not installed: install it, or leave these out with -m "not pgbouncer"'
        )
    parts, port = urlsplit(url), free_port()
    folder.mkdir(exist_ok=True)
    file, log = folder / "pgbouncer.ini", folder / "pgbouncer.log"
    text = CONFIG.format(postgres=parts.port, user=parts.username, password=parts.password, port=port)
    file.write_text(text, encoding="utf-8")
    account = Account.namespace() if os.geteuid() == 0 else Account()  # it refuses to be root
    with log.open("wb") as out:
        process = subprocess.Popen(account.command(PROGRAM, file), stdout=out, stderr=out)
    try:
        _wait(process, port, log)
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"PgBouncer does not start:\n{log.read_text()[-1000:]}")
