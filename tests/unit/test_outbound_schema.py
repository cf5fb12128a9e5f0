"""The published schema says what the decoder does."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.outbound.envelope import KEYS, Envelope, decode, encode
from pillarbox.outbound.files import File

TEXT = (resources.files("pillarbox.outbound") / "envelope.schema.json").read_text("utf-8")
SCHEMA = json.loads(TEXT)
VALIDATOR = Draft202012Validator(SCHEMA)
PUBLISHED = Path(__file__).parents[2] / "docs" / "message.schema.json"


def decodes(element: bytes) -> bool:
    try:
        decode(element)
    except (MessageRefused, MessageKept):
        return False
    return True


def test_the_docs_have_it_as_it_is() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert PUBLISHED.read_text("utf-8") == TEXT
    assert set(SCHEMA["properties"]) == KEYS


@pytest.mark.parametrize("example", SCHEMA["examples"])
def test_its_examples_are_messages(example: dict[str, Any]) -> None:
    VALIDATOR.validate(example)
    assert VALIDATOR.is_valid(json.loads(encode(decode(json.dumps(example).encode()))))


letters = st.text(st.characters(codec="utf-8", max_codepoint=0x2FFF), max_size=6)
texts = letters | st.sampled_from(["", "a", "a\n", "\x7f", "x" * 256, "x" * 257, "\U0001f600" * 256])
numbers = st.sampled_from([0, 1, 1.0, 1.5, -1, -0.0, True, 2**63 - 1, 2**63, 99999999999.5, 1e11, 1e300])
odd: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-3, 3) | letters | st.just([]) | st.just({})
)
names = st.sampled_from(["cat", "", "a b", "a\n", "x" * 64, "x" * 65, "é"])
METHODS = (
    "sendMessage SENDphoto closeForumTopic close CLOSE closed logOut setWebhook getMe getmessage forgetMe "
    "deleteWebhooks send_message send2"
)
methods = st.sampled_from([*METHODS.split(), "sendMessage\n", "close\n", "a" * 64, "a" * 65])
about = st.fixed_dictionaries(
    {}, optional={"id": names | odd, "filename": texts | odd, "once": st.booleans() | odd, "path": texts}
)
values: dict[str, st.SearchStrategy[Any]] = {
    "v": st.sampled_from([1, 1.0, 2, 0, True, None, "1"]),
    "method": methods | odd,
    "params": st.dictionaries(names | letters, odd, max_size=3) | odd,
    "files": st.dictionaries(names, about | odd, max_size=2) | odd,
    "bot": numbers | odd,
    "id": texts | odd,
    "not_before": numbers | odd,
    "expires_at": numbers | odd,
    "on_doubt": st.sampled_from(["resend", "drop", "hold", "Hold"]) | odd,
    "trace": texts | odd,
}
GOOD: dict[str, Any] = {
    "v": 1,
    "method": "sendMessage",
    "params": {"chat_id": 1},
    "files": {"cat": {"id": "x"}},
    "bot": 7,
    "id": "a",
    "not_before": 1,
    "expires_at": 2.5,
    "on_doubt": "drop",
    "trace": "t",
}


@st.composite
def elements(draw: st.DrawFn) -> dict[str, Any]:
    """A good message of some keys, of which at most two are not: what is wrong is not hidden by the rest."""
    keys = draw(st.sets(st.sampled_from(sorted(GOOD)))) | {"method"}
    element = {key: GOOD[key] for key in keys}
    for key in draw(st.sets(st.sampled_from(sorted(GOOD)), max_size=2)):
        element[key] = draw(values[key])
    if draw(st.integers(0, 9)) == 0:
        element[draw(letters)] = draw(odd)
    if draw(st.integers(0, 9)) == 0:
        element.pop("method", None)
    return element


@settings(max_examples=1500, deadline=None)
@given(elements())
def test_schema_and_decoder_agree(element: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(element) == decodes(json.dumps(element, ensure_ascii=False).encode())


@given(st.from_type(type(None)) | st.integers() | letters | st.lists(st.integers()))
def test_what_is_no_object_is_no_message_to_either(element: Any) -> None:
    assert not VALIDATOR.is_valid(element)
    assert not decodes(json.dumps(element).encode())


def test_what_is_written_here_is_valid() -> None:
    full = Envelope("sendPhoto", {"chat_id": 1}, None, "id", 1.5, 2, "hold", "t", {"a": File("b", "c", True)})
    assert VALIDATOR.is_valid(json.loads(encode(full)))
