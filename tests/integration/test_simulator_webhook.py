import asyncio
import time
from typing import Any

import aiohttp
import pytest

from pillarbox_simulator import Running
from tests.support.simulator import BOT_ID, TOKEN, Webhook
from tests.support.simulator_client import SimulatorClient


@pytest.fixture
def bot(simulator: Running, http: aiohttp.ClientSession) -> Any:
    async def call(method: str, **params: Any) -> Any:
        async with http.post(f"{simulator.url}/bot{TOKEN}/{method}", json=params) as answer:
            return (await answer.json())["result"]

    return call


async def say(control: SimulatorClient, *said: tuple[int, str]) -> None:
    await control.say([{"bot_id": BOT_ID, "chat_id": chat, "text": text} for chat, text in said])


async def delivered(bot: Any, within: float = 5.0) -> dict[str, Any]:
    """Until nothing is pending; gives getWebhookInfo."""
    until = time.monotonic() + within
    while (info := await bot("getWebhookInfo"))["pending_update_count"]:
        assert time.monotonic() < until, info
        await asyncio.sleep(0.02)
    return dict(info)


def texts(webhook: Webhook) -> list[str]:
    return [str(update["message"]["text"]) for update in webhook.got]  # type: ignore[index]


async def test_updates_go_out_with_the_secret_in_the_order_of_their_chat(
    control: SimulatorClient, webhook: Webhook, bot: Any
) -> None:
    await say(control, (1, "before"))
    await bot("setWebhook", url=webhook.url, secret_token="hush", max_connections=10)
    await say(control, *((n % 5 + 1, f"{n}") for n in range(100)))
    info = await delivered(bot)
    for chat in range(1, 6):
        assert [int(t) for t in texts(webhook)[1:] if int(t) % 5 + 1 == chat] == list(range(chat - 1, 100, 5))
    assert texts(webhook)[0] == "before"
    assert set(webhook.secrets) == {"hush"}
    assert (info["url"], info["max_connections"]) == (webhook.url, 10)
    assert "last_error_date" not in info


async def test_a_refused_update_comes_again_and_holds_only_its_chat(
    control: SimulatorClient, webhook: Webhook, bot: Any
) -> None:
    await control.clock(1000)
    webhook.statuses = [503, 500, 302]
    await bot("setWebhook", url=webhook.url)
    await say(control, (1, "first"), (1, "second"))
    info = await delivered(bot)
    assert texts(webhook) == ["first"] * 4 + ["second"]
    assert len({update["update_id"] for update in webhook.got}) == 2
    assert info["last_error_message"].startswith("Wrong response from the webhook: 302")
    webhook.got, webhook.statuses, webhook.only = [], [503] * 6, "held"
    await say(control, (1, "held"), (1, "behind"), (2, "free"))
    await delivered(bot)
    assert sorted(texts(webhook)) == ["behind", "free", *["held"] * 7]
    assert texts(webhook).index("free") < 3
    assert texts(webhook)[-1] == "behind"


async def test_retry_after_is_honoured_on_the_scaled_clock(
    control: SimulatorClient, webhook: Webhook, bot: Any
) -> None:
    await control.clock(100)
    webhook.statuses, webhook.headers = [503], {"Retry-After": "40"}
    await bot("setWebhook", url=webhook.url)
    started = time.monotonic()
    await say(control, (1, "x"))
    await delivered(bot)
    assert 0.4 <= time.monotonic() - started < 2


async def test_what_is_too_old_is_given_up(
    simulator: Running, http: aiohttp.ClientSession, control: SimulatorClient, webhook: Webhook, bot: Any
) -> None:
    await control.clock(1000)
    sent = await bot("sendMessage", chat_id=1, text="press")
    press = {"bot_id": BOT_ID, "chat_id": 1, "message_id": sent["message_id"], "data": "d"}
    async with http.post(f"{simulator.url}/_ctl/callbacks", json=press) as answer:
        assert answer.status == 200
    webhook.statuses = [500] * 100
    await bot("setWebhook", url=webhook.url)
    await delivered(bot)
    assert 5 <= len(webhook.got) <= 9  # 0, 2, 4, 8, 16, 32, 64 s: the next is beyond 150 s


async def test_a_webhook_that_is_away_or_silent_is_named(
    simulator: Running, control: SimulatorClient, webhook: Webhook, bot: Any
) -> None:
    await bot("setWebhook", url="http://127.0.0.1:9/x")
    await say(control, (1, "x"))
    for _ in range(100):
        info = await bot("getWebhookInfo")
        if "last_error_message" in info:
            break
        await asyncio.sleep(0.02)
    assert (info["last_error_message"], info["pending_update_count"]) == ("Connection refused", 1)
    await bot("setWebhook", url=webhook.url)
    await delivered(bot)
    assert texts(webhook) == ["x"]


async def test_a_method_in_the_answer_is_carried_out(
    control: SimulatorClient, webhook: Webhook, bot: Any
) -> None:
    webhook.reply = b'{"method":"sendMessage","chat_id":1,"text":"by reply"}'
    await bot("setWebhook", url=webhook.url)
    await say(control, (1, "x"))
    await delivered(bot)
    (entry,) = await control.ledger(method="sendMessage")
    assert (entry["params"]["text"], entry["via"]) == ("by reply", "webhook")


async def test_deletewebhook_hands_over_to_getupdates(
    control: SimulatorClient, webhook: Webhook, bot: Any
) -> None:
    await bot("setWebhook", url=webhook.url)
    await bot("deleteWebhook")
    await say(control, (1, "x"))
    assert [update["message"]["text"] for update in await bot("getUpdates")] == ["x"]
    assert webhook.got == []


@pytest.mark.parametrize(
    ("params", "description"),
    [
        ({"url": "nonsense"}, "bad webhook: invalid URL"),
        ({"url": "http://x/", "secret_token": "ü"}, "secret token contains unallowed characters"),
        ({"url": "http://x/", "secret_token": "x" * 257}, "secret token is too long"),
    ],
)
async def test_a_wrong_registration_is_refused(
    simulator: Running, http: aiohttp.ClientSession, params: dict[str, str], description: str
) -> None:
    async with http.post(f"{simulator.url}/bot{TOKEN}/setWebhook", json=params) as answer:
        assert (await answer.json())["description"] == f"Bad Request: {description}"
