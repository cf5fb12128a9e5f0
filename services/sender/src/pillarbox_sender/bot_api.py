"""Calls of the Bot API over HTTP. Nothing that comes from here holds an address: a token is in it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from pydantic import SecretStr
from yarl import URL

from pillarbox.errors import FileGone, QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.outbound.files import File, Files
from pillarbox.said import Said, read
from pillarbox_sender.upload import form

NEVER_LEFT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientProxyConnectionError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
CONNECT_TIMEOUT = 10.0
JSON = {"Content-Type": "application/json"}
UPLOADS = 4
"""One in so many of the calls that are out may hold files in memory, 20 MiB at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; `retry_after` is of the header. `body` is None where it could not be read; an
    answer is foreign where it is no JSON at all, so that it came from another server than a Bot API.
    """

    status: int
    body: Said | None = field(repr=False)
    retry_after: float | None = None
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Unsent:
    """The request never left us."""

    error: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """The request may have reached the Bot API; there was no HTTP answer."""

    error: str


@dataclass(frozen=True, slots=True)
class NoFile:
    """A file of the message is no longer there; nothing was sent."""


Outcome = Answer | Unsent | Doubt | NoFile


class BotApi:
    """Open it in a running loop: `async with BotApi(...) as api`."""

    def __init__(
        self,
        base: str,
        bots: Mapping[BotId, SecretStr],
        *,
        timeout: float,
        concurrency: int,
        proxy: SecretStr | None = None,
        files: Files | None = None,
        upload_timeout: float = 300.0,
    ) -> None:
        self._base = base.rstrip("/")
        self._bots = bots
        self._timeout = aiohttp.ClientTimeout(total=timeout, connect=min(CONNECT_TIMEOUT, timeout))
        self._concurrency = concurrency
        self._proxy = proxy.get_secret_value() if proxy else None
        self._files = files
        self._upload_timeout = aiohttp.ClientTimeout(total=upload_timeout, connect=self._timeout.connect)
        self._uploads = asyncio.Semaphore(max(1, concurrency // UPLOADS))
        self._urls: dict[tuple[BotId, str], URL] = {}

    async def __aenter__(self) -> "BotApi":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._concurrency, ttl_dns_cache=60),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent",),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, bot: BotId, method: str, params: Mapping[str, object] | None = None) -> Outcome:
        """One request. Never raises for what the network or the server does."""
        data = msgspec.json.encode(params or {})
        return await self._post(self._url(bot, method), data, JSON, self._timeout)

    async def upload(
        self, bot: BotId, method: str, params: Mapping[str, Any], files: Mapping[str, File]
    ) -> Outcome:
        """As `call`, with the bytes of these files."""
        async with self._uploads:
            try:
                contents = await self._kept.read(files)
            except FileGone:
                return NoFile()
            except QueueUnavailable as error:
                return Unsent(str(error))
            data = form(params, files, contents)
            return await self._post(self._url(bot, method), data, {}, self._upload_timeout)

    async def sent(self, files: Mapping[str, File]) -> None:
        """Their message is sent: what is for it alone is let go. Raises QueueUnavailable."""
        await self._kept.sent(files.values())

    @property
    def _kept(self) -> Files:
        if self._files is None:
            raise TypeError("this client was not given files")
        return self._files

    async def _post(
        self,
        url: URL,
        data: bytes | aiohttp.FormData,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> Outcome:
        try:
            async with self._session.post(
                url, data=data, headers=headers, proxy=self._proxy, allow_redirects=False, timeout=timeout
            ) as response:
                return await _answer(response)
        except NEVER_LEFT as error:
            return Unsent(type(error).__name__)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Doubt(type(error).__name__)

    def _url(self, bot: BotId, method: str) -> URL:
        url = self._urls.get((bot, method))
        if url is None:
            if len(self._urls) > 1000:
                self._urls.clear()
            url = URL(f"{self._base}/bot{self._bots[bot].get_secret_value()}/{method}", encoded=True)
            self._urls[bot, method] = url
        return url


async def _answer(response: aiohttp.ClientResponse) -> Answer:
    """Once there is a status there is an answer, whatever becomes of its body."""
    try:
        raw = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        raw = b""
    body = read(raw)
    foreign = body is None and raw.lstrip()[:1] not in (b"", b"{")
    return Answer(response.status, body, _seconds(response.headers.get("Retry-After")), foreign)


def _seconds(value: str | None) -> float | None:
    return float(value) if value and value.isdecimal() else None
