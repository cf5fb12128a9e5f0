"""What a bot asks about itself and its chats, and the methods that only need to be heard."""

from collections.abc import Callable
from typing import Any

from pillarbox_simulator.answers import bad_request
from pillarbox_simulator.call import Call
from pillarbox_simulator.chats import Message, user

TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


def get_me(call: Call) -> dict[str, Any]:
    abilities = ("can_join_groups", "can_read_all_group_messages", "supports_inline_queries")
    return call.bot.user | dict.fromkeys(abilities, True)


def answer_callback_query(call: Call) -> bool:
    """Once for each query (Bot API, answerCallbackQuery)."""
    chat_id = call.bot.queries.pop(str(call.params.get("callback_query_id")), None)
    if chat_id is None:
        raise bad_request(TOO_OLD)
    told = {"text": call.params.get("text") or "", "show_alert": bool(call.params.get("show_alert"))}
    call.bot.updates.changes.publish("answered", call.bot.id, chat_id, told)
    return True


def send_chat_action(call: Call) -> bool:
    chat = call.chat()
    chat.changes.publish("action", call.bot.id, chat.id, str(call.params.get("action", "typing")))
    return True


def set_my_commands(call: Call) -> bool:
    return _keep_commands(call, call.listed("commands"))


def _keep_commands(call: Call, commands: list[dict[str, Any]]) -> bool:
    call.bot.commands = commands
    call.bot.updates.changes.publish("commands", call.bot.id, commands)
    return True


def get_my_commands(call: Call) -> list[dict[str, Any]]:
    return call.bot.commands


def delete_my_commands(call: Call) -> bool:
    return _keep_commands(call, [])


def get_chat(call: Call) -> dict[str, Any]:
    gifts = (
        "unlimited_gifts",
        "limited_gifts",
        "unique_gifts",
        "premium_subscription",
        "gifts_from_channels",
    )
    full = {
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(gifts, False),
    }
    return call.chat().face | full


def get_chat_member(call: Call) -> dict[str, Any]:
    return {"status": "member", "user": user(call.number("user_id"))}


def send_anything(call: Call) -> Message:
    """A send without a deep model: a message that holds what the call said under the method's own word."""
    field = call.method.removeprefix("send").lower()
    own = {key: value for key, value in call.params.items() if key not in ("chat_id", "reply_markup")}
    if field == "dice":
        own = {"emoji": own.get("emoji", "🎲"), "value": 1 + int(call.at) % 6}
    return call.chat().add(call.bot.user, call.at, {field: own})


SHALLOW: dict[str, Callable[[Call], Any]] = {
    "getChatMemberCount": lambda call: 2,
    "getChatAdministrators": lambda call: [],
    "getUserProfilePhotos": lambda call: {"total_count": 0, "photos": []},
    "getMyName": lambda call: {"name": call.bot.user["first_name"]},
    "getMyDescription": lambda call: {"description": ""},
    "getMyShortDescription": lambda call: {"short_description": ""},
    "getChatMenuButton": lambda call: {"type": "commands"},
    "getMyStarBalance": lambda call: {"amount": 0},
    "getForumTopicIconStickers": lambda call: [],
    "getCustomEmojiStickers": lambda call: [],
    "exportChatInviteLink": lambda call: "https://t.me/+simulated",
    "createInvoiceLink": lambda call: "https://t.me/$simulated",
}
MESSAGES = (
    "sendLocation",
    "sendVenue",
    "sendContact",
    "sendPoll",
    "sendDice",
    "sendGame",
    "sendInvoice",
    "sendChecklist",
)
