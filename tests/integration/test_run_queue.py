"""The Valkey of `pillarbox run`: the same port each time, and back after its death."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from pillarbox_solo import processes
from pillarbox_solo.errors import PortTaken
from pillarbox_solo.ports import free_port
from pillarbox_solo.queue import Queue


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    queue = Queue(tmp_path / "bot.db.valkey")
    yield queue
    queue.stop()


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2].partition("/")[0])


def test_the_next_start_has_the_port_and_the_data(queue: Queue, tmp_path: Path) -> None:
    url = queue.start()
    with redis.Redis.from_url(url) as client:
        client.rpush("door", b"{}")
    queue.stop()
    again = Queue(tmp_path / "bot.db.valkey")
    try:
        assert again.start() == url
        with redis.Redis.from_url(url) as client:
            assert client.llen("door") == 1
    finally:
        again.stop()


def test_a_port_that_another_took_meanwhile_is_replaced_unless_it_was_asked_for(tmp_path: Path) -> None:
    folder, port = tmp_path / "valkey", free_port()
    first = Queue(folder, port)
    first.start()
    first.stop()
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(PortTaken):
            Queue(folder, port).start()
        other = Queue(folder)
        try:
            assert port_of(other.start()) != port
        finally:
            other.stop()


async def test_it_is_back_after_its_death_on_the_same_port(queue: Queue, tmp_path: Path) -> None:
    url = queue.start()
    pid = processes.read_pid(tmp_path / "bot.db.valkey" / "valkey.pid")
    assert pid is not None
    watching = asyncio.create_task(queue.watch())
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        while not _answers(url):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    watching.cancel()


def _answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False
