"""A database full of updates, written in seconds."""

import psycopg

from tests.support.inbox import BOT

UPDATES = """
INSERT INTO updates (bot_id, lane, update_id, kind, chat_id, user_id, body)
SELECT %(bot)s::bigint, 'chat:' || (%(first)s + n %% %(lanes)s), n, 'message', %(first)s + n %% %(lanes)s, 9,
       convert_to('{"update_id":' || n || ',"message":{"text":"' || repeat('x', 260) || '"}}', 'UTF8')
FROM generate_series(%(start)s::bigint, %(start)s::bigint + %(count)s - 1) AS n
"""
LANES = """
INSERT INTO lanes (bot_id, lane, pending)
SELECT %(bot)s::bigint, 'chat:' || (%(first)s + n), (%(count)s + %(lanes)s - 1 - n) / %(lanes)s
FROM generate_series(0, %(lanes)s - 1) AS n
"""
SEEN = """
INSERT INTO seen (bot_id, update_id, accepted_at, digest)
SELECT %(bot)s::bigint, n, clock_timestamp() - make_interval(hours => %(hours)s),
       decode(lpad(to_hex(n), 32, '0'), 'hex')
FROM generate_series(%(start)s::bigint, %(start)s::bigint + %(count)s - 1) AS n
"""


def pile(url: str, count: int, lanes: int, *, first: int = 1, start: int = 0) -> None:
    """`count` updates evenly in chats from `first` on; ids from `start` on, which is divisible by `lanes`."""
    with psycopg.connect(url, autocommit=True) as connection:
        given = {"bot": BOT, "count": count, "lanes": lanes, "first": first, "start": start}
        connection.execute(UPDATES, given)
        connection.execute(LANES, given)


def remember(url: str, count: int, *, hours: int = 0, start: int = 0) -> None:
    """`count` rows of `seen`, accepted so long ago."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SEEN, {"bot": BOT, "count": count, "hours": hours, "start": start})


def settle(url: str) -> None:
    """As autovacuum leaves it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
