"""The page's cookie: who, until when, and a signature by a key of that holder's token."""

import hmac
import time
from collections.abc import Callable

from starlette.responses import Response

from pillarbox_admin.holders import Holder, Holders

COOKIE = "pillarbox_admin"
LASTS = 2 * 3600


class Sessions:
    def __init__(self, holders: Holders, clock: Callable[[], float] = time.time) -> None:
        self._holders = holders
        self._clock = clock

    def begin(self, response: Response, token: str, *, secure: bool) -> Holder | None:
        """Puts the cookie on `response`, when somebody holds this token."""
        holder = self._holders.with_token(token.encode("utf-8", "surrogatepass"))
        if holder is not None:
            value = self._signed(holder, int(self._clock()) + LASTS)
            response.set_cookie(
                COOKIE, value, max_age=LASTS, path="/", secure=secure, httponly=True, samesite="strict"
            )
        return holder

    def end(self, response: Response) -> None:
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")

    def holder(self, cookie: str | None) -> Holder | None:
        """Whose session it is; None when it is over, forged, or its token is no longer valid."""
        name, _, rest = (cookie or "").partition(":")
        until = rest.partition(":")[0]
        holder = self._holders.named(name)
        if holder is None or not (until.isascii() and until.isdigit() and len(until) < 12):
            return None
        expected = self._signed(holder, int(until)).encode()
        if not hmac.compare_digest(expected, (cookie or "").encode("utf-8", "surrogatepass")):
            return None
        return holder if self._clock() < int(until) else None

    @staticmethod
    def _signed(holder: Holder, until: int) -> str:
        value = f"{holder.name}:{until}"
        return f"{value}:{hmac.digest(holder.session_key, value.encode(), 'sha256').hex()}"
