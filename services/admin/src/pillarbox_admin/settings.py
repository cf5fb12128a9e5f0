"""What admin reads from the environment."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from pillarbox.outbound.settings import QueueSettings
from pillarbox.settings import InboxSettings, Port, words
from pillarbox_admin import holders
from pillarbox_admin.holders import Holders

AdminTokens = Annotated[list[SecretStr], NoDecode, BeforeValidator(words), AfterValidator(holders.check)]


class AdminSettings(InboxSettings, QueueSettings):
    admin_host: str = Field(
        "0.0.0.0", description="the address that admin listens on", examples=["127.0.0.1"]
    )
    admin_port: Port = Field(8083, description="the port of API and page", examples=["8083"])
    admin_tokens: AdminTokens = Field(
        min_length=1,
        description="who may do what: name:rights:token, comma or newline between",
        examples=["ops:read+act:<a token of 16 or more characters>"],
    )

    @property
    def holders(self) -> Holders:
        return Holders(holders.parse(entry.get_secret_value()) for entry in self.admin_tokens)
