"""The page in a browser: no script, and nothing that its policy would have to block."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.support.admin import BOT, TOKENS, fail, rows, running_admin

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM = "/usr/bin/chromium"


@pytest.mark.browser
async def test_signing_in_ticking_two_and_retrying_them(postgres_url: str, valkey_url: str) -> None:
    for update_id in (1, 2, 3):
        fail(postgres_url, update_id, minutes=update_id)
    async with running_admin(postgres_url, valkey_url) as admin, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = await browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
        page = await context.new_page()
        blocked: list[str] = []
        page.on("console", lambda said: blocked.append(said.text) if "Policy" in said.text else None)
        await page.goto(f"{admin.url}/bots/{BOT}")
        await page.fill("#token", TOKENS["operator"][1])
        await page.keyboard.press("Enter")
        await _tick_and_retry(page)
        await browser.close()
    assert rows(postgres_url, "SELECT update_id FROM updates ORDER BY 1") == [(1,), (3,)]
    assert blocked == []


async def _tick_and_retry(page: Page) -> None:
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Failed updates")
    await page.get_by_label("Choose update 1").check()
    await page.get_by_label("Choose update 3").check()
    assert "Retry chosen 2" in await _labels(page)
    await page.get_by_role("button", name="Retry chosen").click()
    await expect(page.get_by_role("status")).to_have_text("2 given back to the bot, to be handled again.")
    await expect(page.get_by_role("checkbox")).to_have_count(1)


async def _labels(page: Page) -> list[str]:
    """The texts of all buttons as the browser lays them out: the number is the style sheet's."""
    session = await page.context.new_cdp_session(page)
    nodes = {node["nodeId"]: node for node in (await session.send("Accessibility.getFullAXTree"))["nodes"]}
    buttons = [node for node in nodes.values() if node.get("role", {}).get("value") == "button"]
    return [" ".join(_texts(nodes, button)) for button in buttons]


def _texts(nodes: dict[str, Any], node: Any) -> Iterator[str]:
    if node.get("role", {}).get("value") == "StaticText":
        yield node["name"]["value"]
    else:
        for child in node["childIds"]:
            yield from _texts(nodes, nodes[child])
