"""The calls of django-aiogram become messages of our form."""

import base64
import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.outbound import methods
from pillarbox.outbound.files import File
from pillarbox.outbound.reading import Read, Reader
from tests.support import methods_table

NOW = 1_900_000_000.0
HTML = {"parse_mode": "HTML", "link_preview": {"is_disabled": True}, "protect_content": True}


def read(call: dict[str, Any], **settings: Any) -> Read:
    return Reader(listed=True, clock=lambda: NOW, **settings).read(json.dumps(call).encode())


def call(function: str, **kwargs: Any) -> dict[str, Any]:
    about = {"__envelope__": 1, "correlation_id": "ab" * 16, "queued_at": 1.5}
    return {**about, "function": function, "kwargs": kwargs}


def model(**data: Any) -> dict[str, Any]:
    return {"__model__": "Any", "data": data}


def address(url: Any, **headers: str) -> dict[str, Any]:
    about = {"headers": headers or None, "timeout": 30, "filename": None, "chunk_size": 65536}
    return {"__input_file__": "URLInputFile", "url": url, **about}


def params(function: str, **kwargs: Any) -> dict[str, Any]:
    return read(call(function, **kwargs)).envelope.params


def reason(element: dict[str, Any], **settings: Any) -> str:
    with pytest.raises(MessageRefused) as refused:
        read(element, **settings)
    return refused.value.reason


def test_an_envelope() -> None:
    message = read(
        {**call("send_message", chat_id=1, text="hi"), "bot": 7, "priority": "is ignored"}
    ).envelope
    assert (message.method, message.params) == ("sendMessage", {"chat_id": 1, "text": "hi"})
    assert (message.bot, message.trace) == (7, "ab" * 16)
    assert message.id is None, "all sends of one update share a correlation id"


def test_the_flat_form() -> None:
    message = read({"function": "answer_callback_query", "callback_query_id": "5", "text": None}).envelope
    assert (message.method, message.params) == ("answerCallbackQuery", {"callback_query_id": "5"})


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ({"__datetime__": "2026-11-29T12:00:00.600000+02:00"}, 1795946401),
        ({"__date__": "2026-11-29"}, round(datetime(2026, 11, 29).timestamp())),  # noqa: DTZ001 - as there
        ({"__datetime__": "2026-11-29T12:00:00"}, round(datetime(2026, 11, 29, 12).timestamp())),  # noqa: DTZ001
        ({"__decimal__": "51.5"}, 51.5),
        (model(force_reply=True, selective=None), {"force_reply": True}),
        (model(a=[model(b=1, c=None), None]), {"a": [{"b": 1}]}),
        (model(mode={"__default__": "parse_mode"}, z={"__default__": "none"}), {"mode": "HTML"}),
        ({"__default__": "parse_mode"}, "HTML"),
        (address("https://x/y"), "https://x/y"),
        ({"plain": {"text": "", "n": None, "list": []}}, {"plain": {"text": "", "list": []}}),
        (False, False),
        (0, 0),
        ([], []),
    ],
)  # fmt: skip
def test_a_value(given: Any, becomes: Any) -> None:
    message = read(call("send_dice", chat_id=1, x=given), defaults={"parse_mode": "HTML"}).envelope
    assert message.params == {"chat_id": 1, "x": becomes}


@pytest.mark.parametrize("given", [None, "", {"__default__": "parse_mode"}, {"__default__": "unheard of"}])
def test_what_is_not_given_is_not_sent(given: Any) -> None:
    assert params("send_message", chat_id=1, x=given) == {"chat_id": 1}


def test_what_is_left_out_is_the_sender_s_default() -> None:
    message = read(call("send_message", chat_id=1, text="x"), defaults=HTML).envelope
    preview = {"is_disabled": True}
    rest = {"parse_mode": "HTML", "link_preview_options": preview, "protect_content": True}
    assert message.params == {"chat_id": 1, "text": "x"} | rest
    given = read(
        call("send_message", chat_id=1, text="x", parse_mode=None, protect_content=False), defaults=HTML
    )
    assert given.envelope.params == {
        "chat_id": 1,
        "text": "x",
        "protect_content": False,
        "link_preview_options": preview,
    }


def photo(content: bytes, filename: str | None = "a.png") -> dict[str, Any]:
    data = base64.b64encode(content).decode()
    return {"__input_file__": "BufferedInputFile", "filename": filename, "chunk_size": 65536, "data": data}


def test_bytes_leave_the_message() -> None:
    media = [
        {"__model__": "InputMediaPhoto", "data": {"type": "photo", "media": photo(b"one")}},
        photo(b"two", "a\nb"),
    ]
    message = read(call("send_media_group", chat_id=1, media=media))
    first, second = message.contents
    assert message.envelope.params["media"] == [
        {"type": "photo", "media": "attach://file1"},
        "attach://file2",
    ]
    assert message.envelope.files == {"file1": File(first, "a.png", True), "file2": File(second, None, True)}
    assert list(message.contents.values()) == [b"one", b"two"]
    assert b"one" not in message.element
    assert base64.b64encode(b"one") not in message.element


def test_equal_messages_have_files_of_their_own() -> None:
    element = json.dumps(call("send_photo", chat_id=1, photo=photo(b"x"))).encode()
    reader = Reader()
    first, again, second = (list(reader.read(element, mark).contents) for mark in ("1", "1", "2"))
    assert first == again != second


def test_files_do_not_count_and_are_bounded() -> None:
    big = call("send_photo", chat_id=1, photo=photo(b"x" * 5000))
    assert read(big, max_message=2048).envelope.method == "sendPhoto"
    assert reason({**big, "kwargs": {**big["kwargs"], "caption": "y" * 3000}}, max_message=2048) == "too_big"
    assert reason(call("send_photo", photo=photo(b"x" * (20 << 20) + b"x"))) == "too_big"
    assert reason(call("send_media_group", media=[photo(b"x")] * 33)) == "too_big"
    text = {"method": "sendMessage", "params": {"chat_id": 1, "text": '"__input_file__"' + "x" * 3000}}
    assert reason(text, max_message=2048) == "too_big"


@pytest.mark.parametrize(
    ("element", "why"),
    [
        (call("set_webhook", url=""), "method_refused"),
        (call("delete_webhook"), "method_refused"),
        (call("log_out"), "method_refused"),
        (call("close"), "method_refused"),
        (call("get_updates"), "method_refused"),
        (call("send_hologram", chat_id=1), "method_unknown"),
        ({"method": "sendHologram"}, "method_unknown"),
        (call("download_file"), "method_unknown"),
        (call(""), "method"),
        (call("__init__"), "method_unknown"),
        (call("send/message"), "method"),
        ({"function": 5}, "method"),
        ({"__envelope__": 1, "kwargs": {}}, "method"),
        ({**call("send_message"), "__envelope__": 0}, "envelope"),
        ({**call("send_message"), "__envelope__": True}, "envelope"),
        ({**call("send_message"), "__envelope__": "1"}, "envelope"),
        ({**call("send_message"), "kwargs": []}, "envelope"),
        ({**call("send_message"), "bot": "7"}, "bot"),
        ({**call("send_message"), "bot": None}, "bot"),
        ({**call("send_message"), "bot": True}, "bot"),
        (call("send_photo", photo={"__input_file__": "FSInputFile", "path": "/etc/passwd"}), "file_path"),
        (call("send_photo", photo=address("file:///etc/passwd")), "file_path"),
        (call("send_photo", photo=address("http://x", a="b")), "file_headers"),
        (call("send_photo", photo=address(5)), "tag"),
        (call("send_photo", photo={"__input_file__": "Mine"}), "tag"),
        (call("send_photo", photo={"__input_file__": "BufferedInputFile"}), "tag"),
        (call("send_photo", photo={"__input_file__": "BufferedInputFile", "data": 5}), "tag"),
        (call("send_photo", photo={"__input_file__": ["BufferedInputFile"]}), "tag"),
        (call("send_photo", photo="file:///etc/passwd"), "file_path"),
        (call("send_message", text={"__bytes__": "eA=="}), "params"),
        (call("send_message", text={"__datetime__": "soon"}), "tag"),
        (call("send_message", text={"__datetime__": 5}), "tag"),
        (call("send_message", text={"__date__": "0001-01-01"}), "params"),
        (call("send_message", text={"__decimal__": "much"}), "tag"),
        (call("send_message", text={"__decimal__": "sNaN"}), "params"),
        (call("send_message", text={"__decimal__": "1e999"}), "params"),
        (call("send_message", text={"__default__": {}}), "tag"),
        (call("send_message", text={"__model__": "X"}), "tag"),
        (call("send_message", text={"__model__": "X", "data": []}), "tag"),
    ],
)  # fmt: skip
def test_what_is_refused(element: dict[str, Any], why: str) -> None:
    assert reason(element) == why


def test_nesting_ends() -> None:
    for deep in (70, 400, 5000):
        nested = b"[" * deep + b"]" * deep
        element = b'{"function":"send_message","text":' + nested + b"}"
        with pytest.raises(MessageRefused):
            Reader().read(element)


def test_a_newer_envelope_is_kept() -> None:
    with pytest.raises(MessageKept, match="version"):
        read({**call("send_message"), "__envelope__": 2})


def test_a_method_that_is_newer_than_the_list() -> None:
    extra = frozenset({"sendhologram"})
    assert read(call("send_hologram", x=1), extra_methods=extra).envelope.method == "sendHologram"
    assert read({"method": "sendHologram"}, extra_methods=extra).envelope.method == "sendHologram"


def test_the_list_is_that_of_the_installed_aiogram() -> None:
    assert methods_table.FILE.read_text("utf-8") == methods_table.text()


def test_every_function_of_the_package_has_its_method() -> None:
    from django_aiogram.api import API_METHODS, CANONICAL_METHODS

    for function in API_METHODS:
        method = CANONICAL_METHODS[function].__api_method__
        assert methods.of_function(function) == method
        if methods.may_be_queued(method):
            assert read(call(function)).envelope.method == method


keys = st.sampled_from(
    ["__model__", "__default__", "__input_file__", "__bytes__", "data", "url", "path", "a"]
)
leaves = st.none() | st.booleans() | st.text() | st.floats(allow_nan=False)
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner))


@given(trees)
def test_no_value_breaks_the_reader(value: Any) -> None:
    with contextlib.suppress(MessageRefused):
        read(call("send_message", chat_id=1, text=value))


def test_now_is_used_and_times_are_whole() -> None:
    assert params(
        "ban_chat_member", until_date={"__datetime__": datetime.fromtimestamp(NOW, UTC).isoformat()}
    ) == {"until_date": int(NOW)}
