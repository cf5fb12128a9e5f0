"""What ingest reads from the environment."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pillarbox.settings import BotSettings, InboxSettings, Port, Secrets, TelegramSettings, Words
from pillarbox_ingest.lanes import LaneBy


def _base(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise ValueError("it must begin with https:// (http:// for a local Bot API server)")
    return url.rstrip("/")


class IngestSettings(InboxSettings, BotSettings, TelegramSettings):
    ingest_host: str = Field(
        "0.0.0.0", description="the address that ingest listens on", examples=["127.0.0.1"]
    )
    ingest_port: Port = Field(8080, description="the port of the webhook", examples=["8080"])
    receive: Literal["webhook", "polling"] = Field(
        "webhook", description="how updates come: `webhook` or `polling`", examples=["webhook"]
    )
    webhook_secret: Secrets | None = Field(
        None,
        description="what X-Telegram-Bot-Api-Secret-Token must be; two while it is rotated;"
        " required but for polling",
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

    poll_timeout: int = Field(
        50, ge=1, le=50, description="seconds that Telegram holds an empty getUpdates", examples=["50"]
    )
    delete_webhook: bool = Field(
        False, description="with polling: take away a webhook that is set", examples=["true"]
    )
    lane_by: LaneBy = Field(
        "chat",
        description="what is handled in order: `chat`, or `chat_user`, in groups each person apart",
        examples=["chat_user"],
    )

    @model_validator(mode="after")
    def _needs_secret(self) -> Self:
        if self.receive == "webhook" and not self.webhook_secret:
            raise ValueError(
                "WEBHOOK_SECRET is not set (what X-Telegram-Bot-Api-Secret-Token must be); set it, for"
                " example WEBHOOK_SECRET=<32 random characters of A-Z a-z 0-9 _ ->, or RECEIVE=polling"
            )
        return self

    @property
    def secrets(self) -> list[str]:
        return [secret.get_secret_value() for secret in self.webhook_secret or ()]
