"""Slots that an idle worker offers: what is filed meanwhile is claimed for it at once and handed to it."""

from dataclasses import dataclass
from itertools import count

MOST_OFFERED = 8
"""Enough for what comes while a send is out; more would make a filing long, and Redis waits for it."""


@dataclass(slots=True)
class _Offer:
    until: float
    slots: int = 0


class Offers:
    """What this worker knows of its offers. One stands at a time; hands of those before may be on their way.

    A claim that is handed for an offer may be begun until `until` of the turn that made it: the heartbeat of
    that turn lives longer. Of an offer that is not known here any more nothing may be begun.
    """

    def __init__(self) -> None:
        self._offers: dict[str, _Offer] = {}
        self._standing: str | None = None
        self._serials = count(1)

    @property
    def slots(self) -> int:
        """That are kept free for what may be handed."""
        return sum(offer.slots for offer in self._offers.values())

    def __bool__(self) -> bool:
        return bool(self._offers)

    def make(self, until: float) -> str:
        """The serial of the offer that the next turn makes. Its slots are the turn's until that answers."""
        serial = str(next(self._serials))
        self._offers[serial] = _Offer(until)
        return serial

    def made(self, serial: str, slots: int, withdrawn: tuple[str, int] | None) -> bool:
        """The turn answered. False: Redis does not know the offer before it, so neither what was handed."""
        if serial not in self._offers:
            return True
        gone = self._standing is not None and (withdrawn is None or withdrawn[0] != self._standing)
        if withdrawn is not None:
            self._less(*withdrawn)
        self._less(serial, -slots)
        self._standing = serial if slots else None
        return not gone

    def take(self, serial: str) -> float | None:
        """One claim was handed. Until when it may be begun, or None where it may not."""
        offer = self._offers.get(serial)
        if offer is None:
            return None
        self._less(serial, 1)
        return offer.until

    def void(self) -> None:
        """A `restore` gives back what is handed from now on."""
        self._offers.clear()
        self._standing = None

    def _less(self, serial: str, slots: int) -> None:
        offer = self._offers.get(serial)
        if offer is not None:
            offer.slots -= slots
            if not offer.slots:
                del self._offers[serial]
