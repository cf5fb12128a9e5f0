"""What ingest reads from the environment."""

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from pillarbox.settings import BotSettings, InboxSettings, Port, Secrets, TelegramSettings, Words


def _base(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise ValueError("it must begin with https:// (http:// for a local Bot API server)")
    return url.rstrip("/")


class IngestSettings(InboxSettings, BotSettings, TelegramSettings):
    ingest_host: str = Field(
        "0.0.0.0", description="the address that ingest listens on", examples=["127.0.0.1"]
    )
    ingest_port: Port = Field(8080, description="the port of the webhook", examples=["8080"])
    receive: str = Field("webhook", description="how updates come", examples=["webhook"])
    webhook_secret: Secrets = Field(
        description="what X-Telegram-Bot-Api-Secret-Token must be; two while it is rotated",
        examples=["<32 random characters of A-Z a-z 0-9 _ ->"],
    )
    webhook_url: Annotated[str, AfterValidator(_base)] | None = Field(
        None,
        description="the public base; ingest registers <base>/webhook/<bot id> with it",
        examples=["https://bots.example.org"],
    )
    allowed_updates: Words | None = Field(
        None,
        description="kinds that Telegram is to send; without it the last choice stays",
        examples=["message,callback_query"],
    )
    webhook_max_connections: int = Field(
        40, ge=1, le=100_000, description="deliveries of Telegram at once", examples=["40"]
    )

    @field_validator("receive")
    @classmethod
    def _receive(cls, value: str) -> str:
        if value == "polling":
            raise ValueError("polling is not there yet")
        if value != "webhook":
            raise ValueError("it must be webhook")
        return value

    @property
    def secrets(self) -> list[str]:
        return [secret.get_secret_value() for secret in self.webhook_secret]
