"""From an answer of getUpdates to its bodies, and into a storage that forgets."""

from collections.abc import Sequence

import pytest

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox import Accepted, Incoming, Malformed
from pillarbox_ingest.intake import OneByOne
from pillarbox_ingest.parsing import date_of, parse, update_id_of
from pillarbox_ingest.polled import bodies_of

BOT = BotId(7)
DEEP = b'{"update_id":5,"message":{"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}}"
PLAIN = b'{"update_id":4, "message":{"chat":{"id":1},"text":"a \\"]}, b"}}'


@pytest.mark.parametrize(
    "bodies",
    [
        [],
        [PLAIN],
        [PLAIN, b"7", b'"x"', b"null", PLAIN],
        [PLAIN, DEEP, PLAIN],
        [DEEP],
        [b'{"update_id":6,"message":{"text":"\\ud800"}}', DEEP],
        [b'{"update_id":6,"message":{"text":"\xff"}}', PLAIN],
    ],
)
@pytest.mark.parametrize("between", [b",", b" ,\n "])
def test_bodies_come_out_byte_for_byte(bodies: Sequence[bytes], between: bytes) -> None:
    answer = b'{"ok":true,"note":"result","result":[' + between.join(bodies) + b'],"more":[1]}'
    assert bodies_of(answer) == list(bodies)


@pytest.mark.parametrize("answer", [b"", b"<html>", b'{"ok":true}', b'{"ok":true,"result":[1,'])
def test_no_list_is_no_answer(answer: bytes) -> None:
    with pytest.raises(ValueError, match="no list of updates"):
        bodies_of(answer)


@pytest.mark.parametrize(
    ("body", "update_id"),
    [
        (PLAIN, 4),
        (DEEP, 5),
        (b'{"message":{},"update_id":6}', 6),
        (b'{"message":{"update_id":6}}', None),
        (b'{"update_id":-3}', -3),
        (b'{"update_id":"3"}', None),
        (b"7", None),
    ],
)
def test_the_id_is_read_also_of_what_is_no_update(body: bytes, update_id: int | None) -> None:
    assert update_id_of(body) == update_id


def test_the_date_is_that_of_the_event() -> None:
    assert date_of(b'{"update_id":1,"message":{"date":1764000000}}') == 1764000000
    assert date_of(b'{"update_id":1,"inline_query":{"id":"5"}}') is None
    assert date_of(b"no") is None


class Handlers:
    """Fails to end within a webhook's patience, `times` times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.put_ids: list[int] = []
        self.kept: list[Malformed] = []

    async def put(self, update: Incoming) -> Accepted:
        self.put_ids.append(update.update_id)
        if self.times:
            self.times -= 1
            raise StorageUnavailable("its handlers have not ended yet")
        return Accepted.NEW

    async def keep(self, malformed: Malformed) -> None:
        self.kept.append(malformed)


async def test_a_storage_that_forgets_is_given_one_and_waited_for() -> None:
    handlers = Handlers(2)
    intake = OneByOne(handlers.put, handlers.keep, parse, lambda: False)
    assert intake.limit == 1
    await intake.take(BOT, [PLAIN])
    assert handlers.put_ids == [4, 4, 4]
    await intake.take(BOT, [b'{"update_id":9}'])
    assert [malformed.reason for malformed in handlers.kept] == ["the event is missing"]


async def test_at_the_stop_what_has_not_ended_is_not_confirmed() -> None:
    handlers = Handlers(1)
    intake = OneByOne(handlers.put, handlers.keep, parse, lambda: True)
    with pytest.raises(StorageUnavailable):
        await intake.take(BOT, [PLAIN])
