"""What an update costs when very many wait, when one chat owns most of them, and beside an old transaction.

CPU microseconds of application and PostgreSQL an update, each shape beside its yardstick in the same round.
A lone lane is one commit an update: `lone_of_commits` is its rate beside bare commits, one after the other.
"""

import argparse
import gc
import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import uvloop

from pillarbox import db
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from pillarbox_solo.postgres import PostgresServer
from tests.bench.engine import Figure, Meter, database, handle_all
from tests.support.backlog import pile, settle
from tests.support.inbox import query
from tests.support.servers import running

HANDLED, SMALL, LARGE, HOT = 8000, 10_000, 1_000_000, 900_000
HELD = 20_000
BUFFERS = "256MB"
BAR_DEEP, BAR_HELD, BAR_LONE = 1.2, 2.0, 500.0
HOT_CHAT = 1_000_001


async def handled(server: PostgresServer, url: str, count: int) -> Figure:
    storage = PostgresStorage(load(InboxSettings, database_url=url))
    await storage.open()
    query(url, "CHECKPOINT")  # each begins with the same debt: the first write to a page writes all of it
    meter = Meter(server)
    await handle_all(storage, count, 64)
    found = meter.figure(count)
    await storage.close()
    return found


@contextmanager
def snapshot_held(url: str) -> Iterator[None]:
    """As pg_dump, or a page that forgot to commit: nothing that dies from now on is cleaned away."""
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM bots")
        yield


def bare_commits(server: PostgresServer, url: str, count: int = 500) -> Figure:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (n bigint)")
        meter = Meter(server)
        for n in range(count):
            connection.execute("INSERT INTO bare VALUES (%s)", [n], prepare=True)
        return meter.figure(count)


def piled(server: PostgresServer, url: str, count: int, lanes: int, *, held: bool = False) -> Figure:
    db.migrate(url)
    pile(url, count, lanes)
    settle(url)
    if not held:
        return uvloop.run(handled(server, url, min(count, HANDLED)))
    with snapshot_held(url):
        return uvloop.run(handled(server, url, count))


def one_round(server: PostgresServer, large: str, hot: str, lone: str) -> dict[str, Figure]:
    found = {}
    with database(server) as url:
        found["small"] = piled(server, url, SMALL, SMALL // 10)
    found["large"] = uvloop.run(handled(server, large, HANDLED))
    found["hot"] = uvloop.run(handled(server, hot, HANDLED))
    found["lone"] = uvloop.run(handled(server, lone, HANDLED // 4))
    found["commits"] = bare_commits(server, lone)
    with database(server) as url:
        db.migrate(url)
        pile(url, HELD, HELD // 4)
        settle(url)
        found["free"] = uvloop.run(handled(server, url, HELD))
    with database(server) as url:
        found["held"] = piled(server, url, HELD, HELD // 4, held=True)
    print(
        ", ".join(
            f"{name} {one.app_us:.1f} + {one.postgres_us:.1f} us {one.rate:.0f}/s"
            for name, one in found.items()
        ),
        flush=True,
    )
    return found


def cost(one: Figure) -> float:
    return one.app_us + one.postgres_us


def summary(rounds: list[dict[str, Figure]]) -> dict[str, object]:
    out: dict[str, object] = {"bench": "backlog"}
    for name in rounds[0]:
        out[f"{name}_us"] = round(statistics.median(cost(one[name]) for one in rounds), 1)
        out[f"{name}_rate"] = round(statistics.median(one[name].rate for one in rounds))
    ratios = {
        name: statistics.median(cost(one[name]) / cost(one[beside]) for one in rounds)
        for name, beside in (("large", "small"), ("hot", "small"), ("held", "free"))
    }
    of_commits = statistics.median(one["lone"].rate / one["commits"].rate for one in rounds)
    slower = statistics.median(one["free"].rate / one["held"].rate for one in rounds)
    lone = statistics.median(one["lone"].rate for one in rounds)
    reached = (
        max(ratios["large"], ratios["hot"]) <= BAR_DEEP and ratios["held"] <= BAR_HELD and lone >= BAR_LONE
    )
    out |= {f"{name}_ratio": round(ratio, 2) for name, ratio in ratios.items()}
    out |= {"lone_of_commits": round(of_commits, 2), "held_slower": round(slower, 2)}
    out |= {"bar": BAR_DEEP, "bar_held": BAR_HELD, "bar_lone": BAR_LONE}
    return out | {"reached": reached}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round, and a tenth of the backlog")
    rounds, part = (1, 10) if parser.parse_args().short else (5, 1)
    gc.set_threshold(50_000)  # as the dispatcher does
    with (
        tempfile.TemporaryDirectory(prefix="pillarbox-bench-") as folder,
        running(PostgresServer(Path(folder) / "postgres")) as server,
    ):
        assert isinstance(server, PostgresServer)
        query(server.url, f"ALTER SYSTEM SET shared_buffers = '{BUFFERS}'")
        server.stop()
        server.start()
        with database(server) as large, database(server) as hot, database(server) as lone:
            for url in (large, hot, lone):
                db.migrate(url)
            pile(large, LARGE // part, LARGE // part // 10)
            pile(hot, HOT // part, 1, first=HOT_CHAT, start=LARGE)
            pile(hot, (LARGE - HOT) // part, (LARGE - HOT) // part // 10)
            pile(lone, HOT // part, 1, first=HOT_CHAT)
            for url in (large, hot, lone):
                settle(url)
            print(json.dumps(summary([one_round(server, large, hot, lone) for _ in range(rounds)])))


if __name__ == "__main__":
    main()
