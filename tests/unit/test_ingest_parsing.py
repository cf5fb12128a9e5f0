"""What is read from a body, by which reader, and what is set aside."""

import json

import msgspec
import pytest
from aiogram.types import Update

from pillarbox.ids import BotId
from pillarbox_ingest import parsing
from pillarbox_ingest.lanes import KINDS, PATHS, place
from pillarbox_ingest.parsing import Unreadable, parse
from pillarbox_ingest.scanner import scan

BOT = BotId(7)
CHAT = '"chat":{"id":42,"type":"private"},"from":{"id":43}'
DEEP = '{"update_id":9,"message":{"chat":{"id":42},"from":{"id":43},"x":%s}}'


def body(event: str, kind: str = "message", update_id: str = "9") -> bytes:
    return f'{{"update_id":{update_id},"{kind}":{event}}}'.encode()


ARMOR = r"-----BEGIN PGP MESSAGE-----\n\nwV4D\n-----END PGP MESSAGE-----"
SEALED = [
    (f'{{{CHAT},"text":"{ARMOR}"}}', True),
    (f'{{{CHAT},"caption":"look: {ARMOR}"}}', True),
    (f'{{{CHAT},"text":"yes","reply_to_message":{{"text":"{ARMOR}"}}}}', True),
    (f'{{{CHAT},"document":{{"file_name":"note.ASC","file_id":"x"}}}}', True),
    (f'{{{CHAT},"document":{{"file_id":"x","file_name" : "a\\"b.txt.gpg"}}}}', True),
    (f'{{{CHAT},"document":{{"mime_type":"application/pgp-encrypted"}}}}', True),
    (f'{{{CHAT},"document":{{"mime_type":"application\\/pgp-encrypted"}}}}', True),
    (f'{{{CHAT},"document":{{"file_name":"pgp.txt","mime_type":"text/plain"}},"caption":"x.gpg"}}', False),
    (f'{{{CHAT},"text":"-----BEGIN PGP PUBLIC KEY BLOCK-----"}}', False),
    (f'{{{CHAT},"text":"hello"}}', False),
]


@pytest.mark.parametrize(("event", "sealed"), SEALED)
def test_an_update_with_an_openpgp_message_is_sealed(event: str, sealed: bool) -> None:
    assert parse(BOT, body(event)).sealed is sealed
    assert parse(BOT, body(event, "edited_message")).sealed is sealed


LANES = [
    ("message", f"{{{CHAT}}}", "chat:42", 42, 43),
    ("channel_post", '{"chat":{"id":-100}}', "chat:-100", -100, None),
    ("callback_query", '{"from":{"id":43},"message":{"chat":{"id":42}}}', "chat:42", 42, 43),
    ("callback_query", '{"from":{"id":43},"inline_message_id":"x"}', "user:43", None, 43),
    ("inline_query", '{"from":{"id":43},"query":"q"}', "user:43", None, 43),
    ("pre_checkout_query", '{"from":{"id":43}}', "user:43", None, 43),
    ("message_reaction", '{"chat":{"id":42},"user":{"id":43}}', "chat:42", 42, 43),
    ("chat_member", '{"chat":{"id":42},"from":{"id":43}}', "chat:42", 42, 43),
    ("business_connection", '{"user":{"id":43},"user_chat_id":44}', "user:43", None, 43),
    ("poll", '{"id":"5"}', "update:9", None, None),
    ("poll_answer", '{"poll_id":"5","user":{"id":43}}', "user:43", None, 43),
    ("poll_answer", '{"poll_id":"5","voter_chat":{"id":-4},"user":{"id":43}}', "chat:-4", -4, 43),
    ("something_new_2", '{"chat":{"id":42}}', "chat:42", 42, None),
    ("something_newer", '{"message":"text","user":{"id":43}}', "user:43", None, 43),
    ("message", '{"chat":"none"}', "update:9", None, None),
    (
        "message",
        '{"chat":{"id":4503599627370495},"text":"\\u0000"}',
        "chat:4503599627370495",
        (1 << 52) - 1,
        None,
    ),
]


@pytest.mark.parametrize(("kind", "event", "lane", "chat_id", "user_id"), LANES)
def test_lane(kind: str, event: str, lane: str, chat_id: int | None, user_id: int | None) -> None:
    raw = body(event, kind)
    update = parse(BOT, raw)
    assert (update.bot_id, update.update_id, update.kind, update.body) == (BOT, 9, kind, raw)
    assert (update.lane, update.chat_id, update.user_id) == (lane, chat_id, user_id)


@pytest.mark.parametrize(("kind", "event", "lane", "chat_id", "user_id"), LANES)
def test_all_readers_agree(
    kind: str, event: str, lane: str, chat_id: int | None, user_id: int | None
) -> None:
    raw = body(event, kind)
    for reader in (parsing._tolerant, parsing._scanned):
        update_id, found, ids = reader(raw)
        assert (update_id, found, place(found, update_id, ids).lane) == (9, kind, lane)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it is no JSON"),
        (b"no", "it is no JSON"),
        (b"\xff\xfe", "it is no JSON"),
        (b'{"update_id":9,"message":{"chat":{"id":42}}', "it is no JSON"),
        (b'{"update_id":9,"message":{}} {}', "it is no JSON"),
        (b'[{"update_id":9}]', "it is no JSON object"),
        (b"{}", "update_id is missing"),
        (b'{"message":{}}', "update_id is missing"),
        (b'{"update_id":"9","message":{}}', "update_id is missing"),
        (b'{"update_id":true,"message":{}}', "update_id is missing"),
        (b'{"update_id":9}', "the event is missing"),
        (b'{"update_id":9,"message":5}', "the event is no object"),
        (b'{"update_id":9,"a\\u0000b":{}}', "the kind is no name"),
        (b'{"update_id":9,"a\\ud800b":{}}', "the kind is no name"),
        (body("{}", "k" * 65), "the kind is no name"),
        (body("{}", update_id="9223372036854775808"), "an id is too large"),
        (body("{}", update_id="9" * 30), "an id is too large"),
        (body('{"chat":{"id":%s}}' % ("9" * 30)), "an id is too large"),
        (b"[" * (1 << 20), "it is no JSON"),
        (b'{"update_id":9,"message":' + b'{"a":' * 200_000, "it is no JSON"),
    ],
)
def test_unreadable(raw: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as error:
        parse(BOT, raw)
    assert error.value.reason == reason


@pytest.mark.parametrize(
    "raw",
    [
        (DEEP % '"\\ud800"').encode(),
        (DEEP % ("[" * 10_000 + "]" * 10_000)).encode(),
        (DEEP % ('{"chat":' * 5_000 + "1" + "}" * 5_000)).encode(),
        (DEEP % '"\\u0000 \\\\\\" \\ud83d\\ude00"').encode(),
    ],
)
def test_what_the_quick_reader_refuses_is_an_update_all_the_same(raw: bytes) -> None:
    update = parse(BOT, raw)
    assert (update.lane, update.chat_id, update.user_id, update.body) == ("chat:42", 42, 43, raw)


def test_the_hard_bodies_are_refused_by_the_quick_reader() -> None:
    """Else the test above would test nothing."""
    with pytest.raises((msgspec.MsgspecError, RecursionError)):
        parsing._quick((DEEP % ("[" * 10_000 + "]" * 10_000)).encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"a":}',
        '{"a" 1}',
        '{"a":1,}',
        "{,}",
        "[1,]",
        '{"a":[1 2]}',
        '{"a":1]',
        "{1:2}",
        '{"a":tru}',
        '"x"',
        "{} x",
    ],
)
def test_the_scanner_takes_no_other_grammar_than_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        json.loads(text) if text != '"x"' else scan(b'"x"')
    with pytest.raises(ValueError, match=r"\w"):
        scan(text.encode())


def test_every_kind_of_the_bot_api_has_its_row() -> None:
    assert set(KINDS) == set(Update.model_fields) - {"update_id"}
    assert {path for where in KINDS.values() for path in (*where.chat, *where.user)} == set(PATHS)
