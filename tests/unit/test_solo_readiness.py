import asyncio

import pytest

from pillarbox_solo.ports import free_port
from pillarbox_solo.readiness import until_ready

OK, AWAY = b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
STRANGER = "another program answers"
ANSWERS = [
    (OK + b'{"ready": true, "failing": {}, "pid": 7}', None),
    (AWAY + b'{"ready": false, "failing": {"redis": "TimeoutError"}, "pid": 7}', "redis (TimeoutError)"),
    (OK + b'{"ready": true, "failing": {}, "pid": 8}', STRANGER),
    (AWAY + b'{"ready": false, "failing": {}, "pid": 8}', STRANGER),
    (OK + b"hello", STRANGER),
    (OK + b"[]", STRANGER),
    (b"", "no answer"),
]


@pytest.mark.parametrize(("answer", "failing"), ANSWERS)
async def test_readiness_is_what_the_process_itself_says(answer: bytes, failing: str | None) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /readyz ")
        writer.write(answer)
        writer.close()

    port = free_port()
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        found = await until_ready(port, lambda: 7, lambda: False, patience=0.0)
    assert found == (f"{STRANGER} on port {port}" if failing == STRANGER else failing)


async def test_a_service_without_hope_is_not_waited_for() -> None:
    async with asyncio.timeout(5):
        assert await until_ready(free_port(), lambda: 7, lambda: True) == "nothing listens on its port"
