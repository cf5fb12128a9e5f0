"""The sender's settings: what is wrong is said in one line that names the fix."""

from typing import Any

import pytest

from pillarbox import settings
from pillarbox.errors import SettingError
from pillarbox_sender.settings import SenderSettings

GOOD = {"redis_url": "redis://127.0.0.1/0", "bot_tokens": "1:AAAAAAAAAA"}


def load(**given: Any) -> SenderSettings:
    return settings.load(SenderSettings, **{**GOOD, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delivery": "keyspace"}, ["DELIVERY", "E009", "blpop"]),
        ({"allow_pickle": "perhaps"}, ["ALLOW_PICKLE", "E017"]),
        ({"extra_methods": "setWebhook"}, ["EXTRA_METHODS", "setWebhook"]),
        ({"extra_methods": "getChat"}, ["EXTRA_METHODS"]),
        ({"extra_methods": "send_message"}, ["EXTRA_METHODS"]),
        ({"default_bot_properties": "html"}, ["DEFAULT_BOT_PROPERTIES", "E018", "JSON"]),
        ({"default_bot_properties": '{"parsemode": "HTML"}'}, ["DEFAULT_BOT_PROPERTIES", "parsemode"]),
        ({"send_timeout": 65}, ["SEND_TIMEOUT", "STOP_TIMEOUT"]),
        ({"max_retries": 0}, ["MAX_RETRIES"]),
        ({"worker_name": "a b"}, ["WORKER_NAME"]),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SettingError) as wrong:
        load(**given)
    assert all(word in str(wrong.value) for word in words)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("blpop", "redis", "block"), [(5, 10, 5), (8, 10, 8), (20, 10, 8), (5, 5, 3), (5, 2, 1)]
)
def test_a_blocked_pop_ends_below_the_deadline_of_a_call(blpop: float, redis: float, block: float) -> None:
    loaded = load(blpop_timeout=blpop, redis_timeout=redis)
    assert loaded.block == block
    assert [advice.id for advice in loaded.advice()] == ([] if block == blpop else ["W004"])


def test_the_worker_s_name() -> None:
    assert load(worker_name="a", hostname="b").name == "a"
    assert load(hostname="b").name == "b"
