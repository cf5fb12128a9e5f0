"""Ingest tells Telegram where it is, once it can, for each bot that there is."""

import asyncio

import aiohttp
import psycopg
import pytest

import pillarbox_simulator
from pillarbox_solo.ports import free_port
from tests.support.inbox import query
from tests.support.ingest import BOT_ID, OTHER_BOT, TOKENS, running
from tests.support.simulator_client import SimulatorClient

BOTS = dict(zip((BOT_ID, OTHER_BOT), TOKENS.split(","), strict=True))


async def webhook_info(api: str, bot_id: int) -> dict[str, object]:
    async with aiohttp.request("GET", f"{api}/bot{BOTS[bot_id]}/getWebhookInfo") as answer:
        return dict((await answer.json())["result"])


async def registered(api: str, *bots: int) -> None:
    async with asyncio.timeout(30):
        for bot_id in bots:
            while not (await webhook_info(api, bot_id))["url"]:  # noqa: ASYNC110 - another server's time
                await asyncio.sleep(0.05)


async def test_each_bot_is_registered_and_what_comes_is_accepted(postgres_url: str) -> None:
    async with (
        pillarbox_simulator.running() as simulator,
        running(
            postgres_url,
            telegram_api_base=simulator.url,
            webhook_url="http://127.0.0.1:1/base/",
            allowed_updates="message,poll",
            webhook_max_connections=7,
        ),
    ):
        await registered(simulator.url, *BOTS)
        for bot_id in BOTS:
            info = await webhook_info(simulator.url, bot_id)
            assert info["url"] == f"http://127.0.0.1:1/base/webhook/{bot_id}"
            assert (info["max_connections"], info["allowed_updates"]) == (7, ["message", "poll"])


async def test_an_update_comes_all_the_way(postgres_url: str) -> None:
    port = free_port()
    async with (
        pillarbox_simulator.running() as simulator,
        aiohttp.ClientSession() as session,
        running(
            postgres_url, port=port, telegram_api_base=simulator.url, webhook_url=f"http://127.0.0.1:{port}"
        ),
    ):
        await registered(simulator.url, BOT_ID)
        control = SimulatorClient(simulator.url, session)
        await control.say([{"bot_id": BOT_ID, "chat_id": 5, "user_id": 5, "text": "hello"}])
        async with asyncio.timeout(20):
            while not query(postgres_url, "SELECT 1 FROM updates"):  # noqa: ASYNC110 - another server's time
                await asyncio.sleep(0.05)
        assert query(postgres_url, "SELECT bot_id, lane, kind FROM updates") == [
            (BOT_ID, "chat:5", "message")
        ]


async def test_the_bot_api_is_away_at_the_start(postgres_url: str) -> None:
    """Ready to receive all the same; registered when it is back."""
    port = free_port()
    api = f"http://127.0.0.1:{port}"
    async with running(postgres_url, telegram_api_base=api, webhook_url="https://bots.example.org") as ingest:
        await ingest.ready()
        await asyncio.sleep(0.5)
        async with pillarbox_simulator.running(port):
            await registered(api, *BOTS)


async def test_a_token_that_telegram_does_not_know_leaves_the_others_alone(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        pillarbox_simulator.running(tokens=[BOTS[BOT_ID]]) as simulator,
        running(
            postgres_url, telegram_api_base=simulator.url, webhook_url="https://bots.example.org"
        ) as ingest,
    ):
        await registered(simulator.url, BOT_ID)
        await ingest.ready()
        await asyncio.sleep(0.3)
    output = "".join(capsys.readouterr())
    assert output.count("Telegram knows no bot with this token") == 1
    assert not any(token.partition(":")[2] in output for token in BOTS.values())


async def test_one_process_registers_a_bot_at_a_time(postgres_url: str) -> None:
    async with pillarbox_simulator.running() as simulator:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [f"setWebhook:{BOT_ID}"])
            async with running(
                postgres_url, telegram_api_base=simulator.url, webhook_url="https://bots.example.org"
            ):
                await registered(simulator.url, OTHER_BOT)
                assert (await webhook_info(simulator.url, BOT_ID))["url"] == ""
                other.close()
                await registered(simulator.url, BOT_ID)
