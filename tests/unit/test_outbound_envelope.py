"""The wire format of an outbound message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, decode, encode
from pillarbox.outbound.files import File

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
        (element(v=True), "unknown_field"),
        (element(bot=1.5), "bot"),
        (element(files=[]), "files"),
        (element(files={"a b": {"id": "x"}}), "files"),
        (element(files={"a": {}}), "files"),
        (element(files={"a": {"id": "../x"}}), "files"),
        (element(files={"a": {"id": "x", "path": "/etc/passwd"}}), "files"),
        (element(files={"a": {"id": "x", "filename": "a\nb"}}), "files"),
        (element(files={"a": {"id": "x", "once": 1}}), "files"),
        (element(files={str(n): {"id": "x"} for n in range(33)}), "files"),
        (element(files={"a": {"id": "x"}}, params={"chat_id": 1, 'a"\r\nb': 2}), "params"),
        (element(params={"photo": "file:///etc/passwd"}), "file_path"),
        (element(params={"photo": " FILE:/etc/passwd"}), "file_path"),
        (element(params={"media": [{"type": "photo", "media": "file:///x"}]}), "file_path"),
        (element(params={"media": '[{"media": "\\u0066ile:///x"}]'}), "file_path"),
        (b'{"method":"sendPhoto","params":{"photo":"\\u0066ile:\\/\\/x"}}', "file_path"),
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
    [(element(v=2, anything=1), "version")],
)
def test_what_another_run_can_read_is_kept(other: bytes, reason: str) -> None:
    with pytest.raises(MessageKept) as kept:
        decode(other)
    assert kept.value.reason == reason


def test_what_people_write_may_begin_like_a_path() -> None:
    assert decode(element(params={"text": "file:///etc/passwd"})).params == {"text": "file:///etc/passwd"}


def test_files_are_named() -> None:
    envelope = decode(
        element(files={"cat": {"id": "cat-1", "filename": "кот.png", "once": True}, "b": {"id": "b"}})
    )
    assert envelope.files == {"cat": File("cat-1", "кот.png", True), "b": File("b")}
    assert decode(encode(envelope)) == envelope


def test_neither_errors_nor_reprs_hold_what_people_wrote() -> None:
    with pytest.raises(MessageRefused) as refused:
        decode(element(id="a secret\n"))
    assert "secret" not in str(refused.value)
    assert "hi" not in repr(decode(element()))
