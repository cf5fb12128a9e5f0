"""Files that bots send: every kind takes the same way."""

import secrets
from typing import Any

from pillarbox_simulator.answers import bad_request
from pillarbox_simulator.call import Call
from pillarbox_simulator.chats import Message
from pillarbox_simulator.messages import caption_of, markup_of, reply_of
from pillarbox_simulator.params import Upload

FIELDS = {
    "sendPhoto": "photo",
    "sendDocument": "document",
    "sendVideo": "video",
    "sendAudio": "audio",
    "sendVoice": "voice",
    "sendAnimation": "animation",
    "sendVideoNote": "video_note",
    "sendSticker": "sticker",
}
SHAPES: dict[str, dict[str, Any]] = {
    "photo": {"width": 320, "height": 240},
    "video": {"width": 320, "height": 240, "duration": 1},
    "animation": {"width": 320, "height": 240, "duration": 1},
    "audio": {"duration": 1},
    "voice": {"duration": 1},
    "video_note": {"length": 240, "duration": 1},
    "sticker": {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False},
}
ALBUM = range(2, 11)
FILES = 100
"""Uploads kept for one bot, the newest."""


def send_media(call: Call) -> Message:
    field = FIELDS[call.method]
    chat = call.chat()
    content = _content(call, field, call.params.get(field)) | caption_of(call)
    content |= markup_of(call, chat) | reply_of(call, chat)
    return chat.add(call.bot.user, call.at, content)


def send_album(call: Call) -> list[Message]:
    media = call.listed("media")
    if len(media) not in ALBUM:
        raise bad_request("wrong number of media: an album has 2 to 10")
    chat, group = call.chat(), str(secrets.randbits(62))
    contents = []
    for item in media:
        content = _content(call, item.get("type", "document"), item.get("media")) | {"media_group_id": group}
        contents.append(content | ({"caption": item["caption"]} if item.get("caption") else {}))
    return [chat.add(call.bot.user, call.at, content) for content in contents]


def _content(call: Call, field: str, value: Any) -> dict[str, Any]:
    if not value or not isinstance(value, str):
        raise bad_request(f"there is no {field.replace('_', ' ')} in the request")
    file = _file(call, value) | SHAPES.get(field, {})
    return {field: [file] if field == "photo" else file}


def _file(call: Call, value: str) -> dict[str, Any]:
    """A new upload, or a `file_id` or address, which is taken at its word."""
    if not value.startswith("attach://"):
        file_id = value if "://" not in value else secrets.token_urlsafe(24)
        return {"file_id": file_id, "file_unique_id": file_id[-12:]} | _named(call.bot.files.get(file_id))
    upload = call.uploads.get(value.removeprefix("attach://"))
    if upload is None:
        raise bad_request("wrong file identifier/HTTP URL specified")
    file_id = secrets.token_urlsafe(24)
    call.bot.files[file_id] = upload
    if len(call.bot.files) > FILES:
        del call.bot.files[next(iter(call.bot.files))]
    return {"file_id": file_id, "file_unique_id": file_id[-12:]} | _named(upload)


def _named(upload: Upload | None) -> dict[str, Any]:
    if upload is None:
        return {}
    return {"file_size": len(upload.data), "file_name": upload.filename, "mime_type": upload.kind}


def get_file(call: Call) -> dict[str, Any]:
    file_id = str(call.params.get("file_id", ""))
    upload = call.bot.files.get(file_id)
    if upload is None:
        raise bad_request("wrong file_id or the file is temporarily unavailable")
    size = len(upload.data)
    return {
        "file_id": file_id,
        "file_unique_id": file_id[-12:],
        "file_size": size,
        "file_path": f"files/{file_id}",
    }
