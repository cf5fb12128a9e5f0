"""What `pillarbox run` reads: the settings of all its services, fewer of them required."""

from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr, field_validator

from pillarbox.settings import Port
from pillarbox_admin.settings import AdminSettings, AdminTokens
from pillarbox_dispatcher.settings import DispatcherSettings
from pillarbox_ingest.settings import IngestSettings
from pillarbox_sender.settings import SenderSettings

DATABASE = "pillarbox.db"
REDIS = ("redis://", "rediss://", "unix://")


class RunSettings(IngestSettings, DispatcherSettings, SenderSettings, AdminSettings):
    one_process: ClassVar[bool] = True

    database_url: SecretStr = Field(
        SecretStr(DATABASE),
        description="a SQLite file, `memory://`, or PostgreSQL",
        examples=["sqlite:////var/lib/bot/bot.db"],
    )
    redis_url: SecretStr = Field(
        SecretStr(""),
        description="a Redis to use; without it, a Valkey of its own beside the database",
        examples=["redis://redis:6379/0"],
    )
    admin_tokens: AdminTokens = Field(
        [],
        description="who may do what: name:rights:token, comma or newline between; without it, no admin",
        examples=["ops:read+act:<a token of 16 or more characters>"],
    )
    admin_host: str = Field(
        "127.0.0.1", description="the address that admin listens on", examples=["127.0.0.1"]
    )
    valkey_folder: Path | None = Field(
        None,
        description="where that Valkey keeps its data; `<database>.valkey` if not set",
        examples=["/var/lib/bot/valkey"],
    )
    valkey_port: Port = Field(
        0, description="its port on 127.0.0.1; 0 is a free one, kept for the next start", examples=["6380"]
    )
    valkey_bin: Path | None = Field(
        None, description="a folder with another `valkey-server` than ours", examples=["/usr/bin"]
    )

    @field_validator("redis_url")
    @classmethod
    def _redis_url(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value() and not value.get_secret_value().startswith(REDIS):
            raise ValueError(f"it must begin with {' or '.join(REDIS)}")
        return value

    @property
    def own_valkey(self) -> bool:
        return not self.redis_url.get_secret_value()

    @property
    def folder_of_valkey(self) -> Path:
        """Beside the database's file; in the working folder where there is none."""
        if self.valkey_folder is not None:
            return self.valkey_folder
        path = self.database_url.get_secret_value().removeprefix("sqlite:///")
        return Path(f"{DATABASE if '://' in path or self.storage else path}.valkey")
