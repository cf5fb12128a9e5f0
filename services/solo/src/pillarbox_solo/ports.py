"""Ports on the loopback address."""

import random
import socket
from collections.abc import Container

HOST = "127.0.0.1"
# Below the range that the kernel takes for outgoing connections (32768 and up): while a server is down, a
# client that tries to reach it again can neither be given its port nor connect to itself.
RANGE = range(15_000, 32_000)


def is_free(port: int) -> bool:
    """True when a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(preferred: int = 0, taken: Container[int] = ()) -> int:
    """`preferred` if it is free and not in `taken`, else some other port that is."""
    if preferred and preferred not in taken and is_free(preferred):
        return preferred
    while True:
        port = random.choice(RANGE)  # noqa: S311 - no secret
        if port not in taken and is_free(port):
            return port
