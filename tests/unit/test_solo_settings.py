from pathlib import Path

import pytest

from pillarbox.errors import SettingError
from pillarbox.settings import load
from pillarbox_solo.settings import RunSettings

ENOUGH = {
    "bot_tokens": "700001:for-tests-only-AAAAAAAAAAAAAAAAAAAAAAAA",
    "handlers": "bot",
    "webhook_url": "https://bots.example.org",
    "webhook_secret": "for-tests-only",
}


def test_token_handlers_and_webhook_are_enough() -> None:
    settings = load(RunSettings, **ENOUGH)
    assert settings.own_valkey
    assert settings.folder_of_valkey == Path("pillarbox.db.valkey")
    assert not settings.admin_tokens


@pytest.mark.parametrize("missing", ["bot_tokens", "handlers", "webhook_secret"])
def test_one_line_names_what_is_missing(missing: str) -> None:
    given = {name: value for name, value in ENOUGH.items() if name != missing}
    with pytest.raises(SettingError) as told:
        load(RunSettings, **given)
    assert str(told.value).startswith(f"{missing.upper()} is not set")


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ({"database_url": "sqlite:////var/lib/bot.db"}, "/var/lib/bot.db.valkey"),
        ({"database_url": "data/bot.db"}, "data/bot.db.valkey"),
        ({"database_url": "memory://"}, "pillarbox.db.valkey"),
        ({"database_url": "postgresql://x@h/d"}, "pillarbox.db.valkey"),
        ({"valkey_folder": "/elsewhere"}, "/elsewhere"),
    ],
)
def test_the_queue_lies_beside_the_database(given: dict[str, str], folder: str) -> None:
    assert load(RunSettings, **ENOUGH, **given).folder_of_valkey == Path(folder)


def test_a_redis_that_is_named_is_used() -> None:
    assert not load(RunSettings, **ENOUGH, redis_url="redis://h").own_valkey
    with pytest.raises(SettingError, match="REDIS_URL: it must begin with"):
        load(RunSettings, **ENOUGH, redis_url="http://h")
