"""`pillarbox check` tells as Django's checks told: the id, the text, the hint; its code is by the worst."""

from collections.abc import Iterator

import pytest
import redis
from typer.testing import CliRunner

from pillarbox.cli import app

TOKEN = "7:AAAAAAAAAAAAAAAA"


@pytest.fixture
def environment(valkey_url: str) -> dict[str, str]:
    """Only what is required: everything else is at its default."""
    return {"REDIS_URL": valkey_url, "BOT_TOKENS": TOKEN}


@pytest.fixture
def careless(valkey_url: str) -> Iterator[None]:
    """A Redis that evicts, and keeps nothing on disk."""
    wanted = {"appendonly": "no", "appendfsync": "everysec", "maxmemory-policy": "allkeys-lru"}
    with redis.Redis.from_url(valkey_url, decode_responses=True) as client:
        before = {name: client.config_get(name)[name] for name in wanted}
        for name, value in wanted.items():
            client.config_set(name, value)
        yield
        for name, value in before.items():
            client.config_set(name, value)


def check(*arguments: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *arguments], env=environment)
    assert TOKEN not in result.output
    return result.exit_code, result.output


def test_the_defaults_give_no_warning(environment: dict[str, str]) -> None:
    assert check("sender", **environment) == (0, "sender: ok\n")
    assert check("sender", "--fail-level", "warning", **environment) == (0, "sender: ok\n")


def test_a_way_of_delivery_of_long_ago(environment: dict[str, str]) -> None:
    code, output = check("sender", DELIVERY="keyspace", **environment)
    assert code == 2
    assert output.splitlines() == [
        "",
        "ERRORS:",
        "sender: (pillarbox.E009) DELIVERY: the only way of delivery is `blpop`",
        "\tHINT: set it, for example DELIVERY=blpop",
    ]


@pytest.mark.parametrize(
    ("name", "value", "id"),
    [
        ("MAX_RETRIES", "0", "E012"),
        ("BLPOP_TIMEOUT", "0", "E014"),
        ("ALLOW_PICKLE", "perhaps", "E017"),
        ("DEFAULT_BOT_PROPERTIES", '{"parse": "HTML"}', "E018"),
        ("WORKER_NAME", "a b", "E021"),
        ("REDIS_TIMEOUT", "-1", "E030"),
        ("SEND_TIMEOUT", "70", "E100"),
        ("EXTRA_METHODS", "getMe", "E100"),
    ],
)
def test_a_wrong_setting_has_the_id_that_people_know(
    environment: dict[str, str], name: str, value: str, id: str
) -> None:
    code, output = check("sender", **environment, **{name: value})
    assert code == 2
    assert f"sender: (pillarbox.{id}) {name}" in output
    assert "HINT: " in output
    assert "WARNINGS" not in output


def test_all_that_is_wrong_is_told(environment: dict[str, str]) -> None:
    _, output = check("sender", DELIVERY="keyspace", MAX_RETRIES="0", ALLOW_PICKLE="x", **environment)
    assert all(id in output for id in ("(pillarbox.E009)", "(pillarbox.E012)", "(pillarbox.E017)"))


def test_a_pop_longer_than_its_deadline(environment: dict[str, str]) -> None:
    arguments = {"BLPOP_TIMEOUT": "20", **environment}
    code, output = check("sender", **arguments)
    assert code == 0
    assert output.splitlines() == [
        "sender: ok",
        "",
        "WARNINGS:",
        "sender: (pillarbox.W004) BLPOP_TIMEOUT is capped at 8 s, since REDIS_TIMEOUT is 10 s",
        "\tHINT: raise REDIS_TIMEOUT too, or set BLPOP_TIMEOUT lower",
    ]
    assert check("sender", "--fail-level", "warning", **arguments)[0] == 3
    assert check("sender", **arguments, REDIS_TIMEOUT="30") == (0, "sender: ok\n")


@pytest.mark.usefixtures("careless")
def test_a_redis_that_may_forget(environment: dict[str, str], postgres_url: str) -> None:
    database = {"DATABASE_URL": postgres_url, "ADMIN_TOKENS": "ops:read:0123456789abcdef"}
    code, output = check("sender", "admin", **environment, **database)
    assert code == 0
    for id, name in (
        ("W101", "appendonly no"),
        ("W102", "appendfsync everysec"),
        ("W103", "maxmemory-policy allkeys"),
    ):
        assert f"sender, admin: (pillarbox.{id}) Redis has {name}" in output
        assert output.count(id) == 1


def test_what_is_not_reached_is_passing(environment: dict[str, str]) -> None:
    code, output = check(
        "sender", **environment | {"REDIS_URL": "redis://127.0.0.1:1", "BLPOP_TIMEOUT": "20"}
    )
    assert code == 1
    assert "sender: (pillarbox.E101) Redis: ConnectionError" in output
    assert "(pillarbox.W004)" in output
