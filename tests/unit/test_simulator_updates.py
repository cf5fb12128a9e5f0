from typing import Any

import pytest

from pillarbox_simulator.changes import Changes
from pillarbox_simulator.clock import Clock
from pillarbox_simulator.updates import Key, UpdateQueue, key_of

CHAT = {"id": 42, "type": "private"}
USER = {"id": 7, "is_bot": False}


@pytest.mark.parametrize(
    ("update", "key"),
    [
        ({"message": {"chat": CHAT, "from": USER}}, ("chat", 42)),
        ({"edited_message": {"chat": CHAT, "from": USER}}, ("chat", 42)),
        ({"channel_post": {"chat": CHAT}}, ("chat", 42)),
        ({"my_chat_member": {"chat": CHAT, "from": USER}}, ("chat", 42)),
        ({"callback_query": {"from": USER, "message": {"chat": CHAT}}}, ("user", 7)),
        ({"pre_checkout_query": {"from": USER}}, ("user", 7)),
        ({"inline_query": {"from": USER}}, ("inline_query", 7)),
        ({"chat_join_request": {"chat": CHAT, "from": USER}}, ("member", 7)),
        ({"message_reaction": {"chat": CHAT, "user": USER}}, ("message_reaction", 42)),
        ({"business_message": {"chat": CHAT, "from": USER}}, ("business_message", 42)),
        ({"poll": {"id": "9"}}, ("poll", "9")),
        ({"poll_answer": {"poll_id": "9", "user": USER}}, ("poll", "9")),
        ({"not_known_yet": 1}, ("not_known_yet", 1)),
    ],
)
def test_the_queue_key_is_telegrams(update: dict[str, Any], key: Key) -> None:
    assert key_of({"update_id": 1} | update) == key


def queue(now: list[float] | None = None) -> UpdateQueue:
    times = now or [1000.0]
    return UpdateQueue(1, Clock(now=lambda: times[0]), Changes())


def test_ids_start_at_random_and_go_up_by_one() -> None:
    updates = queue()
    assert 2_000_001 <= updates.next_id <= 10**9
    first = updates.add({"message": {"chat": CHAT}})
    assert first is not None
    assert updates.add({"message": {"chat": CHAT}}) == first + 1


def test_a_given_id_is_used_also_twice() -> None:
    updates = queue()
    assert [updates.add({"message": {}}, 5), updates.add({"message": {}}, 5)] == [5, 5]
    assert len(updates.pending) == 2


def test_offsets_confirm_what_is_smaller_and_keep_the_last() -> None:
    updates = queue()
    first = updates.add({"message": {}})
    assert first is not None
    for _ in range(4):
        updates.add({"message": {}})
    updates.confirm(first + 2)
    assert [pending.update_id - first for pending in updates.pending.values()] == [2, 3, 4]
    updates.keep_last(1)
    assert [pending.update_id - first for pending in updates.pending.values()] == [4]


def test_a_button_press_lives_150_seconds_and_a_message_a_day() -> None:
    now = [1000.0]
    updates = queue(now)
    updates.add({"callback_query": {"from": USER}})
    updates.add({"message": {"chat": CHAT}})
    now[0] += 151
    updates.expire()
    assert [pending.kind for pending in updates.pending.values()] == ["message"]
    now[0] += 86_400
    updates.expire()
    assert (updates.pending, updates.expired) == ({}, 2)
