"""The source that is a running deployment: admin's REST API."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlencode

from pillarbox.client.rest_messages import RestMessages
from pillarbox.client.source import Mark
from pillarbox.errors import (
    AccessRefused,
    FingerprintRefused,
    PillarboxError,
    RequestRefused,
    SettingError,
    StorageUnavailable,
)
from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin, Progress, Which
from pillarbox.inbox.filtering import is_int64
from pillarbox.inbox.fingerprints import fingerprint_of

TOKEN = re.compile(r"\A[!-~]+\Z")
MOST_IDS = 1000
JOB_WAIT = 1
"""Seconds between two looks at a job that goes on; admin waits, not the client."""
TIMEOUT = 30.0
AWAY = "admin does not answer, or is slow; what was asked may have been done or not"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class Transport(Protocol):
    async def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        """Raises StorageUnavailable when no whole answer came within TIMEOUT."""

    async def close(self) -> None: ...


def headers(token: str) -> dict[str, str]:
    """Raises AccessRefused for what no header can hold; the token is not told."""
    if not TOKEN.match(token):
        raise AccessRefused("a token is of visible ASCII characters; this one has others")
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


class RestSource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.messages = RestMessages(self._ask, self._done)

    async def open(self) -> None: ...

    async def close(self) -> None:
        await self._transport.close()

    async def knows(self, bot_id: BotId) -> bool:
        """True for a token that may not read: what it may do it can do."""
        try:
            return await self._ask("GET", f"/bots/{bot_id}", missing=None) is not None
        except NoRight:
            return True

    async def page(self, bot_id: BotId, matching: Filter, mark: Mark) -> tuple[list[FailedUpdate], Mark]:
        if matching.update_ids == ():  # an address cannot say so
            return [], None
        query = _words(matching) | {"payload": "true"} | ({"after": mark} if mark else {})
        page = await self._ask("GET", f"/bots/{bot_id}/failed-updates?{urlencode(query, doseq=True)}")
        return [_failed(bot_id, item) for item in page["items"]], page["next"]

    async def requeue(self, bot_id: BotId, which: Which, progress: Progress) -> Moved:
        return await self._move("retry", bot_id, which, progress)

    async def discard(self, bot_id: BotId, which: Which, progress: Progress) -> Moved:
        return await self._move("discard", bot_id, which, progress)

    async def _move(self, act: str, bot_id: BotId, which: Which, progress: Progress) -> Moved:
        path = f"/bots/{bot_id}/failed-updates/{act}"
        if which is None:
            return _moved(await self._done(path, {"all": True}, progress))
        if isinstance(which, Filter):
            return _moved(await self._done(path, {"filter": _words(which)}, progress))
        ids = [update_id for update_id in dict.fromkeys(which) if is_int64(update_id)]
        parts = [ids[at : at + MOST_IDS] for at in range(0, len(ids), MOST_IDS)]
        moved = [_moved(await self._done(path, {"update_ids": part}, progress)) for part in parts]
        return Moved(
            sum(part.moved for part in moved),
            [update_id for part in moved for update_id in part.unknown]
            + [update_id for update_id in dict.fromkeys(which) if not is_int64(update_id)],
            [update_id for part in moved for update_id in part.running],
        )

    async def _done(self, path: str, choice: object, progress: Progress) -> dict[str, Any]:
        """What was moved. Looks at the job again and again where it becomes one."""
        found, told = await self._ask("POST", path, choice), 0
        while True:
            progress(found["moved"] - told)
            told = found["moved"]
            if "job" not in found:
                return dict(found)
            if found["state"] != "running":
                break
            found = await self._ask("GET", f"/jobs/{found['job']}?wait={JOB_WAIT}", missing=None)
            if found is None:
                raise StorageUnavailable(
                    f"admin was started again when {told} or more were moved; call again"
                )
        if found["result"] is None:
            raise StorageUnavailable(
                f"it stopped when {told} or more were moved; call again. {found['problem']}"
            )
        return dict(found["result"])

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        return _pin(await self._ask("GET", f"/bots/{bot_id}/pins/{user_id}", missing=None))

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str) -> Pin:
        body = {"fingerprint": fingerprint_of(fingerprint)}
        pin = _pin(await self._ask("PUT", f"/bots/{bot_id}/pins/{user_id}", body))
        if pin is None:
            raise FingerprintRefused("admin did not pin this key")
        return pin

    async def forget(self, bot_id: BotId, user_id: int) -> Pin | None:
        return _pin(await self._ask("DELETE", f"/bots/{bot_id}/pins/{user_id}", missing=None))

    async def _ask(self, method: str, path: str, body: object = None, **missing: None) -> Any:
        """`missing=None`: where the answer is 404 None is returned."""
        given = None if body is None else json.dumps(body).encode()
        answer = await self._transport.ask(method, f"/api/v1{path}", given)
        if 200 <= answer.status < 300:
            return _read(answer.body)
        if answer.status == 404 and "missing" in missing and _is_problem(answer.body):
            return None
        raise _refused(answer)


class NoRight(AccessRefused):
    """The token is known, and has not the right."""


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise SettingError("what answers at this address is not Pillarbox's admin; check it") from None


def _refused(answer: Answer) -> PillarboxError:
    if answer.status == 401:
        return AccessRefused("admin does not know this token; give one of its ADMIN_TOKENS")
    if answer.status == 403:
        return NoRight(_detail(answer.body) or "this token has no right to do that")
    if answer.status in (502, 503, 504):
        return StorageUnavailable(_detail(answer.body) or AWAY)
    detail = _detail(answer.body)
    if detail is None:
        return SettingError(
            f"what answers at this address ({answer.status}) is not Pillarbox's admin; check it"
        )
    return RequestRefused(answer.status, json.loads(answer.body))


def _detail(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, TypeError, KeyError):
        return None


def _is_problem(body: bytes) -> bool:
    return _detail(body) not in (None, "There is nothing at this address.")


def _words(matching: Filter) -> dict[str, str | int | Sequence[int]]:
    given: dict[str, str | int | Sequence[int] | None] = {
        "from": matching.since.isoformat() if matching.since else None,
        "to": matching.until.isoformat() if matching.until else None,
        "kind": matching.kind,
        "chat_id": matching.chat_id,
        "error": matching.error,
        "update_ids": matching.update_ids,
    }
    return {name: value for name, value in given.items() if value is not None}


def _failed(bot_id: BotId, item: Mapping[str, Any]) -> FailedUpdate:
    return FailedUpdate(
        row=RowId(item["row"]),
        bot_id=bot_id,
        update_id=UpdateId(item["update_id"]),
        kind=item["kind"],
        lane=item["lane"],
        chat_id=item["chat_id"],
        user_id=item["user_id"],
        accepted_at=_time(item["accepted_at"]),
        failed_at=_time(item["failed_at"]),
        runs=item["runs"],
        error=item["error"],
        body=base64.b64decode(item["payload_base64"]),
        sealed=item["sealed"],
    )


def _moved(result: Mapping[str, Any]) -> Moved:
    return Moved(result["moved"], result["unknown"], result["running"])


def _pin(found: Mapping[str, Any] | None) -> Pin | None:
    if found is None:
        return None
    return Pin(found["user_id"], found["fingerprint"], _time(found["pinned_at"]))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
