"""An HTTP protocol that can break a connection off: the caller sees a reset, as from a crashed server."""

import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

RESET = "pillarbox.reset"
LINGER = struct.pack("ii", 1, 0)
"""With it the kernel sends RST instead of a clean end."""


class ResettingProtocol(HttpToolsProtocol):
    """Each request's scope has the extension `pillarbox.reset`, a function."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions: dict[str, Any] = {RESET: self._reset}
        self.scope["extensions"] = extensions

    def _reset(self) -> None:
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        self.transport.abort()
