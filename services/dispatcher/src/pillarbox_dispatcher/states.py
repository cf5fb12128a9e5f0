"""FSM state as one run sees it: what it read, and over that what it wrote so far."""

from pillarbox.inbox import FsmKey, FsmValue, FsmWrite

Written = tuple[str | None, bytes | None]


class States:
    """Nothing is written before the run's end, and then only what differs from what was read."""

    def __init__(self) -> None:
        self._read: dict[FsmKey, FsmValue] = {}
        self._written: dict[FsmKey, Written] = {}

    def knows(self, key: FsmKey) -> bool:
        return key in self._read

    def learn(self, key: FsmKey, value: FsmValue) -> None:
        """The first value counts: later ones would hide that another has written meanwhile."""
        self._read.setdefault(key, value)

    def get(self, key: FsmKey) -> Written:
        if (written := self._written.get(key)) is not None:
            return written
        read = self._read[key]
        return read.state, read.data

    def put(self, key: FsmKey, state: str | None, data: bytes | None) -> None:
        self._written[key] = (state, data)

    def discard(self) -> None:
        self._written.clear()

    def writes(self) -> tuple[FsmWrite, ...]:
        if not self._written:
            return ()
        return tuple(
            FsmWrite(key, read.version, *written)
            for key, written in self._written.items()
            if written != ((read := self._read[key]).state, read.data)
        )
