"""The lane of an update of each kind (Bot API, "Update"): its chat's, else its user's, else its own."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

LaneBy = Literal["chat", "chat_user"]
Path = tuple[str, ...]

CHAT: Path = ("chat", "id")
CHAT_OF_MESSAGE: Path = ("message", "chat", "id")
VOTER_CHAT: Path = ("voter_chat", "id")
FROM: Path = ("from", "id")
USER: Path = ("user", "id")

PATHS = (CHAT, CHAT_OF_MESSAGE, VOTER_CHAT, FROM, USER)


class Where(NamedTuple):
    """Where a kind keeps its chat and its user, the first that is there."""

    chat: tuple[Path, ...] = ()
    user: tuple[Path, ...] = ()


MESSAGE = Where((CHAT,), (FROM,))
QUERY = Where((), (FROM,))

KINDS: Mapping[str, Where] = {
    "message": MESSAGE,
    "edited_message": MESSAGE,
    "channel_post": MESSAGE,
    "edited_channel_post": MESSAGE,
    "business_connection": Where((), (USER,)),
    "business_message": MESSAGE,
    "edited_business_message": MESSAGE,
    "deleted_business_messages": Where((CHAT,)),
    "guest_message": MESSAGE,
    "message_reaction": Where((CHAT,), (USER,)),
    "message_reaction_count": Where((CHAT,)),
    "inline_query": QUERY,
    "chosen_inline_result": QUERY,
    # The button of an inline message has no chat.
    "callback_query": Where((CHAT_OF_MESSAGE,), (FROM,)),
    "shipping_query": QUERY,
    "pre_checkout_query": QUERY,
    "purchased_paid_media": QUERY,
    "poll": Where(),
    # An anonymous voter's `user` is a stand-in, the same for all of them.
    "poll_answer": Where((VOTER_CHAT,), (USER,)),
    "my_chat_member": MESSAGE,
    "chat_member": MESSAGE,
    "chat_join_request": MESSAGE,
    "chat_boost": Where((CHAT,)),
    "removed_chat_boost": Where((CHAT,)),
    "managed_bot": Where((), (USER,)),
    "subscription": Where((), (USER,)),
    "stopped_message_generation": Where((CHAT,)),
}
# A kind that is newer than this table.
UNKNOWN = Where((CHAT, CHAT_OF_MESSAGE), (FROM, USER))


class Place(NamedTuple):
    lane: str
    chat_id: int | None
    user_id: int | None


def place(kind: str, update_id: int, ids: Mapping[Path, int], by: LaneBy = "chat") -> Place:
    where = KINDS.get(kind, UNKNOWN)
    chat_id = _first(where.chat, ids)
    user_id = _first(where.user, ids)
    if chat_id is not None:
        # Only a private chat has a positive id (Bot API, "Chat"), and there the chat is the user.
        apart = by == "chat_user" and chat_id < 0 and user_id is not None
        return Place(f"chat:{chat_id}:user:{user_id}" if apart else f"chat:{chat_id}", chat_id, user_id)
    if user_id is not None:
        return Place(f"user:{user_id}", None, user_id)
    return Place(f"update:{update_id}", None, None)


def _first(paths: tuple[Path, ...], ids: Mapping[Path, int]) -> int | None:
    for path in paths:
        if path in ids:
            return ids[path]
    return None
