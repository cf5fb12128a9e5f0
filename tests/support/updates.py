"""Updates as Telegram sends them."""

import json
from typing import Any


def message(update_id: int, chat_id: int, text: str, **more: Any) -> bytes:
    body = {
        "update_id": update_id,
        "message": {
            "message_id": update_id,
            "date": 1_700_000_000,
            "chat": {"id": chat_id, "type": "private", "first_name": "A"},
            "from": {"id": chat_id, "is_bot": False, "first_name": "A"},
            "text": text,
            **more,
        },
    }
    return json.dumps(body, ensure_ascii=False).encode()


def callback(update_id: int, chat_id: int, data: str) -> bytes:
    person = {"id": chat_id, "is_bot": False, "first_name": "A"}
    button = {"id": str(update_id), "from": person, "chat_instance": "1", "data": data}
    return json.dumps({"update_id": update_id, "callback_query": button}).encode()
