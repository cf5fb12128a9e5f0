"""While a process loads its modules, which takes a dispatcher seconds."""

import os
import signal


def stop_ends_it() -> None:
    """SIGTERM and SIGINT end the process at once, as a clean stop: it has begun nothing. `process.run` then
    takes them over.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
