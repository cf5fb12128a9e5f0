"""What bots write, change and take back."""

from collections.abc import Callable
from typing import Any

from pillarbox_simulator import entities
from pillarbox_simulator.answers import bad_request
from pillarbox_simulator.call import Call
from pillarbox_simulator.chats import Chat, Message

MOST_TEXT = 4096
MOST_CAPTION = 1024
MOST_CALLBACK_DATA = 64

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup "
    "are exactly the same as a current content and reply markup of the message"
)


def send_message(call: Call) -> Message:
    chat = call.chat()
    content = text_of(call)
    content |= markup_of(call, chat) | reply_of(call, chat)
    return chat.add(call.bot.user, call.at, content)


def text_of(call: Call) -> dict[str, Any]:
    text, found = _written(call, "text", "entities")
    if not text:
        raise bad_request("message text is empty")
    if len(text) * 2 > MOST_TEXT and entities.units(text) > MOST_TEXT:
        raise bad_request("message is too long")
    return {"text": text, "entities": found} if found else {"text": text}


def caption_of(call: Call) -> dict[str, Any]:
    text, found = _written(call, "caption", "caption_entities")
    if entities.units(text) > MOST_CAPTION:
        raise bad_request("message caption is too long")
    content: dict[str, Any] = {"caption": text} if text else {}
    return content | ({"caption_entities": found} if found else {})


def _written(call: Call, name: str, entities_name: str) -> tuple[str, list[entities.Entity]]:
    text = call.params.get(name)
    if text is None:
        return "", []
    if not isinstance(text, str):
        text = str(text)
    found = call.params.get(entities_name) or []
    mode = call.params.get("parse_mode")
    if mode:
        text, found = entities.plain(text, str(mode))
    return (text if found else text.strip()), found


def markup_of(call: Call, chat: Chat) -> dict[str, Any]:
    """An inline keyboard belongs to the message; the other kinds lie below the chat."""
    markup = call.params.get("reply_markup")
    if not markup:
        return {}
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    if "inline_keyboard" in markup:
        return {"reply_markup": inline_keyboard(markup)}
    if "keyboard" in markup:
        chat.lay(markup)
    elif markup.get("remove_keyboard"):
        chat.lay(None)
    return {}


def inline_keyboard(markup: dict[str, Any]) -> dict[str, Any]:
    for row in markup["inline_keyboard"]:
        for button in row:
            if len(str(button.get("callback_data", "")).encode()) > MOST_CALLBACK_DATA:
                raise bad_request("BUTTON_DATA_INVALID")
    return {"inline_keyboard": markup["inline_keyboard"]}


def reply_of(call: Call, chat: Chat) -> dict[str, Any]:
    reply = call.params.get("reply_parameters") or {"message_id": call.params.get("reply_to_message_id")}
    if not isinstance(reply, dict) or reply.get("message_id") is None:
        return {}
    target = chat.messages.get(int(reply["message_id"]))
    if target is None:
        if reply.get("allow_sending_without_reply") or call.params.get("allow_sending_without_reply"):
            return {}
        raise bad_request("message to be replied not found")
    return {"reply_to_message": {key: part for key, part in target.items() if key != "reply_to_message"}}


def edit_text(call: Call) -> Message | bool:
    return _edit(call, ("text", "entities"), text_of)


def edit_caption(call: Call) -> Message | bool:
    return _edit(call, ("caption", "caption_entities"), caption_of)


def edit_markup(call: Call) -> Message | bool:
    return _edit(call, (), lambda call: {})


def _edit(call: Call, replaced: tuple[str, ...], content_of: Callable[[Call], Message]) -> Message | bool:
    if call.params.get("inline_message_id"):
        return True
    chat = call.chat()
    before = chat.messages.get(call.number("message_id"))
    if before is None:
        raise bad_request("message to edit not found")
    if before["from"]["id"] != call.bot.id:
        raise bad_request("message can't be edited")
    kept = {key: part for key, part in before.items() if key not in (*replaced, "reply_markup", "edit_date")}
    after: Message = kept | content_of(call) | markup_of(call, chat)
    if after == {key: part for key, part in before.items() if key != "edit_date"}:
        raise bad_request(NOT_MODIFIED)
    after["edit_date"] = int(call.at)
    chat.put(after)
    return after


def delete(call: Call) -> bool:
    if not call.chat().remove(call.number("message_id")):
        raise bad_request("message to delete not found")
    return True


def delete_many(call: Call) -> bool:
    chat = call.chat()
    for message_id in call.listed("message_ids"):
        chat.remove(int(message_id))
    return True


def forward(call: Call) -> Message:
    return call.chat().add(call.bot.user, call.at, _copied(call) | {"forward_date": int(call.at)})


def copy(call: Call) -> dict[str, int]:
    chat = call.chat()
    content = _copied(call) | markup_of(call, chat)
    return {"message_id": chat.add(call.bot.user, call.at, content)["message_id"]}


def _copied(call: Call) -> dict[str, Any]:
    message = call.chat("from_chat_id").messages.get(call.number("message_id"))
    if message is None:
        raise bad_request(f"message to {'copy' if call.method == 'copyMessage' else 'forward'} not found")
    own = ("message_id", "from", "chat", "date", "edit_date", "reply_markup", "reply_to_message")
    return {key: part for key, part in message.items() if key not in own}
