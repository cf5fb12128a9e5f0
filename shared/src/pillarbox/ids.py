"""The ids that travel between the services."""

from typing import NewType

BotId = NewType("BotId", int)
"""The digits before the colon of a bot's token."""

UpdateId = NewType("UpdateId", int)
"""`update_id` as Telegram gave it, of one bot. It is no order: after an idle week it jumps, also down."""

RowId = NewType("RowId", int)
"""The row of one accepted update: our own number, and the order of acceptance inside a lane."""

Token = NewType("Token", int)
"""The fence of one lease. Never used twice."""
