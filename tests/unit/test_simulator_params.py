import pytest

from pillarbox_simulator.answers import Refused
from pillarbox_simulator.params import read

FORM = b"application/x-www-form-urlencoded"
JSON = b"application/json"


@pytest.mark.parametrize(
    ("kind", "query", "body", "params"),
    [
        (b"", b"chat_id=42&text=a+b%20c", b"", {"chat_id": 42, "text": "a b c"}),
        (FORM, b"", b"chat_id=-100123&text=%7B%22x", {"chat_id": -100123, "text": '{"x'}),
        (FORM, b"", b"chat_id=%40channel&text=7", {"chat_id": "@channel", "text": "7"}),
        (FORM, b"", b"disable_notification=true&text=true", {"disable_notification": True, "text": "true"}),
        (FORM, b"", b"callback_query_id=123", {"callback_query_id": "123"}),
        (FORM, b"", b"reply_markup=%7B%22a%22%3A%5B1%5D%7D", {"reply_markup": {"a": [1]}}),
        (JSON, b"", b'{"chat_id":42,"text":"hi"}', {"chat_id": 42, "text": "hi"}),
        (JSON, b"", b'{"reply_markup":"{\\"a\\":1}"}', {"reply_markup": {"a": 1}}),
        (JSON + b"; charset=utf-8", b"chat_id=1", b'{"text":"hi"}', {"chat_id": 1, "text": "hi"}),
        (JSON, b"", b"", {}),
    ],
)
def test_every_form_gives_the_same_parameters(
    kind: bytes, query: bytes, body: bytes, params: dict[str, object]
) -> None:
    assert read(kind, query, body) == (params, {})


def multipart(*parts: tuple[str, bytes]) -> bytes:
    sections = (b"--B\r\nContent-Disposition: form-data; " + h.encode() + b"\r\n\r\n" + d for h, d in parts)
    return b"\r\n".join(sections) + b"\r\n--B--\r\n"


def test_a_file_beside_the_fields_is_attached() -> None:
    body = multipart(
        ('name="chat_id"', b"42"),
        ('name="media"', b'[{"type":"photo","media":"attach://one"}]'),
        ('name="one"; filename="a.png"\r\nContent-Type: image/png', b"\x89PNG\r\n-B"),
    )
    params, uploads = read(b"multipart/form-data; boundary=B", b"", body)
    assert params["chat_id"] == 42
    assert params["media"] == [{"type": "photo", "media": "attach://one"}]
    assert (uploads["one"].filename, uploads["one"].kind) == ("a.png", "image/png")
    assert uploads["one"].data == b"\x89PNG\r\n-B"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b"{"),
        (JSON, b"[1]"),
        (FORM, b"reply_markup={"),
        (FORM, b"text=%ff"),
        (b"multipart/form-data; boundary=B", b"nonsense"),
        (b"multipart/form-data", b"nonsense"),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(kind: bytes, body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        read(kind, b"", body)
    assert refused.value.code == 400
    assert refused.value.description.startswith("Bad Request: ")
