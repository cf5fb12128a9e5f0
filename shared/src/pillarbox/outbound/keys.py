"""Every key of the outbound queue. `Q` is REDIS_MESSAGES_KEY; a lane is `<bot>:<class>:<chat>`.

| key                        | type   | holds |
|----------------------------|--------|---|
| `Q`, `Q:bulk`              | list   | the doors, for everything and for broadcasts |
| `<door>:processing:<name>` | list   | taken from a door by a worker and not yet filed |
| `<door>:lists`             | set    | names whose processing list may hold something |
| `<door>:lease`             | hash   | who takes from the door: token, owner, until, connection |
| `<door>:kept`             | list   | elements that only a later run can read; in flight till then |
| `Q:lane:<lane>`            | list   | messages of a lane in order; only its head may be out |
| `Q:ready:<bot>:<class>`    | zset   | chats with work and no call out, by when they may be sent to |
| `Q:delayed:<bot>`          | zset   | messages that enter their lane when they are due |
| `Q:heads`                  | hash   | lane to `attempts unsent doubts` of its head, first and last error |
| `Q:workers`                | hash   | incarnation to name of each worker |
| `Q:heartbeat:<name>`       | string | the incarnation that lives under the name; expires |
| `Q:served:<bot>`           | string | a living worker has the bot's token; expires |
| `Q:claims:<incarnation>`   | hash   | lane to token of what is being sent; `kept <token>`: set aside |
| `Q:idle:<bot>`             | set    | incarnations that may have an offer for the bot; expires |
| `Q:offer:<incarnation>`    | hash   | of an idle worker: serial, slots left, name, at |
| `Q:hand:<incarnation>`     | list   | claims made for an idle worker, which blocks on it |
| `Q:limits`                 | string | what the senders are set to, packed |
| `Q:pace:<bot>[:<chat>]`    | string | when its burst is free again; its share of its rate; expires |
| `Q:pace:<bot>:paid`        | string | the same of its paid calls |
| `Q:window:<bot>:<chat>`    | zset   | calls that count in a group, or as `bulk`, by their end; expires |
| `Q:blocked:<bot>`          | hash   | chat to the time until which Telegram told us to wait |
| `Q:floods:<bot>`           | zset   | chats that were answered 429, by time: three in 5 s pause the bot |
| `Q:failing:<bot>`          | hash   | chats whose sends failed in a row, and how often; `row` |
| `Q:pause:<bot>`            | hash   | kind (flood, token, outage, trial), until, tries, lane |
| `Q:bell:<bot>`             | list   | one element when there may be work: idle workers block on it |
| `Q:id:<bot>:<id>`          | string | where a message with this id was filed to; expires after 24 h |
| `Q:file:<id>`              | string | the bytes of a file that messages name; expires |
| `Q:dead:<bot>`             | zset   | numbers of dead messages by time of death; `-` is no known bot |
| `Q:dead:<bot>:body`        | hash   | number to a line of JSON (reason, attempts, ...) and the message |
| `Q:buried`                 | hash   | reason to how many died of it |
| `Q:audit`                  | list   | what people did with messages, as JSON, the newest first; bounded |
| `Q:depth:<bot>`            | hash   | class to messages in lanes |
| `Q:bots`                   | set    | bots that ever had a message |
| `Q:numbers`                | hash   | counters: message, token, dead, trimmed; acts of people |

A claim in a hand is one line `<incarnation> TAB <serial of the offer> TAB <claimed, ms> TAB <lane> TAB
<token> TAB <counts of the head>` and, behind it, the message of its lane.
A message in a lane is one line `<number> TAB <filed, ms> TAB <on_doubt> TAB <id>` and, behind it, the element
as it came.
A lane that is not empty is either ready or claimed, never both: this is what the scripts keep.
Every time in Redis is in milliseconds of Redis's own clock.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that are used outside of the scripts, which derive the rest from the queue's name."""

    queue: str

    @property
    def doors(self) -> tuple[str, str]:
        return self.queue, f"{self.queue}:bulk"

    @property
    def workers(self) -> str:
        return f"{self.queue}:workers"

    def claims(self, incarnation: str) -> str:
        return f"{self.queue}:claims:{incarnation}"

    def hand(self, incarnation: str) -> str:
        return f"{self.queue}:hand:{incarnation}"

    def bell(self, bot: int) -> str:
        return f"{self.queue}:bell:{bot}"


@dataclass(frozen=True, slots=True)
class DoorKeys:
    door: str

    @property
    def lease(self) -> str:
        return f"{self.door}:lease"

    @property
    def lists(self) -> str:
        return f"{self.door}:lists"

    @property
    def kept(self) -> str:
        return f"{self.door}:kept"

    def processing(self, name: str) -> str:
        return f"{self.door}:processing:{name}"
