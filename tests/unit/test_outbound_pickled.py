"""Pickles of old producers: plain values and aiogram's types are read; nothing that one names is run."""

import builtins
import enum
import os
import pickle
import subprocess
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import aiogram.enums
import pytest
from aiogram.client.default import Default
from aiogram.enums import ParseMode
from aiogram.types import (
    BufferedInputFile,
    FSInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    URLInputFile,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.outbound.producers.pickled import unpickled
from pillarbox.outbound.reading import Reader

NOW = 1_900_000_000.0
READER = Reader(allow_pickle=True, defaults={"parse_mode": "HTML"}, clock=lambda: NOW)
PROTOCOLS = [2, 3, 4, 5]
DAY = datetime(2026, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - as producers write it


def element(protocol: int = 5, **kwargs: Any) -> bytes:
    return pickle.dumps({"function": "send_dice", **kwargs}, protocol=protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_values(protocol: int) -> None:
    plain = {
        "a": [1, -5, 2**40, 1.5, True, None, "é", ("x", ["y", (1, 2, 3, 4)])],
        "b": {"c": {}, "d": set(), "e": ()},
        "f": frozenset([1]),
    }
    params = READER.read(element(protocol, x=plain, y=Decimal("1.5"))).envelope.params
    assert params == {
        "x": {
            "a": [1, -5, 2**40, 1.5, True, "é", ["x", ["y", [1, 2, 3, 4]]]],
            "b": {"c": {}, "d": [], "e": []},
            "f": [1],
        },
        "y": 1.5,
    }  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dates(protocol: int) -> None:
    zones = [None, timezone.utc, timezone(timedelta(hours=2), "X"), ZoneInfo("Europe/Berlin")]  # noqa: UP017
    moments = [datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=zone) for zone in zones]
    params = READER.read(
        element(protocol, x=moments, y=date(2026, 11, 29), z=timedelta(hours=1))
    ).envelope.params
    assert params["x"] == [round(moment.timestamp()) for moment in moments]
    assert params["y"] == round(datetime(2026, 11, 29).timestamp())  # noqa: DTZ001 - the sender's own zone
    assert params["z"] == NOW + 3600


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_aiogram_s_types(protocol: int) -> None:
    keyboard = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="a", callback_data="b")]] * 2)
    media = InputMediaPhoto(media=BufferedInputFile(b"\x00png", "a.png"), caption="<b>x</b>")
    given = {
        "x": keyboard,
        "y": [media, URLInputFile("https://x/y")],
        "z": ParseMode.HTML,
        "u": Default("none"),
    }
    read = READER.read(element(protocol, **given))
    button = {"text": "a", "callback_data": "b"}
    assert read.envelope.params == {
        "x": {"inline_keyboard": [[button], [button]]},
        "y": [{"type": "photo", "media": "attach://file1", "caption": "<b>x</b>", "parse_mode": "HTML"}, "https://x/y"],
        "z": "HTML",
    }  # fmt: skip
    assert list(read.contents.values()) == [b"\x00png"]


def test_the_nested_form() -> None:
    fields = {
        "__envelope__": 1,
        "correlation_id": "ab",
        "function": "send_dice",
        "kwargs": {"chat_id": 1},
        "bot": 7,
    }
    envelope = READER.read(pickle.dumps(fields)).envelope
    assert (envelope.method, envelope.params, envelope.bot, envelope.trace) == (
        "sendDice",
        {"chat_id": 1},
        7,
        "ab",
    )


def test_without_allow_pickle_it_is_kept() -> None:
    with pytest.raises(MessageKept, match="pickle"):
        Reader().read(element(chat_id=1))


class Runs:
    """What an attacker's object pickles as: a call of their choice."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self._reduced = (call, arguments)

    def __reduce__(self) -> Any:
        return self._reduced


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (os.system, ("touch {}",)),
        (os.posix_spawn, ("/bin/touch", ["touch", "{}"], {})),
        (subprocess.Popen, (["touch", "{}"],)),
        (builtins.eval, ("open('{}', 'w')",)),
        (builtins.exec, ("open('{}', 'w')",)),
        (builtins.open, ("{}", "w")),
        (builtins.__import__, ("antigravity",)),
        (builtins.getattr, (os, "system")),
        (builtins.bytearray, (1 << 40,)),
        (Path.touch, (Path("{}"),)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_call_is_made(call: Any, arguments: tuple[Any, ...], protocol: int, tmp_path: Path) -> None:
    trace = tmp_path / "run"
    filled = [one.format(trace) if isinstance(one, str) else one for one in arguments]
    if call is builtins.getattr:
        attack = b"\x80\x02}X\x01\x00\x00\x00xc__builtin__\ngetattr\ncos\nsystem\n\x86R."
    elif call is subprocess.Popen:
        attack = element(protocol, x=Runs(call, ["touch", str(trace)]))
    else:
        attack = element(protocol, x=Runs(call, *filled))
    with pytest.raises(MessageRefused):
        READER.read(attack)
    assert not trace.exists()


GLOBALS = [
    b"cos\nsystem\n",
    b"cbuiltins\neval\n",
    b"c__builtin__\nobject\n",
    b"caiogram.types\n__builtins__\n",
    b"caiogram.types.base\nos.system\n",
    b"caiogram.client.bot\nBot\n",
    b"cdatetime\ndatetime.fromtimestamp\n",
    b"cdatetime\nsys\n",
    b"cpillarbox.outbound.reading\nReader\n",
    b"ccopyreg\n_reconstructor\n",
    b"cfunctools\npartial\n",
    b"coperator\nattrgetter\n",
]


@pytest.mark.parametrize("named", GLOBALS)
def test_no_other_name_is_known(named: bytes) -> None:
    with pytest.raises(MessageRefused, match="pickle"):
        READER.read(b"\x80\x02" + named + b")R.")


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(b"\x80\x02(i" + b"os\nsystem\n.", id="INST"),
        pytest.param(b"\x80\x02(cos\nsystem\nX\x02\x00\x00\x00ido.", id="OBJ"),
        pytest.param(b"\x80\x02X\x01\x00\x00\x00aQ.", id="persistent id"),
        pytest.param(b"\x80\x02\x82\x01.", id="extension registry"),
        pytest.param(b"\x80\x05\x97.", id="buffer out of band"),
        pytest.param(b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".", id="a terabyte of bytearray"),
        pytest.param(b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b".", id="a terabyte of bytes"),
        pytest.param(b"\x80\x04\x8d" + (1 << 62).to_bytes(8, "little") + b".", id="a text without end"),
        pytest.param(b"\x80\x02\x8b\xff\xff\xff\x7f.", id="a number of 2 GB"),
        pytest.param(b"\x80\x02caiogram.types\nMessage\n}X\x01\x00\x00\x00aK\x01sb.", id="BUILD of a class"),
        pytest.param(b"\x80\x02cdatetime\ndatetime\n}X\x01\x00\x00\x00aK\x01sb.", id="BUILD of datetime"),
        pytest.param(b"\x80\x02}}X\x01\x00\x00\x00aK\x01sb.", id="BUILD of a dict"),
        pytest.param(b"\x80\x02" + b")" + b"2\x86" * 60 + b"}q\x00.", id="DUP"),
        pytest.param(b"\x80\x02", id="nothing"),
        pytest.param(b"\x80\x02.", id="an empty stack"),
        pytest.param(b"\x80\x02N.", id="no dict"),
        pytest.param(b"\x80\x02e.", id="no mark"),
        pytest.param(b"\x80\x02h\x05.", id="no such memo"),
        pytest.param(b"\x80\x02}(K\x01K\x02K\x03u.", id="odd items"),
        pytest.param(b"\x80\x02}K\x01K\x02s.", id="a key that is no text"),
        pytest.param(b"\x80\x02cdatetime\ndatetime\nC\x01a\x85R.", id="no date"),
        pytest.param(b"\x80\x02cdecimal\nDecimal\nX\x01\x00\x00\x00a\x85R.", id="no decimal"),
        pytest.param(b"\x80\x04\x8c\x08zoneinfo\x8c\x08ZoneInfo\x93\x8c\x06../../\x85R.", id="no zone"),
        pytest.param(b"\x80\x02cbuiltins\ngetattr\nczoneinfo\nZoneInfo\nX\x01\x00\x00\x00x\x86R.", id="attr"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(attack: bytes) -> None:
    with pytest.raises(MessageRefused):
        READER.read(attack)


def test_hashing_nested_tuples_is_not_asked_for() -> None:
    """As a key or member of a set, Python would hash these 2**60 leaves."""
    nested = b")q\x00" + b"".join(bytes([0x68, n, 0x86, 0x71, n + 1]) for n in range(60))
    call = b"}X\x08\x00\x00\x00functionX\x09\x00\x00\x00send_dices"
    hashed = [
        call + nested + b"K\x01s",
        b"ccollections\nOrderedDict\n](" + nested + b"K\x01\x86e\x85R",
        b"czoneinfo\nZoneInfo\n" + nested + b"\x85R",
        b"c_codecs\nencode\n" + nested + b"X\x06\x00\x00\x00latin1\x86R",
        b"cbuiltins\nset\n](" + nested + b"e\x85R",
        b"\x8f(" + nested + b"\x90",
        b"caiogram.enums.parse_mode\nParseMode\n" + nested + b"\x85R",
        b"caiogram.client.default\nDefault\n)R}X\x05\x00\x00\x00_name" + nested + b"sb",
    ]
    for attack in hashed:
        with pytest.raises(MessageRefused, match="no pickle of a message"):
            READER.read(b"\x80\x04" + attack + b".")
    with pytest.raises(MessageRefused, match="too_big"):
        READER.read(b"\x80\x02" + nested + call + b"X\x01\x00\x00\x00xh\x3cs.")


def test_one_text_many_times_has_an_end() -> None:
    rows = ["x" * 100_000] * 1000
    with pytest.raises(MessageRefused, match="too_big"):
        READER.read(element(x=[rows] * 1000))


def test_a_circle_has_an_end() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(MessageRefused):
        READER.read(element(x=circle))


@pytest.mark.parametrize("file", [FSInputFile("/etc/passwd"), FSInputFile(Path("/etc/passwd"))])
def test_a_path_is_not_read(file: FSInputFile) -> None:
    with pytest.raises(MessageRefused, match="file_path"):
        READER.read(element(photo=file))


@pytest.mark.parametrize(
    "odd", [float("inf"), float("nan"), Decimal("sNaN"), "\ud800", b"bytes", Decimal("1e999999")]
)
def test_what_json_has_no_form_for(odd: Any) -> None:
    with pytest.raises(MessageRefused, match="params"):
        READER.read(element(x=odd))


@settings(max_examples=500)
@given(st.binary(max_size=80), st.sampled_from(PROTOCOLS))
def test_any_bytes_are_a_message_or_refused(tail: bytes, protocol: int) -> None:
    try:
        unpickled(b"\x80" + bytes([protocol]) + tail)
    except MessageRefused:
        return


@settings(max_examples=500)
@given(st.data())
def test_a_damaged_pickle_is_a_message_or_refused(data: st.DataObject) -> None:
    whole = bytearray(element(data.draw(st.sampled_from(PROTOCOLS)), x=[{"a": (1, "b")}], y=DAY))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(2, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        READER.read(bytes(whole))
    except MessageRefused:
        return


def members() -> list[Any]:
    found = [getattr(aiogram.enums, name) for name in aiogram.enums.__all__]
    return [member for one in found if issubclass(one, enum.Enum) for member in one]


class ByName:
    """Pickles a member as Python 3.11.2 does, whatever Python this is."""

    def __init__(self, member: Any) -> None:
        self._member = member

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (type(self._member), self._member.name)


def test_every_member_of_an_enumeration_is_its_value_also_by_its_name() -> None:
    for member in members():
        params = READER.read(element(2, x=ByName(member), y=member)).envelope.params
        assert (params["x"], params["y"]) == (member.value, member.value), member
