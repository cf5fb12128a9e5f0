"""`pillarbox failed` and `pillarbox pins`: what is refused, and how it is said."""

import json
import sqlite3
import sys
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from pillarbox.cli import app
from pillarbox.commands.telling import plain, told_how_far
from pillarbox.inbox.sqlite import SQLiteStorage
from tests.support.inbox import BOT, incoming

FILE = ["--database", "{file}", "--bot", str(BOT)]


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """One failed update, with an error that would command a terminal."""
    storage = SQLiteStorage(tmp_path / "bot.db")
    await storage.open()
    await storage.lock([BOT])
    await storage.accept([incoming(1, body=b'{"text": "\\u001b[2J\\ud800 \xd0\x94\xd0\xb0"}')])
    (lease,) = await storage.claim(1)
    await storage.fail(lease.token, "KeyError: \x1b[31m at bot.py:1")
    await storage.close()
    return tmp_path / "bot.db"


def run(file: Path, *words: str, env: dict[str, str] | None = None, answer: str = "") -> tuple[int, str]:
    given = [word.format(file=file) for word in words]
    result = CliRunner().invoke(app, given, env=env, input=answer)
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["failed", "list"], 2, "DATABASE_URL is not set"),
        (["failed", "list", "--database", "{file}"], 2, "BOT_TOKENS is not set"),
        (["failed", "list", "--database", "{file}.not", "--bot", "1"], 2, "there is no file"),
        (["failed", "list", "--database", "{file}", "--bot", "5"], 1, "nothing was ever stored of bot 5"),
        (["failed", "retry", *FILE], 2, "give update ids"),
        (["failed", "retry", "1", "--all", *FILE], 2, "give update ids"),
        (["failed", "retry", "1", "--error", "E", *FILE], 2, "give update ids"),
        (["failed", "retry", "--chat", str(1 << 70), *FILE], 2, "64 bits"),
        (["failed", "show", "7", *FILE], 1, "7 is not on the failed list"),
        (["pins", "get", "42", *FILE], 1, "no key is pinned"),
        (["pins", "forget", "42", *FILE], 1, "no key is pinned"),
        (["pins", "trust", "42", "abc", *FILE], 2, "40 or 64 hexadecimal digits"),
    ],
)
def test_refusals_are_a_line_and_a_code(file: Path, words: list[str], code: int, says: str) -> None:
    got, output = run(file, *words)
    assert (got, says in output) == (code, True), output


def test_settings_name_database_and_bot(file: Path) -> None:
    env = {"DATABASE_URL": f"sqlite:///{file}", "BOT_TOKENS": f"{BOT}:AAAAAAAAAAAAAAAAAAAA"}
    code, output = run(file, "failed", "list", "--json", env=env)
    assert code == 0
    assert json.loads(output)["update_id"] == 1
    two = env | {"BOT_TOKENS": env["BOT_TOKENS"] + ",7:AAAAAAAAAAAAAAAAAAAA"}
    assert run(file, "failed", "list", env=two)[0] == 2


def test_what_people_wrote_commands_no_terminal(file: Path) -> None:
    for words in (["failed", "list", *FILE], ["failed", "show", "1", *FILE]):
        code, output = run(file, *words)
        assert code == 0
        assert "\x1b" not in output
        assert "KeyError: \\x1b[31m at bot.py:1" in output
    assert "Да" in output
    assert plain("a\nb\u202e\ud800Да") == "a\\nb\\u202e\\ud800Да"


def test_a_list_shows_no_payload(file: Path) -> None:
    assert "Да" not in run(file, "failed", "list", *FILE)[1]
    assert "text" not in run(file, "failed", "list", "--json", *FILE)[1]


def test_how_far_it_is_is_told_to_people_and_to_nobody_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with told_how_far("discarded") as progress:
        progress(500)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with told_how_far("discarded") as progress:
        progress(500)
        progress(300)
    assert capsys.readouterr() == ("", "\r500 discarded …\r800 discarded …\r\x1b[K")


def test_discard_asks_first(file: Path) -> None:
    assert run(file, "failed", "discard", "--all", *FILE, answer="n\n")[0] == 1
    assert run(file, "failed", "discard", "1", "2", *FILE, answer="y\n")[1].endswith(
        "1 discarded\nnot on the failed list: 2\n"
    )
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT count(*) FROM failed").fetchone() == (0,)
    db.close()


def test_since_without_a_zone_is_utc(file: Path) -> None:
    assert run(file, "failed", "retry", "--since", "2100-01-01", *FILE) == (0, "0 waiting again\n")
    assert run(file, "failed", "retry", "--until", "2100-01-01", *FILE) == (0, "1 waiting again\n")


ELEMENT = '{"method": "sendMessage", "params": {"chat_id": 1001, "text": "hi"}}'


def test_push_files_one_element_at_the_door(valkey_url: str, tmp_path: Path) -> None:
    (tmp_path / "env").write_text(f"# as the demo's\nREDIS_URL={valkey_url}\n")
    for words, env in ((["--env", f"{tmp_path}/env"], {}), ([], {"REDIS_URL": valkey_url})):
        result = CliRunner().invoke(app, ["push", *words, ELEMENT], env=env)
        assert (result.exit_code, "at the door" in result.output) == (0, True), result.output
    with redis.Redis.from_url(valkey_url) as client:
        assert client.lrange("pillarbox:outbound", 0, -1) == [ELEMENT.encode()] * 2


@pytest.mark.parametrize(
    ("words", "env", "code", "says"),
    [
        ([ELEMENT], {}, 2, "REDIS_URL is not set"),
        (["--env", "/nowhere/env", ELEMENT], {}, 2, "/nowhere/env cannot be read"),
        (["{"], {"REDIS_URL": "redis://127.0.0.1:1"}, 1, "pillarbox: json"),
        ([ELEMENT], {"REDIS_URL": "redis://127.0.0.1:1"}, 1, "Redis: ConnectionError"),
    ],
)
def test_push_refuses_in_a_line(words: list[str], env: dict[str, str], code: int, says: str) -> None:
    result = CliRunner().invoke(app, ["push", *words], env=env)
    assert (result.exit_code, says in result.output) == (code, True), result.output
