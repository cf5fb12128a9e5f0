"""Every example of docs/python-api.md is run, against what it names: admin, PostgreSQL, a bot's file."""

import ast
import asyncio
import inspect
import re
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pillarbox.cli import app
from pillarbox.ids import BotId
from pillarbox.inbox import Storage
from pillarbox.inbox.sqlite import SQLiteStorage
from tests.support.admin import TOKENS, Admin, running_admin
from tests.support.inbox import incoming, opened
from tests.support.updates import message

PAGE = (Path(__file__).parents[2] / "docs/python-api.md").read_text(encoding="utf-8")
BOT = BotId(123456)
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
COMMANDS = re.findall(r"^\$ pillarbox (.*)$", PAGE, re.M)

DID: list[list[str]] = [
    ["retry"] * 3,
    ["retry"] * 3,
    ["discard"],
    ["retry"] * 2,
    ["trust", "forget"],
    ["retry"] * 3,
]
"""What the audit says of each example, in the page's order."""


@dataclass
class World:
    """The same three failed updates of 123456 in all three; `audit` is of the one that an example names."""

    admin: Admin
    postgres_url: str
    file: Path
    postgres: Storage
    sqlite: Storage

    def placed(self, example: str) -> str:
        for named, real in (
            ("http://admin:8083", self.admin.url),
            ("postgresql://pillarbox:secret@postgres/pillarbox", self.postgres_url),
            ("bot.db", str(self.file)),
        ):
            example = example.replace(named, real)
        return example

    def storage(self, example: str) -> Storage:
        return self.sqlite if "bot.db" in example else self.postgres


@pytest.fixture
async def world(postgres_url: str, valkey_url: str, tmp_path: Path) -> AsyncIterator[World]:
    sqlite = SQLiteStorage(tmp_path / "bot.db")
    await sqlite.open()
    async with opened(postgres_url) as postgres, running_admin(postgres_url, valkey_url) as admin:
        for storage in (postgres, sqlite):
            await storage.lock([BOT])
            await _failed(storage)
        yield World(admin, postgres_url, tmp_path / "bot.db", postgres, sqlite)
    await sqlite.close()


async def _failed(storage: Storage) -> None:
    for number, error in (
        (1201, "KeyError: 'city' at bot.py:31"),
        (1202, "KeyError: 'a' at bot.py:7"),
        (1203, "E"),
    ):
        body = message(number, 42, "what is the weather?")
        await storage.accept([incoming(number, lane="chat:42", body=body, bot_id=BOT)])
        (lease,) = await storage.claim(1)
        await storage.fail(lease.token, error)


def test_every_example_is_here() -> None:
    assert len(EXAMPLES) == len(DID)


@pytest.mark.parametrize("number", range(len(DID)))
async def test_an_example_runs(world: World, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", TOKENS["master"][1])
    example = EXAMPLES[number]
    names: dict[str, Any] = {}
    code = compile(world.placed(example), "docs/python-api.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if "SyncClient" in example:
        await asyncio.to_thread(exec, code, names)
    else:
        waiting = eval(code, names)  # noqa: S307 - our own page
        assert inspect.isawaitable(waiting)
        await waiting
    did = [noted.action for noted in await world.storage(example).audit(BOT)]
    assert did[::-1] == DID[number]


async def test_the_commands_run(world: World) -> None:
    """In the page's order, on one file."""
    said = []
    for command in COMMANDS:
        words = shlex.split(world.placed(command))
        result = await asyncio.to_thread(CliRunner().invoke, app, words)
        assert result.exit_code == 0, (command, result.output)
        said.append(result.stdout)
    assert [line.split()[0] for line in said[0].splitlines()] == ["UPDATE", "1202", "1201"]
    assert '"what is the weather?"' in said[1]
    assert said[2] == "2 waiting again\n"
    assert said[3] == '{"moved": 1, "unknown": [], "running": []}\n'
    assert said[4].startswith("3F1A9C0D52E7B8A46C110D93E2F47A559B10C6D2  pinned at ")
    assert said[5] == said[6] == said[4]
    assert len(COMMANDS) == 7
