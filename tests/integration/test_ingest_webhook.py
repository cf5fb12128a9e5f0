"""DESIGN, HTTP: the webhook's table row by row, over real HTTP and a real PostgreSQL."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import psycopg
import pytest

from pillarbox import db
from pillarbox.errors import SettingError
from pillarbox_solo.postgres import PostgresServer
from tests.support import servers
from tests.support.inbox import query
from tests.support.ingest import BOT_ID, HEADER, NEXT_SECRET, OTHER_BOT, SECRET, Ingest, running, update

MIB = 1 << 20


@pytest.fixture
async def ingest(postgres_url: str) -> AsyncIterator[Ingest]:
    async with running(postgres_url) as ingest:
        await ingest.ready()
        yield ingest


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "postgres")
    with servers.running(server):
        db.migrate(server.url)
        yield server


async def raw(ingest: Ingest, request: bytes) -> bytes:
    """What comes back for exactly these bytes, while the connection stays open for more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", ingest.port)
    writer.write(request)
    async with asyncio.timeout(5):
        answer = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "PATCH"])
async def test_another_method(ingest: Ingest, method: str) -> None:
    """Before everything else: no secret, no such bot."""
    async with aiohttp.request(method, f"{ingest.url}/webhook/nobody") as answer:
        assert (answer.status, answer.headers["Allow"], await answer.read()) == (405, "POST", b"")


@pytest.mark.parametrize("secret", [None, "", "wrong", SECRET + "x", SECRET[:-1], "sécret"])
async def test_a_wrong_secret(ingest: Ingest, postgres_url: str, secret: str | None) -> None:
    assert await ingest.post(update(1), secret=secret) == 401
    assert await ingest.post(update(1), bot_id="nobody", secret=secret) == 401
    assert query(postgres_url, "SELECT 1 FROM seen") == []


async def test_both_secrets_while_they_are_rotated(ingest: Ingest) -> None:
    assert await ingest.post(update(1), secret=SECRET) == 200
    assert await ingest.post(update(2), secret=NEXT_SECRET) == 200


async def test_the_secret_is_looked_at_before_the_body_is_here(ingest: Ingest) -> None:
    head = f"POST /webhook/{BOT_ID} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    assert (await raw(ingest, f"{head}{HEADER}: wrong\r\n\r\n".encode())).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("bot", ["9", "nobody", "", f"{BOT_ID}/", f"0{BOT_ID}", "%D9%A7", f"{BOT_ID}%00"])
async def test_an_unknown_bot(ingest: Ingest, bot: str) -> None:
    assert await ingest.post(b"x" * (MIB + 1), bot_id=bot) == 404


async def test_a_body_over_1_mib(ingest: Ingest, postgres_url: str) -> None:
    padding = MIB - len(json.dumps(update(1, text="")))
    assert await ingest.post(update(1, text="x" * padding)) == 200
    assert query(postgres_url, "SELECT length(body) FROM updates") == [(MIB,)]
    assert await ingest.post(b"x" * (MIB + 1)) == 413

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * (MIB // 16)

    assert await ingest.post(chunks()) == 413
    assert query(postgres_url, "SELECT count(*) FROM updates") == [(1,)]


async def test_new_and_repeated(ingest: Ingest, postgres_url: str) -> None:
    assert [await ingest.post(update(1)) for _ in range(3)] == [200, 200, 200]
    assert await ingest.post(update(1), bot_id=OTHER_BOT) == 200
    rows = query(postgres_url, "SELECT bot_id, lane, kind, chat_id, user_id FROM updates ORDER BY 1")
    assert rows == [(bot, "chat:42", "message", 42, 42) for bot in (BOT_ID, OTHER_BOT)]


async def test_the_same_update_many_times_at_once(ingest: Ingest, postgres_url: str) -> None:
    posts = [ingest.post(update(n % 5)) for n in range(100)]
    assert set(await asyncio.gather(*posts)) == {200}
    assert query(postgres_url, "SELECT count(*), sum(pending) FROM updates, lanes") == [(5, 25)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"\xff",
        b"[]",
        b'{"update_id":1}',
        b'{"update_id":%d,"message":{}}' % (1 << 64),
        b"[" * MIB,
    ],
    ids=["empty", "text", "bytes", "array", "no event", "huge id", "brackets"],
)
async def test_no_update_can_be_read(ingest: Ingest, postgres_url: str, body: bytes) -> None:
    good, bad = await asyncio.gather(ingest.post(update(1)), ingest.post(body))
    assert (good, bad) == (200, 200)
    assert query(postgres_url, "SELECT bot_id, body FROM malformed") == [(BOT_ID, body)]
    assert query(postgres_url, "SELECT update_id FROM updates") == [(1,)]


async def test_bodies_are_stored_as_they_came(ingest: Ingest, postgres_url: str) -> None:
    body = b' {"update_id" :1,\n"message":{"chat":{"id":1}, "text":"\\u0000\\ud800"}}'
    assert await ingest.post(body) == 200
    assert query(postgres_url, "SELECT body, lane FROM updates") == [(body, "chat:1")]


async def test_the_store_is_down_and_comes_back(own_server: PostgresServer) -> None:
    async with running(own_server.url) as ingest:
        await ingest.ready()
        assert await ingest.post(update(1)) == 200
        await asyncio.to_thread(own_server.kill)
        assert await ingest.post(update(2)) == 503
        assert await ingest.post(b"no JSON") == 503
        assert set(await ingest.failing()) == {"database"}
        await asyncio.to_thread(own_server.start)
        await ingest.ready()
        assert [await ingest.post(update(n)) for n in (1, 2)] == [200, 200]
        assert query(own_server.url, "SELECT update_id FROM updates ORDER BY 1") == [(1,), (2,)]


async def test_the_store_is_down_at_the_start(own_server: PostgresServer) -> None:
    await asyncio.to_thread(own_server.stop)
    async with running(own_server.url) as ingest:
        assert set(await ingest.failing()) == {"database"}
        assert await ingest.post(update(1)) == 503
        await asyncio.to_thread(own_server.start)
        await ingest.ready()
        assert await ingest.post(update(1)) == 200


async def test_a_slow_store(ingest: Ingest, postgres_url: str) -> None:
    """503 within five seconds, sooner where it is a lock; the repeat is no second update."""
    assert await ingest.post(update(1)) == 200
    with psycopg.connect(postgres_url) as blocking:
        blocking.execute("SELECT 1 FROM lanes FOR UPDATE")
        started = asyncio.get_running_loop().time()
        assert await asyncio.gather(*(ingest.post(update(n)) for n in range(2, 6))) == [503] * 4
        assert 0.4 < asyncio.get_running_loop().time() - started < 8
    assert [await ingest.post(update(n)) for n in range(2, 6)] == [200] * 4
    assert query(postgres_url, "SELECT count(*) FROM updates") == [(5,)]
    assert query(postgres_url, "SELECT pending FROM lanes") == [(5,)]


async def test_a_clean_stop_answers_what_it_has(postgres_url: str) -> None:
    async with running(postgres_url) as ingest:
        await ingest.ready()
        posts = [asyncio.create_task(ingest.post(update(n))) for n in range(50)]
        await asyncio.sleep(0.01)
        ingest.stop.set()
        answers = await asyncio.gather(*posts, return_exceptions=True)
    taken = {n for n, answer in enumerate(answers) if answer == 200}
    assert all(answer in (200, 503) or isinstance(answer, aiohttp.ClientError) for answer in answers)
    stored = {n for (n,) in query(postgres_url, "SELECT update_id FROM updates")}
    assert taken <= stored


async def test_a_stop_waits_for_no_half_sent_body(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = f"POST /webhook/{BOT_ID} HTTP/1.1\r\nHost: x\r\n{HEADER}: {SECRET}\r\nContent-Length: 100\r\n\r\n"
    async with running(postgres_url) as ingest:
        await ingest.ready()
        halves = [await asyncio.open_connection("127.0.0.1", ingest.port) for _ in range(50)]
        for number, (_, writer) in enumerate(halves):
            writer.write(head.encode() + b"{" * (number % 2))
        await asyncio.sleep(0.3)
        began = time.monotonic()
    assert time.monotonic() - began < 3
    for reader, writer in halves:
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        writer.close()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_another_schema_ends_it_with_one_line(postgres_url: str) -> None:
    query(postgres_url, "UPDATE alembic_version SET version_num = '9999'")
    line = pytest.RaisesExc(SettingError, match="is at revision 9999")
    with pytest.RaisesGroup(line, flatten_subgroups=True):
        async with running(postgres_url):
            await asyncio.sleep(1)


async def test_probes_and_metrics(ingest: Ingest) -> None:
    assert await ingest.post(update(1)) == 200
    async with aiohttp.request("GET", f"{ingest.url}/metrics") as answer:
        text = await answer.text()
    assert 'pillarbox_updates_received_total{bot="700001",kind="message",outcome="new"}' in text
    assert "hello" not in text
    async with aiohttp.request("GET", f"{ingest.url}/healthz") as answer:
        assert answer.status == 200
