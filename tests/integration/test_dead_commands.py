"""`pillarbox dead` and `pillarbox cancel`, on a real Valkey."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner

from pillarbox.cli import app
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.lanes import Filing, Lanes
from tests.support.dying import BOT, OTHER, bury, queue_of, turn

QUEUE = "pillarbox:outbound"


def say(chat: Any, bot: Any = BOT, **more: Any) -> bytes:
    return encode(Envelope("sendMessage", {"chat_id": chat, "text": "s\x1b[31mecret"}, bot=bot, **more))


@pytest.fixture
async def url(valkey_url: str) -> str:
    """Two dead ones of one bot, one of another, and one that waits."""
    async with Redis.from_url(valkey_url) as redis:
        await bury(redis, [say(1, id="a"), say(2)], detail="400 no \x1b[31m", queue=QUEUE)
        await bury(redis, [say(3, OTHER)], reason="doubt", queue=QUEUE)
        await Lanes(redis, QUEUE).file([Filing(say(4, id="w"))])
    return valkey_url


def run(url: str, *words: str, code: int = 0, answer: str = "", **env: str) -> str:
    result = CliRunner().invoke(app, list(words), env={"REDIS_URL": url, **env}, input=answer)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert (result.exit_code, "Traceback" in result.output) == (code, False), result.output
    assert "\x1b" not in result.output
    return result.output


def test_list(url: str) -> None:
    output = run(url, "dead", "list")
    assert "secret" not in output
    assert [line.split()[0] for line in output.splitlines()] == ["NUMBER", "3", "2", "1"]
    lines = run(url, "dead", "list", "--bot", str(BOT), "--json").splitlines()
    assert [json.loads(line)["number"] for line in lines] == [2, 1]
    assert json.loads(lines[1])["last_error"] == "answered:400"
    assert run(url, "dead", "list", "--id", "a", "--method", "sendmessage", "--chat", "1").count("\n") == 2


def test_show(url: str) -> None:
    output = run(url, "dead", "show", "1")
    assert "reason       refused" in output
    assert '"chat_id": 1' in output
    assert json.loads(json.loads(run(url, "dead", "show", "1", "--json"))["element"])["id"] == "a"
    assert "9 is not in the list" in run(url, "dead", "show", "9", code=1)


def test_retry_and_discard(url: str) -> None:
    assert run(url, "dead", "retry", "1", "9") == "1 waiting again\nnot in the list: 9\n"
    assert json.loads(run(url, "dead", "discard", "--reason", "doubt", "--yes", "--json"))["moved"] == 1
    run(url, "dead", "discard", "--all", code=1, answer="n\n")
    assert run(url, "dead", "discard", "--all", answer="y\n").endswith("1 discarded\n")


@pytest.mark.parametrize("words", [["retry"], ["retry", "1", "--all"], ["retry", "1", "--reason", "x"]])
def test_one_choice(url: str, words: list[str]) -> None:
    assert "give numbers, or a filter" in run(url, "dead", *words, code=2)


async def test_edit(url: str) -> None:
    changes = '{"params": {"chat_id": 5}}'
    assert "waiting again" in await asyncio.to_thread(run, url, "dead", "edit", "1", changes)
    async with Redis.from_url(url) as redis:
        (element,) = await queue_of(redis, 5, QUEUE)
    assert json.loads(element)["params"] == {"chat_id": 5}


def test_edits_that_are_refused(url: str) -> None:
    assert "a JSON object" in run(url, "dead", "edit", "1", "[]", code=2)
    assert "method_refused" in run(url, "dead", "edit", "1", '{"method": "close"}', code=1)
    assert "9 is not in the list" in run(url, "dead", "edit", "9", "{}", code=1)


async def test_cancel(url: str) -> None:
    bot = ("--bot", str(BOT))
    assert "cancelled" in await asyncio.to_thread(run, url, "cancel", "w", *bot)
    for id, said in (("w", "too late: it was sent"), ("x", "no message with this id")):
        assert said in await asyncio.to_thread(partial(run, url, "cancel", id, *bot, code=1))
    async with Redis.from_url(url) as redis:
        await Lanes(redis, QUEUE).file([Filing(say(4, id="v"))])
        await turn(redis, queue=QUEUE)
    assert "its send is out" in await asyncio.to_thread(
        lambda: run(url, "cancel", "v", code=1, BOT_TOKENS=f"{BOT}:token")
    )


def test_without_a_queue(url: str, tmp_path: Path) -> None:
    assert "REDIS_URL is not set" in run("", "dead", "list", code=2)
    assert "Redis: " in run("redis://127.0.0.1:1/0", "cancel", "a", "--bot", "7", code=1)
    env = tmp_path / "env"
    env.write_text(f"REDIS_URL={url}\n")
    assert run("", "dead", "list", "--env", str(env)).count("\n") == 4
