"""The run that the code which is executed now belongs to, as long as that run goes on."""

from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Self

from pillarbox_dispatcher.outbox import Outbox
from pillarbox_dispatcher.states import States


@dataclass(slots=True)
class Current:
    """What leaves with the run's end. Tasks that a handler leaves behind still see it, but closed.

    As a context manager it is the run of what is executed inside.
    """

    outbox: Outbox
    states: States
    is_open: bool = True
    _before: "Token[Current | None] | None" = None

    def __enter__(self) -> Self:
        self._before = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False
        if self._before is not None:
            _current.reset(self._before)

    def discard(self) -> None:
        self.outbox.clear()
        self.states.discard()


_current: ContextVar[Current | None] = ContextVar("pillarbox_run", default=None)


def current() -> Current | None:
    run = _current.get()
    return run if run is not None and run.is_open else None
