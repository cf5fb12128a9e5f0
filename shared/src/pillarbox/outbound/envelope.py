"""One outbound message on the wire: the only module that reads or writes it (DESIGN, Outbound)."""

from dataclasses import dataclass, field
from typing import Any, Literal

from pillarbox.ids import BotId

OnDoubt = Literal["resend", "drop", "hold"]


@dataclass(frozen=True, slots=True)
class Envelope:
    """A Bot API call to make. Times are Unix seconds; `params` are what the Bot API's JSON takes."""

    method: str
    params: dict[str, Any] = field(repr=False)
    bot: BotId | None = None
    id: str | None = None
    not_before: float | None = None
    expires_at: float | None = None
    on_doubt: OnDoubt = "resend"
    trace: str | None = None
