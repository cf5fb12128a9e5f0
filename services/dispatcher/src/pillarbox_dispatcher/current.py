"""The run that the code which is executed now belongs to, as long as that run goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pillarbox_dispatcher.outbox import Outbox
from pillarbox_dispatcher.states import States


@dataclass(slots=True)
class Current:
    """What leaves with the run's end. Tasks that a handler leaves behind still see it, but closed."""

    outbox: Outbox
    states: States
    is_open: bool = True

    def discard(self) -> None:
        self.outbox.clear()
        self.states.discard()


_current: ContextVar[Current | None] = ContextVar("pillarbox_run", default=None)


def current() -> Current | None:
    run = _current.get()
    return run if run is not None and run.is_open else None


@contextmanager
def running(run: Current) -> Iterator[None]:
    token = _current.set(run)
    try:
        yield
    finally:
        run.is_open = False
        _current.reset(token)
