"""RECEIVE=polling, over the simulated Telegram and a real PostgreSQL: what is asked, stored and confirmed."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import pillarbox_simulator
from pillarbox_simulator.updates import UpdateQueue
from pillarbox_solo.postgres import PostgresServer
from tests.support.inbox import query
from tests.support.ingest import BOT_ID, OTHER_BOT, TOKENS, running
from tests.support.polling import TOKEN, asks, metric, stored, until
from tests.support.servers import TEMPLATE, make_template, postgres_programs
from tests.support.servers import running as running_server
from tests.support.simulator_client import SimulatorClient

API = dict(zip((BOT_ID, OTHER_BOT), TOKENS.split(","), strict=True))


@pytest.fixture
async def telegram() -> AsyncIterator[pillarbox_simulator.Running]:
    async with pillarbox_simulator.running(tokens=list(API.values())) as running:
        yield running


@pytest.fixture
def control(telegram: pillarbox_simulator.Running, http: aiohttp.ClientSession) -> SimulatorClient:
    return SimulatorClient(telegram.url, http)


def polling(url: str, telegram: pillarbox_simulator.Running, **given: Any) -> Any:
    return running(url, telegram_api_base=telegram.url, receive="polling", **given)


def queue_of(telegram: pillarbox_simulator.Running, bot_id: int = BOT_ID) -> UpdateQueue:
    bot = telegram.simulator.bots.find(bot_id)
    assert bot is not None
    return bot.updates


async def say(control: SimulatorClient, count: int, chats: int = 1, bot_id: int = BOT_ID) -> list[int]:
    said = [
        {"bot_id": bot_id, "chat_id": 1 + n % chats, "user_id": 1 + n % chats, "text": f"#{n}"}
        for n in range(count)
    ]
    return [answer["update_id"] for answer in await control.say(said)]


async def has(url: str, ids: list[int], seconds: float = 20.0) -> None:
    async def all_stored() -> bool:
        return sorted(await stored(url)) == sorted(ids)

    await until(all_stored, seconds)


async def asked(control: SimulatorClient, bot_id: int = BOT_ID) -> list[dict[str, Any]]:
    """What getUpdates was called with, of the calls that were answered."""
    return [call["params"] for call in await control.ledger(bot_id=bot_id, method="getUpdates")]


async def waits(telegram: pillarbox_simulator.Running) -> bool:
    """Whether a long poll is under way: the ledger shows a call when it is answered."""
    return BOT_ID in telegram.simulator.polling._waiting


async def call(
    telegram: pillarbox_simulator.Running, method: str, bot_id: int = BOT_ID, **params: Any
) -> Any:
    address = f"{telegram.url}/bot{TOKEN}/{method}"
    async with aiohttp.request("POST", address, json=params) as answer:
        return await answer.json()


async def test_what_waited_is_stored_in_order_and_then_confirmed(
    postgres_url: str, telegram: pillarbox_simulator.Running, control: SimulatorClient
) -> None:
    ids = await say(control, 250, chats=7)
    async with polling(postgres_url, telegram, allowed_updates="message,poll") as ingest:
        await has(postgres_url, ids)
        assert await stored(postgres_url) == ids
        late = await say(control, 1)
        await has(postgres_url, ids + late)
        assert await ingest.failing() == {}
    assert not queue_of(telegram).pending
    calls = await asked(control)
    assert "offset" not in calls[0]
    assert (calls[0]["limit"], calls[0]["timeout"]) == (100, 50)
    assert calls[0]["allowed_updates"] == ["message", "poll"]
    offsets = list(dict.fromkeys(call["offset"] for call in calls if "offset" in call))
    assert offsets == [number + 1 for number in (ids[99], ids[199], ids[249], late[0])]


async def test_a_clean_stop_confirms_what_was_stored_and_no_more(
    postgres_url: str, telegram: pillarbox_simulator.Running, control: SimulatorClient
) -> None:
    ids = await say(control, 150)
    await control.faults(
        [{"kind": "slow", "bot_id": BOT_ID, "method": "getUpdates", "nth": 2, "seconds": 10}]
    )
    async with polling(postgres_url, telegram):
        await has(postgres_url, ids[:100])
    last = (await asked(control))[-1]
    assert (last["offset"], last["limit"], last["timeout"]) == (ids[99] + 1, 1, 0)
    assert [pending.update_id for pending in queue_of(telegram).pending.values()] == ids[100:]
    assert await stored(postgres_url) == ids[:100]


async def test_ids_that_jump_down_are_new_updates(
    postgres_url: str, telegram: pillarbox_simulator.Running, control: SimulatorClient
) -> None:
    async with polling(postgres_url, telegram, poll_timeout=1):
        first = await say(control, 3)
        await has(postgres_url, first)

        async def empty() -> bool:
            return not queue_of(telegram).pending and "offset" not in (await asked(control))[-1]

        await until(empty)
        queue_of(telegram).next_id = first[0] - 5  # within ten of the last: Telegram would take the offset
        second = await say(control, 3)
        await has(postgres_url, first + second)
    assert not queue_of(telegram).pending


async def test_what_cannot_be_read_is_set_aside_and_the_others_are_stored(
    postgres_url: str, telegram: pillarbox_simulator.Running, control: SimulatorClient
) -> None:
    ids = await say(control, 6)
    queue = queue_of(telegram)
    deep = b'{"update_id":%d,"message":{"chat":{"id":42},"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}}"
    bodies = {
        1: b'{"update_id":%d,"message":7}',
        2: b'{"update_id":%d,"message":{"chat":{"id":1},"text":"\\ud800 \\u0000"}}',
        3: deep,
        4: b'{"update_id":%d,"message":{"chat":{"id":99999999999999999999}}}',
    }
    for pending in queue.pending.values():
        made = bodies.get(ids.index(pending.update_id))
        pending.body = made % pending.update_id if made else pending.body
    async with polling(postgres_url, telegram):
        good = [ids[0], ids[2], ids[3], ids[5]]
        await has(postgres_url, good)
        assert await stored(postgres_url) == good
    assert not queue.pending
    aside = query(postgres_url, "SELECT body FROM malformed ORDER BY 1")
    assert sorted(json.loads(bytes(body))["update_id"] for (body,) in aside) == [ids[1], ids[4]]


async def test_a_webhook_that_is_set_is_explained_and_left_alone(
    postgres_url: str,
    telegram: pillarbox_simulator.Running,
    control: SimulatorClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await call(telegram, "setWebhook", url="http://127.0.0.1:9/theirs")
    async with polling(postgres_url, telegram, bot_tokens=TOKEN) as ingest:

        async def unready() -> bool:
            return dict(await ingest.failing()).get("polling") == "NothingComes"

        await until(unready)
        assert (await call(telegram, "getWebhookInfo"))["result"]["url"] == "http://127.0.0.1:9/theirs"
        await call(telegram, "deleteWebhook")
        ids = await say(control, 1)
        await has(postgres_url, ids)
        assert await ingest.failing() == {}
    lines = [line for line in capsys.readouterr().out.splitlines() if "no updates come" in line]
    assert len(lines) == 1
    assert "RECEIVE=webhook" in lines[0]
    assert "DELETE_WEBHOOK=true" in lines[0]


async def test_a_webhook_is_taken_away_where_the_setting_says_so(
    postgres_url: str, telegram: pillarbox_simulator.Running, control: SimulatorClient
) -> None:
    await call(telegram, "setWebhook", url="http://127.0.0.1:9/ours")
    async with polling(postgres_url, telegram, bot_tokens=TOKEN, delete_webhook=True):
        await has(postgres_url, await say(control, 1))


async def test_a_foreign_poller_is_explained_once(
    postgres_url: str,
    telegram: pillarbox_simulator.Running,
    control: SimulatorClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with polling(postgres_url, telegram, bot_tokens=TOKEN) as ingest:
        await until(lambda: waits(telegram))
        before = await metric(ingest.port, f'pillarbox_polls_total{{bot="{BOT_ID}",outcome="conflict"}}')
        for _ in range(2):
            await call(telegram, "getUpdates", timeout=0)
            assert not await waits(telegram)
            await until(lambda: waits(telegram))
        conflicts = await metric(ingest.port, f'pillarbox_polls_total{{bot="{BOT_ID}",outcome="conflict"}}')
        assert conflicts - before == 2
        await has(postgres_url, await say(control, 1))
    lines = [line for line in capsys.readouterr().out.splitlines() if "no updates come" in line]
    assert len(lines) == 1
    assert "stop that program" in lines[0]


async def test_a_bot_that_is_gone_does_not_stop_the_others(
    postgres_url: str, telegram: pillarbox_simulator.Running, control: SimulatorClient
) -> None:
    await control.faults([{"kind": "401", "bot_id": OTHER_BOT, "method": "getUpdates"}])
    async with polling(postgres_url, telegram) as ingest:
        await has(postgres_url, await say(control, 1))

        async def stopped() -> bool:
            return bool(await asked(control, OTHER_BOT)) and not await asks(ingest.port, OTHER_BOT)

        await until(stopped)
        assert await ingest.failing() == {}
        assert len(await asked(control, OTHER_BOT)) == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "429", "retry_after": 1},
        {"kind": "500"},
        {"kind": "502"},
        {"kind": "reset_before"},
        {"kind": "reset_after"},
    ],
)
async def test_what_passes_is_tried_again(
    postgres_url: str,
    telegram: pillarbox_simulator.Running,
    control: SimulatorClient,
    fault: dict[str, Any],
) -> None:
    await control.faults([{"method": "getUpdates", "bot_id": BOT_ID, "times": 1, **fault}])
    ids = await say(control, 120)
    async with polling(postgres_url, telegram, bot_tokens=TOKEN):
        await has(postgres_url, ids)
        assert await stored(postgres_url) == ids
    if "retry_after" in fault:
        at = [call["at"] for call in await control.ledger(bot_id=BOT_ID, method="getUpdates")]
        assert at[1] - at[0] >= 1


async def test_an_outage_of_the_store_stops_the_asking_and_not_the_process(
    tmp_path: Path,
    telegram: pillarbox_simulator.Running,
    control: SimulatorClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = PostgresServer(tmp_path / "postgres", programs=postgres_programs())
    with running_server(server):
        make_template(server)
        url = server.database(TEMPLATE)
        async with polling(url, telegram, bot_tokens=TOKEN) as ingest:
            first = await say(control, 1)
            await has(url, first)
            await asyncio.to_thread(server.kill)
            await until(lambda: _not(asks(ingest.port)))
            ids = await say(control, 150)
            count = len(await asked(control))
            await asyncio.sleep(2)
            assert len(await asked(control)) == count
            assert "database" in await ingest.failing()
            await asyncio.to_thread(server.start)
            await has(url, first + ids)
            assert await stored(url) == first + ids
            assert await ingest.failing() == {}
    assert capsys.readouterr().out.count("not asking: the database is away") == 1
    assert not queue_of(telegram).pending


async def _not(answer: Awaitable[bool]) -> bool:
    return not await answer


async def test_a_registration_leaves_a_polled_bot_alone(
    postgres_url: str, telegram: pillarbox_simulator.Running, control: SimulatorClient
) -> None:
    webhook: Any = {
        "webhook_url": "http://127.0.0.1:9",
        "telegram_api_base": telegram.url,
        "bot_tokens": TOKEN,
    }
    async with polling(postgres_url, telegram, bot_tokens=TOKEN) as poller:
        await until(lambda: asks(poller.port))
        async with running(postgres_url, **webhook):
            await asyncio.sleep(1.5)
            assert (await call(telegram, "getWebhookInfo"))["result"]["url"] == ""
            poller.stop.set()

            async def registered() -> bool:
                return bool((await call(telegram, "getWebhookInfo"))["result"]["url"])

            await until(registered)
