"""Which function answers which method. One that is not named here is accepted, recorded and answered True."""

from collections.abc import Callable
from typing import Any

from pillarbox_simulator import about, media, messages
from pillarbox_simulator.call import Call

Method = Callable[[Call], Any]


def heard(call: Call) -> bool:
    return True


METHODS: dict[str, Method] = {
    "getMe": about.get_me,
    "sendMessage": messages.send_message,
    "editMessageText": messages.edit_text,
    "editMessageCaption": messages.edit_caption,
    "editMessageReplyMarkup": messages.edit_markup,
    "deleteMessage": messages.delete,
    "deleteMessages": messages.delete_many,
    "forwardMessage": messages.forward,
    "copyMessage": messages.copy,
    "answerCallbackQuery": about.answer_callback_query,
    "sendChatAction": about.send_chat_action,
    "sendMediaGroup": media.send_album,
    "getFile": media.get_file,
    "setMyCommands": about.set_my_commands,
    "getMyCommands": about.get_my_commands,
    "deleteMyCommands": about.delete_my_commands,
    "getChat": about.get_chat,
    "getChatMember": about.get_chat_member,
    **dict.fromkeys(media.FIELDS, media.send_media),
    **dict.fromkeys(about.MESSAGES, about.send_anything),
    **about.SHALLOW,
}
