"""A wrong setting is one line that names it, the problem and the fix; its value never shows."""

from pathlib import Path

import pytest

from pillarbox import settings
from pillarbox.errors import SettingError
from pillarbox.settings import BotSettings, DatabaseSettings, InboxSettings, RedisSettings, Settings

SECRET = "hunter2secret"
DATABASE = {"DATABASE_URL": "postgresql://h/d"}

WRONG = [
    (DatabaseSettings, {}, "DATABASE_URL is not set"),
    (DatabaseSettings, {"DATABASE_URL": f"mysql://u:{SECRET}@h/d"}, "DATABASE_URL: it must begin with postgresql://"),
    (RedisSettings, {"REDIS_URL": f"http://:{SECRET}@h"}, "REDIS_URL: it must begin with redis://"),
    (RedisSettings, {"REDIS_URL": "redis://h", "REDIS_TIMEOUT": "soon"}, "REDIS_TIMEOUT: "),
    (RedisSettings, {"REDIS_URL": "redis://h", "REDIS_TIMEOUT": "0"}, "REDIS_TIMEOUT: "),
    (BotSettings, {"BOT_TOKENS": SECRET}, "BOT_TOKENS: token 1 does not look like"),
    (BotSettings, {"BOT_TOKENS": f"1:{SECRET},1:{SECRET}"}, "BOT_TOKENS: bot 1 is named twice"),
    (BotSettings, {"BOT_TOKENS": " , "}, "BOT_TOKENS: "),
    (Settings, {"LOG_LEVEL": "loud"}, "LOG_LEVEL: "),
    (InboxSettings, {**DATABASE, "MAX_HANDLER_RUNS": "0"}, "MAX_HANDLER_RUNS: "),
    (InboxSettings, {**DATABASE, "ALLOW_UNSAFE_DURABILITY": "maybe"}, "ALLOW_UNSAFE_DURABILITY: "),
]  # fmt: skip


@pytest.mark.parametrize(("group", "environment", "line"), WRONG)
def test_one_line_names_the_setting_and_the_fix(
    monkeypatch: pytest.MonkeyPatch, group: type[Settings], environment: dict[str, str], line: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingError) as caught:
        settings.load(group)
    text = str(caught.value)
    assert text.startswith(line)
    assert "set it, for example" in text
    assert "\n" not in text
    assert SECRET not in text


def test_a_value_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("1:abc\n2:def\n")
    monkeypatch.setenv("BOT_TOKENS_FILE", str(file))
    assert list(settings.load(BotSettings).bots) == [1, 2]


def test_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDIS_URL_FILE", str(tmp_path / "none"))
    with pytest.raises(SettingError, match="REDIS_URL_FILE: the file cannot be read"):
        settings.load(RedisSettings)


def test_value_and_file_together_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://h")
    monkeypatch.setenv("REDIS_URL_FILE", str(tmp_path))
    with pytest.raises(SettingError, match="REDIS_URL and REDIS_URL_FILE are both set"):
        settings.load(RedisSettings)


def test_an_empty_value_is_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose passes an unset variable on as an empty one."""
    monkeypatch.setenv("REDIS_URL", "redis://h")
    monkeypatch.setenv("REDIS_TIMEOUT", "")
    assert settings.load(RedisSettings).redis_timeout == 10


def test_a_zero_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://h/d")
    monkeypatch.setenv("SEEN_FOR", "0.5")
    assert settings.load(InboxSettings).seen_for == 0.5


def test_secrets_do_not_show_in_a_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_TOKENS", f"1:{SECRET}")
    assert SECRET not in repr(settings.load(BotSettings))
