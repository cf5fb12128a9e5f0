"""Settings come from the environment alone; `<NAME>_FILE` names a file that holds the value.

A service's settings class inherits the groups that it needs, and `load` turns whatever is wrong into one line
that names the setting, the problem and the fix. Values are never printed.
"""

import os
import re
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from pillarbox.errors import SettingError
from pillarbox.ids import BotId
from pillarbox.inbox.states import Limits

S = TypeVar("S", bound="Settings")

KNOWN_IDS = {
    "REDIS_URL": "E005",
    "REDIS_MESSAGES_KEY": "E007",
    "DELIVERY": "E009",
    "MAX_RETRIES": "E012",
    "BLPOP_TIMEOUT": "E014",
    "ALLOW_PICKLE": "E017",
    "DEFAULT_BOT_PROPERTIES": "E018",
    "WORKER_NAME": "E021",
    "REDIS_TIMEOUT": "E030",
}
"""Checks of django-aiogram: where one of its settings is wrong here, the id is the one its users know."""

TOKEN = re.compile(r"\A([0-9]{1,15}):[A-Za-z0-9_-]{1,256}\Z")
SECRET = re.compile(r"\A[A-Za-z0-9_-]{1,256}\Z")  # Bot API, setWebhook, "secret_token"


def words(value: object) -> object:
    """Comma or newline between the values; blanks around them do not count."""
    if not isinstance(value, str):
        return value
    return [word for word in (part.strip() for part in re.split(r"[,\n]", value)) if word]


def _tokens(value: list[SecretStr]) -> list[SecretStr]:
    ids: set[str] = set()
    for position, token in enumerate(value, 1):
        match = TOKEN.match(token.get_secret_value())
        if match is None:
            raise ValueError(f"token {position} does not look like 123456:ABC-def, as BotFather gives it")
        if match[1] in ids:
            raise ValueError(f"bot {match[1]} is named twice")
        ids.add(match[1])
    return value


def _secrets(value: list[SecretStr]) -> list[SecretStr]:
    if not 1 <= len(value) <= 2:
        raise ValueError("one secret, or two while it is rotated")
    if not all(SECRET.match(secret.get_secret_value()) for secret in value):
        raise ValueError("a secret is 1 to 256 of the characters A-Z a-z 0-9 _ -")
    return value


def _url(*schemes: str) -> AfterValidator:
    def check(value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith(tuple(f"{scheme}://" for scheme in schemes)):
            raise ValueError(f"it must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return value

    return AfterValidator(check)


Words = Annotated[list[str], NoDecode, BeforeValidator(words)]
Tokens = Annotated[list[SecretStr], NoDecode, BeforeValidator(words), AfterValidator(_tokens)]
Secrets = Annotated[list[SecretStr], NoDecode, BeforeValidator(words), AfterValidator(_secrets)]
PostgresUrl = Annotated[SecretStr, _url("postgresql", "postgres")]
RedisUrl = Annotated[SecretStr, _url("redis", "rediss", "unix")]
Seconds = Annotated[float, Field(gt=0)]
Port = Annotated[int, Field(ge=0, le=65535)]


class FileSource(PydanticBaseSettingsSource):
    """`<NAME>_FILE`: the value is the file's text, without the newline at its end."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = field_name.upper()
        path = os.environ.get(f"{name}_FILE")
        if not path:
            return None, field_name, False
        if os.environ.get(name):
            raise SettingError(f"{name} and {name}_FILE are both set; keep one of them")
        try:
            return Path(path).read_text(encoding="utf-8").rstrip("\r\n"), field_name, False
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise SettingError(
                f"{name}_FILE: the file cannot be read ({why}); name a file that this process can read"
            ) from None

    def __call__(self) -> dict[str, Any]:
        values = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in values.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Advice:
    """What works, and is a risk all the same: an id as W004, one line, and what to do."""

    id: str
    text: str
    hint: str


class Settings(BaseSettings):
    """What every service reads. `examples` of a field are shown as the fix when it is missing or wrong."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

    log_format: typing.Literal["auto", "json", "text"] = Field(
        "auto", description="`json`, `text`, or text in a terminal only", examples=["json"]
    )
    log_level: typing.Literal["debug", "info", "warning", "error"] = Field(
        "info", description="the least that is logged", examples=["info"]
    )

    def advice(self) -> list[Advice]:
        """None for the defaults."""
        return []

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, FileSource(settings_cls)


class DatabaseSettings(Settings):
    database_url: PostgresUrl = Field(
        description="the inbox's database", examples=["postgresql://pillarbox:secret@postgres/pillarbox"]
    )
    database_direct_url: PostgresUrl | None = Field(
        None,
        description="the same database past a pooler: hints, renewals, locks, migrations",
        examples=["postgresql://pillarbox:secret@postgres/pillarbox"],
    )
    allow_unsafe_durability: bool = Field(
        False,
        description="start although PostgreSQL may lose what it confirmed",
        examples=["true"],
    )

    @property
    def direct_url(self) -> str:
        return (self.database_direct_url or self.database_url).get_secret_value()


class InboxSettings(DatabaseSettings):
    """`pillarbox.inbox.opening` says which URLs a process takes."""

    one_process: ClassVar[bool] = False
    """Whether all services are in this process, so that its storage need not be shared."""

    database_url: SecretStr = Field(
        description="the inbox's database", examples=["postgresql://pillarbox:secret@postgres/pillarbox"]
    )
    storage: str | None = Field(
        None,
        pattern=r"^\w+(\.\w+)*:\w+$",
        description="a Storage of your own, as `package.module:Class`",
        examples=["my_bot.storage:MyStorage"],
    )
    lease: Seconds = Field(
        30.0, description="seconds until a vanished dispatcher's lane is free", examples=["30"]
    )
    max_handler_runs: int = Field(
        5, ge=1, description="runs without an end before an update fails", examples=["5"]
    )
    max_failed: int = Field(10_000, ge=1, description="failed updates kept for a bot", examples=["10000"])
    max_malformed: int = Field(
        10_000, ge=1, description="malformed bodies kept for a bot", examples=["10000"]
    )
    seen_for: Seconds = Field(72 * 3600.0, description="seconds that a repeat is known", examples=["259200"])

    @property
    def limits(self) -> Limits:
        return Limits(self.lease, self.max_handler_runs, self.max_failed, self.max_malformed, self.seen_for)


class RedisSettings(Settings):
    redis_url: RedisUrl = Field(
        description="one primary, any database index", examples=["redis://redis:6379/0"]
    )
    redis_timeout: Seconds = Field(10.0, description="deadline of any one Redis call", examples=["10"])
    redis_messages_key: str = Field(
        "pillarbox:outbound",
        min_length=1,
        description="the door: the list that apps push to",
        examples=["pillarbox:outbound"],
    )
    max_message: int = Field(1 << 20, ge=1024, description="bytes of one message", examples=["1048576"])
    max_dead: int = Field(10_000, ge=1, description="dead messages kept for a bot", examples=["10000"])


class BotSettings(Settings):
    bot_tokens: Tokens = Field(
        description="the bots, comma or newline between", min_length=1, examples=["123456:ABC-def"]
    )

    @property
    def bots(self) -> dict[BotId, SecretStr]:
        """The token of each bot, by its id."""
        return {BotId(int(t.get_secret_value().partition(":")[0])): t for t in self.bot_tokens}


class TelegramSettings(Settings):
    telegram_api_base: str = Field(
        "https://api.telegram.org",
        pattern=r"^https?://[^/]+.*$",
        description="the Bot API server",
        examples=["https://api.telegram.org"],
    )
    telegram_proxy: SecretStr | None = Field(
        None, description="an HTTP proxy", examples=["http://proxy:3128"]
    )


def load(settings: type[S], **given: Any) -> S:
    """Reads a service's settings; raises SettingError with one line for the first thing that is wrong."""
    try:
        return settings(**given)
    except ValidationError as error:
        raise _all_wrong(settings, error)[0] from None


def wrong(settings: type[Settings]) -> list[SettingError]:
    """Everything that is wrong in the environment, of which `load` tells the first."""
    try:
        settings()
    except ValidationError as error:
        return _all_wrong(settings, error)
    except SettingError as error:
        return [error]
    return []


def _all_wrong(settings: type[Settings], error: ValidationError) -> list[SettingError]:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return [_wrong(settings, problem) for problem in problems]


def _wrong(settings: type[Settings], problem: ErrorDetails) -> SettingError:
    if not problem["loc"]:
        what, _, fix = problem["msg"].removeprefix("Value error, ").partition("; ")
        return SettingError(what, fix=fix)
    field_name = str(problem["loc"][0])
    name, field = field_name.upper(), settings.model_fields[field_name]
    fix = f"{name}={field.examples[0]}" if field.examples else f"a value for {name}"
    if problem["type"] == "missing":
        return SettingError(f"{name} is not set ({field.description})", fix=f"set it, for example {fix}")
    message = problem["msg"].removeprefix("Value error, ")
    what = f"{name}: {message[0].lower()}{message[1:]}"
    return SettingError(what, fix=f"set it, for example {fix}", id=KNOWN_IDS.get(name, ""))
