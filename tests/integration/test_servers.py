"""The fixtures that the other tests stand on."""

import psycopg
import redis


def test_a_test_has_a_database_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE mine (i int)")
        assert connection.execute("SHOW fsync").fetchone() == ("on",)


def test_no_other_test_is_seen(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT to_regclass('mine')").fetchone()
    assert found == (None,)


def test_valkey_keeps_what_it_confirmed(valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url) as client:
        assert client.config_get("append*")["appendfsync"] == "always"
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        client.set("mine", 1)


def test_valkey_is_empty(valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url) as client:
        assert client.dbsize() == 0
