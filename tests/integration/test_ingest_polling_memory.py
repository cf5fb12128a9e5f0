"""A storage that forgets, fed by getUpdates: Telegram is told of an update when its handlers have ended."""

import asyncio
from pathlib import Path

import aiohttp

from tests.support.polling import until
from tests.support.simulator_client import SimulatorClient
from tests.support.stack import BOT_ID, running


async def test_a_kill_during_a_handler_brings_its_update_again_and_no_earlier_one(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    settings = {
        "HANDLERS": "tests.support.run_bot",
        "RUN_NOTES": str(notes),
        "DATABASE_URL": "memory://",
        "RECEIVE": "polling",
    }

    async def noted(count: int) -> bool:
        return notes.exists() and len(notes.read_text().splitlines()) >= count

    with running(tmp_path, settings, store="sqlite") as stack:
        run = stack.services["run"]
        async with aiohttp.ClientSession() as session:
            simulator = SimulatorClient(stack.simulator.url, session)
            texts = ("one", "sleep 1.5", "three")
            await simulator.say([{"bot_id": BOT_ID, "chat_id": 42, "text": text} for text in texts])
            await until(lambda: noted(3), 60)
            run.kill()
            run.start()

            async def answered() -> bool:
                return [call["params"]["text"] for call in await simulator.effects()][-1:] == ["three"]

            await until(answered, 60)
            await asyncio.to_thread(run.stop)
    runs = [line.split(" ", 2) for line in notes.read_text().splitlines()]
    assert [(what, text) for what, _, text in runs] == [
        ("start", "one"),
        ("end", "one"),
        ("start", "sleep 1.5"),
        ("start", "sleep 1.5"),
        ("end", "sleep 1.5"),
        ("start", "three"),
        ("end", "three"),
    ]
