"""Admin over HTTP, for asyncio."""

import aiohttp
from yarl import URL

from pillarbox.client.rest import AWAY, TIMEOUT, Answer, headers
from pillarbox.errors import SettingError, StorageUnavailable


class AiohttpTransport:
    """Connects with the first call, in the loop that it is called in."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = headers(token)
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(TIMEOUT))
        try:
            async with self._session.request(
                method,
                URL(self._url + path, encoded=True),
                data=body,
                headers=self._headers,
                allow_redirects=False,
            ) as response:
                return Answer(response.status, await response.read())
        except (aiohttp.InvalidURL, ValueError):
            raise SettingError("this is no address of admin; give it as http://host:8083") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise StorageUnavailable(AWAY) from error

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
