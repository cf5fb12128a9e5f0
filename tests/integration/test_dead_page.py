"""The example and the commands of docs/dead-messages.md are run."""

import ast
import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner

from pillarbox.cli import app
from pillarbox.ids import BotId
from pillarbox.outbound.audit import audited
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox.outbound.scripts import Scripts
from tests.support.admin import TOKENS, running_admin

PAGE = (Path(__file__).parents[2] / "docs/dead-messages.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
COMMANDS = re.findall(r"^\$ pillarbox (.*)$", PAGE, re.M)
QUEUE = "pillarbox:outbound"
BOT = BotId(123456)
DEAD = b'{"method": "sendMessage", "params": {"chat_id": 42, "text": "hi"}, "colour": "red"}'


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator[Any]:
    """Three dead messages, and one that waits."""
    async with Redis.from_url(valkey_url) as redis:
        waits = b'{"method": "sendMessage", "params": {"chat_id": 42, "text": "hi"}, "id": "order:7"}'
        await Lanes(redis, QUEUE).file([*(Filing(DEAD, BOT) for _ in range(3)), Filing(waits, BOT)])
        yield redis


async def did(redis: Any) -> list[str]:
    return [row.action for row in await audited(Scripts(redis, QUEUE), 10)][::-1]


async def test_the_example(
    redis: Any, postgres_url: str, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = EXAMPLES
    monkeypatch.setenv("TOKEN", TOKENS["master"][1])
    async with running_admin(postgres_url, valkey_url) as admin:
        text = example.replace("http://admin:8083", admin.url).replace('"refused"', '"unknown_field"')
        edit = text.replace('"hi"}}', '"hi"}, "colour": None}')
        await eval(compile(edit, "docs", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})  # noqa: S307
    assert await did(redis) == ["edit", "discard", "discard", "cancel"]


async def test_the_commands(redis: Any, valkey_url: str) -> None:
    for command in COMMANDS:
        words = shlex.split(command.replace("refused", "unknown_field"))
        words = [word.replace('"hi"}}', '"hi"}, "colour": null}') for word in words]
        result = await asyncio.to_thread(CliRunner().invoke, app, words, env={"REDIS_URL": valkey_url})
        assert result.exit_code == 0, (command, result.output)
    assert await did(redis) == ["edit", "discard", "discard", "cancel"]
