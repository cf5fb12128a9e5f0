"""The wire format of an outbound message."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, decode, encode

GOOD: dict[str, Any] = {"method": "sendMessage", "params": {"chat_id": 42, "text": "hi"}}


def element(**more: Any) -> bytes:
    return json.dumps({**GOOD, **more}).encode()


def test_the_smallest_message() -> None:
    assert decode(element()) == Envelope("sendMessage", {"chat_id": 42, "text": "hi"})
    assert decode(b'{"method":"closeForumTopic"}') == Envelope("closeForumTopic", {})


def test_every_field() -> None:
    full = Envelope(
        "sendMessage", {"chat_id": 1}, BotId(7), "an id", 1.5, 2.0, "hold", "00-4bf92f3577b34da6-00f067aa-01"
    )
    assert decode(encode(full)) == full


@given(
    st.dictionaries(
        st.text(),
        st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists),
    )
)
def test_params_come_out_as_they_went_in(params: dict[str, Any]) -> None:
    assert decode(encode(Envelope("sendMessage", params))).params == params


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "json"),
        (b"hello", "json"),
        (b"\xff\xfe", "json"),
        (b'{"method":"a"', "json"),
        (b'{"method":"a","params":{"x":NaN}}', "json"),
        (b'{"method":"sendMessage","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "json"),
        (b"[]", "shape"),
        (b'"sendMessage"', "shape"),
        (b"{}", "method"),
        (element(method=5), "method"),
        (element(method="send/../message"), "method"),
        (element(method="setWebhook"), "method_refused"),
        (element(method="DELETEwebhook"), "method_refused"),
        (element(method="logOut"), "method_refused"),
        (element(method="close"), "method_refused"),
        (element(method="getUpdates"), "method_refused"),
        (element(params=[]), "params"),
        (element(params=None), "params"),
        (element(bot="7"), "bot"),
        (element(bot=True), "bot"),
        (element(bot=0), "bot"),
        (element(id=""), "id"),
        (element(id=5), "id"),
        (element(id="a\nb"), "id"),
        (element(id="x" * 257), "id"),
        (element(not_before="soon"), "not_before"),
        (element(not_before=True), "not_before"),
        (element(expires_at=-1), "expires_at"),
        (element(expires_at=1e300), "expires_at"),
        (element(on_doubt="maybe"), "on_doubt"),
        (element(on_doubt=[]), "on_doubt"),
        (element(priority=1), "unknown_field"),
        (element(v="2"), "unknown_field"),
        (b'{"function":"send_message","chat_id":1}', "old_form"),
    ],
)
def test_what_is_no_message_is_refused_with_a_reason(bad: bytes, reason: str) -> None:
    with pytest.raises(MessageRefused) as refused:
        decode(bad)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b'{"mothod": "sendMessage"}', "unknown_field: mothod; there is no method"),
        (element(priority=1, prio=2), "unknown_field: priority and 1 more"),
        (element(**{"a\n" + "b" * 99: 1}), "unknown_field: a?" + "b" * 62),
        (element(v="2"), "unknown_field: v"),
        (b"{}", "method: there is no method"),
    ],
)
def test_a_slip_of_the_pen_is_named(bad: bytes, says: str) -> None:
    with pytest.raises(MessageRefused) as refused:
        decode(bad)
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("other", "reason"),
    [(pickle.dumps({"a": 1}), "pickle"), (element(v=2, anything=1), "version")],
)
def test_what_another_run_can_read_is_kept(other: bytes, reason: str) -> None:
    with pytest.raises(MessageKept) as kept:
        decode(other)
    assert kept.value.reason == reason


def test_neither_errors_nor_reprs_hold_what_people_wrote() -> None:
    with pytest.raises(MessageRefused) as refused:
        decode(element(id="a secret\n"))
    assert "secret" not in str(refused.value)
    assert "hi" not in repr(decode(element()))
