"""The chat page in a browser, with a bot that is the test itself."""

import shutil
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Page, async_playwright, expect

from pillarbox_simulator import Running
from tests.support.simulator import TOKEN
from tests.support.simulator_client import SimulatorClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

CHROMIUM = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture
async def page(simulator: Running) -> AsyncIterator[Page]:
    """The page, which must log no error and break no rule of its own policy."""
    errors: list[str] = []
    chromium = shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        await page.goto(simulator.url)
        yield page
        await browser.close()
    assert errors == []


@pytest.fixture
def bot(simulator: Running, http: aiohttp.ClientSession) -> Any:
    async def bot(method: str, **params: Any) -> Any:
        async with http.post(f"{simulator.url}/bot{TOKEN}/{method}", json=params) as answer:
            return (await answer.json())["result"]

    return bot


async def write(page: Page, text: str) -> None:
    await page.get_by_label("Message", exact=True).fill(text)
    await page.get_by_role("button", name="Send", exact=True).click()


async def test_without_a_bot_the_page_says_what_to_do_and_notices_one(page: Page, bot: Any) -> None:
    await expect(page.get_by_text("TELEGRAM_API_BASE=http://127.0.0.1")).to_be_visible()
    await expect(page.get_by_label("Message", exact=True)).to_be_hidden()
    await bot("getMe")
    await expect(page.get_by_label("Message", exact=True)).to_be_visible()


async def test_a_person_writes_presses_and_sees_what_the_bot_does(page: Page, bot: Any) -> None:
    await bot("getMe")
    await write(page, "hello")
    await expect(page.locator('[data-from="user"]').last).to_contain_text("hello")
    (update,) = await bot("getUpdates", timeout=5)
    chat = update["message"]["chat"]["id"]
    keyboard = {"inline_keyboard": [[{"text": "Press me", "callback_data": "d"}]]}
    sent = await bot(
        "sendMessage", chat_id=chat, text="<b>bold</b> <x", parse_mode="HTML", reply_markup=keyboard
    )
    last = page.locator('[data-from="bot"]').last
    await expect(last.locator("strong")).to_have_text("bold")
    await page.get_by_role("button", name="Press me").click()
    (press,) = await bot("getUpdates", offset=update["update_id"] + 1, timeout=5)
    assert press["callback_query"]["data"] == "d"
    await bot("answerCallbackQuery", callback_query_id=press["callback_query"]["id"], text="Thanks")
    await expect(page.locator("#toast")).to_have_text("Thanks")
    place = {"chat_id": chat, "message_id": sent["message_id"]}
    await bot("editMessageText", **place, text="<i>changed</i>")
    await expect(last).to_contain_text("<i>changed</i>")
    await expect(page.get_by_role("button", name="Press me")).to_have_count(0)
    await bot("deleteMessage", **place)
    await expect(page.get_by_text("A message was deleted")).to_be_visible()
    await bot("sendMessage", chat_id=chat, text="?", reply_markup={"keyboard": [[{"text": "Yes"}]]})
    await page.get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator('[data-from="user"]').last).to_contain_text("Yes")
    await page.reload()
    await expect(page.locator('[data-from="user"]').first).to_contain_text("hello")


async def test_a_new_chat_has_its_name_and_id(page: Page, bot: Any) -> None:
    await bot("getMe")
    await page.get_by_text("New chat").click()
    await page.get_by_label("Name", exact=True).fill("Friends")
    await page.get_by_label("Chat id").fill("-77")
    await page.get_by_role("button", name="Open chat").click()
    await write(page, "all here?")
    (update,) = await bot("getUpdates", timeout=5)
    assert update["message"]["chat"] == {"id": -77, "title": "Friends", "type": "group"}
    await expect(page.locator("#chats [aria-current]")).to_contain_text("Friends")


async def test_a_switch_makes_telegram_answer_429(page: Page, bot: Any, control: SimulatorClient) -> None:
    await bot("getMe")
    await page.get_by_role("button", name="Faults").click()
    switch = page.get_by_role("switch", name="Telegram answers 429")
    await switch.check()
    await expect(page.get_by_text("1 on")).to_be_visible()
    with pytest.raises(KeyError):
        await bot("sendMessage", chat_id=1, text="x")
    await expect(page.locator("#calls li").first).to_contain_text("429")
    await page.get_by_role("button", name="Switch all off").click()
    await expect(switch).not_to_be_checked()
    assert (await bot("sendMessage", chat_id=1, text="x"))["text"] == "x"
