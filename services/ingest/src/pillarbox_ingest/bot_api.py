"""The few calls of the Bot API that ingest makes (Bot API, "Making requests")."""

from collections.abc import Mapping
from typing import Any

import aiohttp
from pydantic import SecretStr

from pillarbox.ids import BotId
from pillarbox.said import Said, bounded, read

CONNECT_TIMEOUT = 10.0


class Refused(Exception):
    """Passing: Telegram, or what stands between, said no. The text is Telegram's description or a status."""

    def __init__(self, reason: str, after: float = 0.0, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after
        self.status = status


class Unauthorized(Exception):
    """Final: there is no bot with this token."""


class BotApi:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        base: str,
        tokens: Mapping[BotId, SecretStr],
        proxy: SecretStr | None = None,
    ) -> None:
        self._session = session
        self._base = base.rstrip("/")
        self._tokens = tokens
        self._proxy = proxy.get_secret_value() if proxy else None

    async def call(
        self, bot_id: BotId, method: str, parameters: Mapping[str, Any], timeout: float = 30.0
    ) -> bytes:
        """The body of an answer that says ok. Raises Refused and Unauthorized."""
        address = f"{self._base}/bot{self._tokens[bot_id].get_secret_value()}/{method}"
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)
        try:
            async with self._session.post(
                address, json=parameters, proxy=self._proxy, timeout=limit, allow_redirects=False
            ) as answer:
                status, body = answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # Its text may hold the address, and that the token.
            raise Refused(type(error).__name__) from None
        if status == 401:
            raise Unauthorized
        said = _said(body)
        if status != 200 or not said.ok:
            raise Refused(said.words or f"HTTP {status}", bounded(said.retry_after or 0.0), status)
        return body


def _said(body: bytes) -> Said:
    """What no parser takes may hold an update that is nested too deeply: then the first bytes tell."""
    return read(body) or Said(ok=body.startswith(b'{"ok":true,'))
