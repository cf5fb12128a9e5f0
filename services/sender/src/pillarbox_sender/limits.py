"""How fast the sender may call: written to the queue, where one place in the scripts asks it for all."""

from typing import Annotated

import msgspec
from pydantic import Field

from pillarbox.settings import Seconds, Settings

Rate = Annotated[float, Field(ge=0, le=1_000_000)]
Calls = Annotated[int, Field(ge=0, le=100_000)]


class LimitSettings(Settings):
    """Telegram's own (Bots FAQ, "My bot is hitting limits"). The last worker's to beat hold for all."""

    limit_chat: Rate = Field(1.0, description="messages a second to one chat; 0: no limit", examples=["1"])
    limit_chat_burst: int = Field(
        3,
        ge=1,
        le=1000,
        description="messages to one chat that may go at once, after it was quiet",
        examples=["3"],
    )
    limit_group: Calls = Field(
        20,
        description="messages to one group or channel in LIMIT_GROUP_SECONDS; 0: no limit",
        examples=["20"],
    )
    limit_group_seconds: Seconds = Field(60.0, le=600, description="what LIMIT_GROUP is for", examples=["60"])
    limit_bulk: Calls = Field(
        30, description="bulk messages of a bot in any second; 0: no limit", examples=["30"]
    )
    limit_paid: Rate = Field(
        1000.0,
        description="bulk messages with allow_paid_broadcast of a bot a second; 0: no limit",
        examples=["1000"],
    )
    limit_bot: Rate = Field(
        300.0,
        description="calls of a bot a second, answers and paid ones apart; 0: no limit",
        examples=["300"],
    )

    @property
    def call_limits(self) -> bytes:
        """As the scripts of the queue read them."""
        return msgspec.msgpack.encode(
            {
                "chat": self.limit_chat,
                "chat_burst": self.limit_chat_burst,
                "group": self.limit_group,
                "group_ms": int(self.limit_group_seconds * 1000),
                "bulk": self.limit_bulk,
                "paid": self.limit_paid,
                "bot": self.limit_bot,
            }
        )
