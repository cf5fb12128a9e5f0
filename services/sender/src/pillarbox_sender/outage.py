"""What fails again and again: one line when it begins, one when it is over, longer waits between."""

from dataclasses import dataclass, field

from pillarbox.backoff import Backoff
from pillarbox.errors import PillarboxError
from pillarbox.telemetry import get_logger

log = get_logger()


@dataclass(slots=True)
class Outage:
    """`begun` and `over` are the lines. Call `ended` after what shows that all of it works, not a part."""

    begun: str
    over: str
    known: dict[str, str] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)

    def failed(self, error: PillarboxError) -> float:
        """Seconds to wait before the next try."""
        if self.backoff.fresh:
            log.warning(self.begun, error=str(error), **self.known)
        return self.backoff.delay()

    def ended(self) -> None:
        if not self.backoff.fresh:
            log.info(self.over, **self.known)
        self.backoff.reset()
