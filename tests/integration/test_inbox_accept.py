"""DESIGN, Inbox 1 to 3: what accept takes, what it knows again, and what it keeps byte for byte."""

import pytest

from pillarbox.ids import BotId
from pillarbox.inbox import Accepted, Failed, Finished, Incoming, Malformed
from tests.support.inbox import BOT, incoming, numbers, opened, query

NEW, REPEAT, NEW_BODY, REFUSED = Accepted.NEW, Accepted.REPEAT, Accepted.NEW_BODY, Accepted.REFUSED


@pytest.mark.parametrize("state", ["pending", "claimed", "failed", "finished"])
async def test_a_repeat_is_known_in_every_state(postgres_url: str, state: str) -> None:
    async with opened(postgres_url) as inbox:
        assert await inbox.accept([incoming(1)]) == [NEW]
        leases = await inbox.claim(1) if state != "pending" else []
        if state == "failed":
            await inbox.fail(leases[0].token, "KeyError")
        elif state == "finished":
            await inbox.finish(leases[0].token)
        assert await inbox.accept([incoming(1)]) == [REPEAT]
        left = {"pending": 1, "claimed": 1, "failed": 0, "finished": 0}[state]
        assert query(postgres_url, "SELECT count(*) FROM updates") == [(left,)]
        assert query(postgres_url, "SELECT coalesce(sum(pending), 0) FROM lanes") == [(left,)]


async def test_one_id_with_another_body_is_a_new_update(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        assert await inbox.accept([incoming(1, body=b"a"), incoming(1, body=b"b")]) == [NEW, NEW_BODY]
        assert await inbox.accept([incoming(1, body=b"c"), incoming(1, body=b"a")]) == [NEW_BODY, REPEAT]
        other_bot = incoming(1, body=b"a", bot_id=BotId(5))
        assert await inbox.accept([other_bot]) == [NEW]
        assert query(postgres_url, "SELECT body FROM updates ORDER BY row_id") == [
            (b"a",),
            (b"b",),
            (b"c",),
            (b"a",),
        ]


async def test_a_batch_keeps_its_order_and_knows_its_own_repeats(postgres_url: str) -> None:
    """Ids fall: they are no order (Bot API, Update.update_id)."""
    async with opened(postgres_url) as inbox:
        batch = [incoming(9), incoming(3), incoming(9), incoming(1), incoming(3)]
        assert await inbox.accept(batch) == [NEW, NEW, REPEAT, NEW, REPEAT]
        assert await inbox.accept([incoming(2)]) == [NEW]
        order = []
        while leases := await inbox.claim(5):
            order += numbers(leases)
            await inbox.finish(leases[0].token)
        assert order == [9, 3, 1, 2]


@pytest.mark.parametrize(
    "body",
    [
        b'{"text":"\\u0000 \\ud800"}',
        b"\x00\xff\xfe not even text",
        b"",
        b'{"b":1,  "a":2}',
        b"x" * (1 << 20),
    ],
    ids=["escapes", "bytes", "empty", "order", "1 MiB"],
)
async def test_bodies_are_kept_byte_for_byte(postgres_url: str, body: bytes) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1, body=body), incoming(2, lane="chat:2", body=body)])
        assert [lease.body for lease in await inbox.claim(2)] == [body, body]
        assert await inbox.accept([incoming(1, body=body)]) == [REPEAT]


BAD = {
    "too large an id": incoming(1 << 63),
    "too large a chat": incoming(50, chat_id=1 << 70),
    "a zero in the kind": incoming(51, kind="a\0b"),
    "a zero in the lane": incoming(52, lane="x\0"),
    "a surrogate in the kind": incoming(53, kind="\ud800"),
    "too long a lane": incoming(54, lane="x" * 100_000 + "".join(map(chr, range(100, 9000)))),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_one_bad_update_never_harms_its_batch(postgres_url: str, bad: Incoming) -> None:
    async with opened(postgres_url) as inbox:
        batch = [incoming(1), incoming(2), bad, incoming(3), incoming(4, lane="chat:2")]
        assert await inbox.accept(batch) == [NEW, NEW, REFUSED, NEW, NEW]
        assert query(postgres_url, "SELECT update_id FROM updates ORDER BY row_id") == [
            (1,),
            (2,),
            (3,),
            (4,),
        ]
        assert query(postgres_url, "SELECT sum(pending) FROM lanes") == [(4,)]


async def test_an_empty_batch(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        assert await inbox.accept([]) == []


async def test_the_chat_and_the_user_42_are_two_lanes(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept(
            [incoming(1, lane="chat:42"), incoming(2, lane="user:42"), incoming(3, lane="chat:42")]
        )
        assert sorted(numbers(await inbox.claim(9))) == [1, 2]


async def test_repeats_are_forgotten_after_seen_for_but_not_what_still_lives(postgres_url: str) -> None:
    """More than one batch of the sweep, and the living ones are the oldest."""
    async with opened(postgres_url, seen_for=3600) as inbox:
        living = [incoming(1, lane="chat:1"), incoming(2, lane="chat:2"), incoming(3, lane="chat:3")]
        await inbox.accept(living)
        pending_and_failed = await inbox.claim(2)
        await inbox.turn([Failed(pending_and_failed[1].token, "KeyError")], 0)
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(100, 2600)])
        leases = await inbox.claim(3000)
        done = [lease for lease in leases if lease.update_id >= 100]
        await inbox.turn([Finished(lease.token) for lease in done], 0)
        query(postgres_url, "UPDATE seen SET accepted_at = accepted_at - interval '2 hours'")
        await inbox.accept([incoming(5000)])
        await inbox.sweep()
        kept = query(postgres_url, "SELECT update_id FROM seen ORDER BY update_id")
        assert kept == [(1,), (2,), (3,), (5000,)]
        assert await inbox.accept([*living, incoming(100)]) == [REPEAT, REPEAT, REPEAT, NEW]


async def test_malformed_bodies_keep_the_newest_and_count_the_rest(postgres_url: str) -> None:
    async with opened(postgres_url, max_malformed=3) as inbox:
        for number in range(5):
            await inbox.malformed(Malformed(BOT, "it is no JSON", b"%d" % number))
        await inbox.malformed(Malformed(BotId(5), "it is no JSON", b"other"))
        assert query(postgres_url, "SELECT body FROM malformed WHERE bot_id <> 5 ORDER BY id") == [
            (b"2",),
            (b"3",),
            (b"4",),
        ]
        assert query(postgres_url, "SELECT bot_id, malformed_trimmed FROM bots") == [(BOT, 2)]
