"""What makes an update a repeat of another, and what no database takes."""

import struct
from hashlib import blake2b

from pillarbox.inbox.states import Incoming

Key = tuple[int, int, bytes]

DIGEST = 16
INT8 = struct.Struct("!q")


def key(update: Incoming) -> Key:
    """What makes a repeat a repeat."""
    return update.bot_id, update.update_id, blake2b(update.body, digest_size=DIGEST).digest()


def storable(update: Incoming) -> bool:
    """Whether it can be written down for the database at all."""
    try:
        for number in (update.bot_id, update.update_id, update.chat_id, update.user_id):
            INT8.pack(number or 0)
        update.kind.encode()
        update.lane.encode()
    except (struct.error, UnicodeEncodeError):
        return False
    return True
