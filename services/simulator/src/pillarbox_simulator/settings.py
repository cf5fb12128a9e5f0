"""The simulator's settings: every one has a default, so that it starts with nothing set."""

from pathlib import Path

from pydantic import Field

from pillarbox.settings import Port, Settings, Tokens


class SimulatorSettings(Settings):
    simulator_host: str = Field("0.0.0.0", description="the address to listen on", examples=["127.0.0.1"])
    simulator_port: Port = Field(8084, description="the port to listen on", examples=["8084"])
    bot_tokens: Tokens = Field(
        [],
        description="the bots that exist; without any, every well-formed token is one",
        examples=["123456:ABC-def"],
    )
    simulator_data: Path | None = Field(
        None,
        description="a folder for what survives a restart: update ids, undelivered updates, webhooks, chats",
        examples=["/var/lib/pillarbox-simulator"],
    )
    simulator_ledger: int = Field(
        1_000_000, ge=1, description="calls kept in the ledger, the newest", examples=["1000000"]
    )
