"""What the sender reads from its environment."""

import math
import socket
from typing import Self

from pydantic import Field, field_validator, model_validator

from pillarbox.outbound.settings import QueueSettings
from pillarbox.settings import Advice, BotSettings, Port, Seconds, TelegramSettings
from pillarbox_sender.limits import LimitSettings


class SenderSettings(QueueSettings, BotSettings, TelegramSettings, LimitSettings):
    delivery: str = Field("blpop", description="how messages are taken from the door", examples=["blpop"])
    blpop_timeout: Seconds = Field(
        5.0, description="seconds between a blocked pop's looks at the stop flag", examples=["5"]
    )
    worker_name: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,128}$",
        description="names the worker's processing list",
        examples=["sender-1"],
    )
    hostname: str | None = Field(None, description="the worker's name where WORKER_NAME is not set")
    max_retries: int = Field(
        10, ge=1, description="sends answered with a passing error before a message is dead", examples=["10"]
    )
    send_timeout: Seconds = Field(60.0, description="seconds for one call of the Bot API", examples=["60"])
    upload_timeout: Seconds = Field(
        300.0, description="seconds for one call that carries files", examples=["300"]
    )
    send_concurrency: int = Field(50, ge=1, le=1000, description="calls out at once", examples=["50"])
    stop_timeout: Seconds = Field(
        65.0, description="seconds for what is being sent at SIGTERM", examples=["65"]
    )
    sender_host: str = Field("0.0.0.0", description="where probes and metrics listen", examples=["0.0.0.0"])
    sender_port: Port = Field(8082, description="where probes and metrics listen", examples=["8082"])

    @field_validator("delivery")
    @classmethod
    def _delivery(cls, value: str) -> str:
        if value != "blpop":
            raise ValueError("the only way of delivery is `blpop`")
        return value

    @model_validator(mode="after")
    def _stop_after_send(self) -> Self:
        if self.send_timeout >= self.stop_timeout:
            raise ValueError(
                f"SEND_TIMEOUT: {self.send_timeout:g} s is not below STOP_TIMEOUT ({self.stop_timeout:g} s); "
                "set it lower, so that a stop can wait for what is being sent"
            )
        return self

    @property
    def block(self) -> float:
        """Seconds of one blocked pop: well below the deadline of any call, or every idle one would fail."""
        most = max(self.redis_timeout - 2, self.redis_timeout / 2)
        return min(self.blpop_timeout, most)

    @property
    def name(self) -> str:
        return self.worker_name or self.hostname or socket.gethostname()

    def advice(self) -> list[Advice]:
        if math.isclose(self.block, self.blpop_timeout):
            return []
        text = f"BLPOP_TIMEOUT is capped at {self.block:g} s, since REDIS_TIMEOUT is {self.redis_timeout:g} s"
        return [Advice("W004", text, "raise REDIS_TIMEOUT too, or set BLPOP_TIMEOUT lower")]
