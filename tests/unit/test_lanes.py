"""The lane of every kind of update: the page, the code and the Bot API agree; LANE_BY=chat_user."""

import json

import pytest
from aiogram.types import Update

from pillarbox.ids import BotId
from pillarbox_ingest import parsing
from pillarbox_ingest.lanes import KINDS, LaneBy, place
from pillarbox_ingest.parsing import parse
from tests.support.lanes_table import PAGE, in_page, table

BOT = BotId(7)


def test_the_page_has_the_table_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert in_page(page) == table(), "run: python -m tests.support.lanes_table"


def test_every_kind_of_the_bot_api_is_in_the_table() -> None:
    kinds = set(Update.model_fields) - {"update_id"}
    assert kinds == set(KINDS)
    assert all(f"| `{kind}` |" in table() for kind in kinds)
    assert "| a kind that is newer | `chat`, else `message.chat` | `from`, else `user` |" in table()


def lane_of(kind: str, event: object, lane_by: LaneBy) -> str:
    body = json.dumps({"update_id": 17, kind: event}).encode()
    return parse(BOT, body, lane_by).lane


GROUP, PRIVATE, PERSON = {"id": -100, "type": "supergroup"}, {"id": 42, "type": "private"}, {"id": 7}
CASES = [
    ("message", {"chat": GROUP, "from": PERSON}, "chat:-100:user:7"),
    ("message", {"chat": PRIVATE, "from": {"id": 42}}, "chat:42"),
    ("channel_post", {"chat": GROUP}, "chat:-100"),
    ("callback_query", {"from": PERSON, "message": {"chat": GROUP}}, "chat:-100:user:7"),
    ("callback_query", {"from": PERSON, "inline_message_id": "x"}, "user:7"),
    ("message_reaction", {"chat": GROUP, "user": PERSON}, "chat:-100:user:7"),
    ("message_reaction", {"chat": GROUP, "actor_chat": GROUP}, "chat:-100"),
    ("message_reaction_count", {"chat": GROUP}, "chat:-100"),
    ("inline_query", {"from": PERSON}, "user:7"),
    ("poll", {"id": "5"}, "update:17"),
    ("something_new", {"chat": GROUP, "user": PERSON}, "chat:-100:user:7"),
]


@pytest.mark.parametrize(("kind", "event", "lane"), CASES)
def test_a_person_of_a_group_has_a_lane(kind: str, event: object, lane: str) -> None:
    assert lane_of(kind, event, "chat_user") == lane
    assert lane_of(kind, event, "chat") == lane.partition(":user:")[0]


@pytest.mark.parametrize(("kind", "event", "lane"), CASES)
def test_all_readers_agree(kind: str, event: object, lane: str) -> None:
    body = json.dumps({"update_id": 17, kind: event}).encode()
    for reader in (parsing._tolerant, parsing._scanned):
        update_id, found, ids = reader(body)
        assert place(found, update_id, ids, "chat_user").lane == lane
