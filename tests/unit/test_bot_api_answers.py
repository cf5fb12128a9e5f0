"""Whatever the Bot API answers, its caller has an outcome that it can count and write down."""

import asyncio

import aiohttp
import msgspec
import pytest
from pydantic import SecretStr

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope
from pillarbox.outbound.lane import Lane
from pillarbox.said import LONGEST_WAIT, read
from pillarbox_ingest import bot_api as ingest
from pillarbox_ingest.polled import bodies_of
from pillarbox_sender import bot_api as sender
from pillarbox_sender.turn import Claim
from pillarbox_sender.verdict import judge
from tests.support.nonsense import SHAPES, Shape, saying

BOT = BotId(7)
BOTS = {BOT: SecretStr("7:" + "A" * 35)}
CLAIM = Claim("inc", Lane(BOT, "interactive", "42"), "1", 0, 0, 0, False, 1.0, 2.0, b"{}")


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_a_send_has_an_end_that_redis_can_take(shape: Shape) -> None:
    async with (
        saying([shape], b"{}") as (url, _),
        sender.BotApi(url, BOTS, timeout=5, concurrency=1) as api,
    ):
        outcome = await api.call(BOT, "sendMessage")
    end = judge(CLAIM, Envelope("sendMessage", {}), outcome, 10)
    assert msgspec.msgpack.encode(end.arguments())
    assert 0 <= end.delay <= LONGEST_WAIT + 1
    assert len(end.detail) <= 300
    assert end.verdict != "sent"


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_ingest_is_refused_with_a_wait_that_it_can_sleep(shape: Shape) -> None:
    async with saying([shape], b"{}") as (url, _), aiohttp.ClientSession() as session:
        api = ingest.BotApi(session, url, BOTS)
        with pytest.raises(ingest.Refused) as refused:
            await api.call(BOT, "setWebhook", {})
    assert 0 <= refused.value.after <= LONGEST_WAIT
    assert 0 < len(refused.value.reason) <= 300
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.sleep(max(refused.value.after, 1))


@pytest.mark.parametrize(
    ("raw", "code", "after"),
    [
        (b'{"ok":false,"error_code":429,"parameters":{"retry_after":3}}', 429, 3.0),
        (b'{"ok":false,"error_code":429,"description":5,"parameters":{"retry_after":3}}', 429, 3.0),
        (b'{"ok":false,"error_code":"x","parameters":{"retry_after":3.5}}', None, 3.5),
        (b'{"ok":false,"error_code":400,"parameters":null}', 400, None),
        (b'{"ok":false,"description":"Too Many Requests: Retry after 17"}', None, 17.0),
    ],
)
def test_a_wrong_member_hides_no_other(raw: bytes, code: int | None, after: float | None) -> None:
    said = read(raw)
    assert said is not None
    assert (said.ok, said.error_code, said.retry_after) == (False, code, after)


@pytest.mark.parametrize(
    "raw",
    [b'{"ok":true}', b'{"ok":true,"result":null}', b'{"ok":true,"result":{}}', b'{"ok":true,"result":['],
)
def test_an_ok_without_updates_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="no list"):
        bodies_of(raw)
