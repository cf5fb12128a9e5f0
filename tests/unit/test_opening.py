"""Which storage the settings name, and who may have it."""

from pathlib import Path

import pytest

from pillarbox.errors import SettingError
from pillarbox.inbox.memory import MemoryStorage
from pillarbox.inbox.opening import shared_storage_of, storage_of
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox.inbox.storage import Storage
from pillarbox.settings import InboxSettings, load

POSTGRES = "postgresql://pillarbox@127.0.0.1:1/none"


def settings(url: str, storage: str | None = None) -> InboxSettings:
    return load(InboxSettings, database_url=url, storage=storage)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (POSTGRES, PostgresStorage),
        ("memory://", MemoryStorage),
        ("sqlite:///bot.db", SQLiteStorage),
        ("bot.db", SQLiteStorage),
    ],
)
def test_the_url_names_the_storage(url: str, kind: type[Storage]) -> None:
    assert type(storage_of(settings(url))) is kind


def test_one_of_your_own_is_named_by_its_class(tmp_path: Path) -> None:
    name = "pillarbox.inbox.memory:MemoryStorage"
    assert type(storage_of(settings(str(tmp_path), name))) is MemoryStorage


WRONG = [
    ("mysql://x", None, "DATABASE_URL: it must begin with postgresql:// or sqlite:///"),
    ("x", "no.such.module:Class", "STORAGE: no.such.module:Class cannot be imported"),
    ("x", "pillarbox.inbox:Nothing", "STORAGE: pillarbox.inbox:Nothing cannot be imported"),
    ("x", "pillarbox.ids:BotId", "STORAGE: pillarbox.ids:BotId is no subclass of pillarbox.inbox.Storage"),
]


@pytest.mark.parametrize(("url", "storage", "says"), WRONG)
def test_what_is_no_storage_is_one_line(url: str, storage: str | None, says: str) -> None:
    with pytest.raises(SettingError) as told:
        storage_of(settings(url, storage))
    assert str(told.value).startswith(says)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "storage"),
    [
        ("bot.db", None),
        ("sqlite:///bot.db", None),
        ("memory://", None),
        ("x", "pillarbox.inbox.memory:MemoryStorage"),
        ("x.db", "pillarbox.inbox.sqlite:SQLiteStorage"),
    ],
)
def test_services_by_themselves_refuse_what_they_cannot_share(url: str, storage: str | None) -> None:
    with pytest.raises(SettingError, match="`pillarbox run`"):
        shared_storage_of(settings(url, storage))
    assert type(shared_storage_of(settings(POSTGRES))) is PostgresStorage
