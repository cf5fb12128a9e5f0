"""Failed updates with their payloads, a page of a bounded size at a time."""

from itertools import accumulate
from typing import Any

import msgspec
from fastapi import Response

from pillarbox.ids import BotId
from pillarbox.inbox import FailedUpdate, Filter, Storage
from pillarbox_admin import payload
from pillarbox_admin.cursor import Cursor
from pillarbox_admin.views import FailedUpdateInFull

LIMIT = 50
SIZE = 4 << 20
"""Bytes of bodies in a page; one body alone may be larger."""


async def page(storage: Storage, bot_id: BotId, asked: Filter, after: Cursor | None, limit: int) -> Response:
    before = after.place if after else None
    found = await storage.failed_updates(bot_id, before=before, limit=min(limit, LIMIT) + 1, matching=asked)
    fits = max(_fitting(found[: min(limit, LIMIT)]), min(len(found), 1))
    last = found[fits - 1] if fits < len(found) else None
    document = {
        "items": [of(failed) for failed in found[:fits]],
        "next": str(Cursor(last.failed_at, last.row)) if last else None,
    }
    return Response(msgspec.json.encode(document), media_type="application/json")


def of(found: Any) -> dict[str, Any]:
    """A row of the failed list, as JSON with the body in it byte for byte."""
    fields = {
        name: getattr(found, name)
        for name in FailedUpdateInFull.model_fields
        if not name.startswith("payload")
    }
    return fields | {"payload": payload.as_json(found.body), "payload_base64": payload.as_base64(found.body)}


def _fitting(found: list[FailedUpdate]) -> int:
    return sum(size <= SIZE for size in accumulate(len(failed.body) for failed in found))
