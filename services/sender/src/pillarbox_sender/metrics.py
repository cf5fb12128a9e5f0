"""What the sender counts."""

from prometheus_client import Counter, Gauge, Histogram

from pillarbox.outbound.depths import Depths

SENDS = Counter("pillarbox_sends", "Sends by their end", ["end", "kind"])
SEND_SECONDS = Histogram(
    "pillarbox_send_seconds",
    "Seconds from request to answer",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
FLOODS = Counter("pillarbox_floods", "Answers of 429", ["kind"])
PAUSES = Counter("pillarbox_bot_pauses", "Pauses of a bot that this worker began", ["kind"])
FILED = Counter("pillarbox_filed", "Elements taken from a door, by what became of them", ["door", "fate"])
TAKEN_OVER = Counter("pillarbox_taken_over", "Messages of dead workers, by what became of them", ["fate"])
LOST = Counter("pillarbox_lost_claims", "Ends of sends that another worker had taken over")
HANDED = Counter("pillarbox_handed_claims", "Claims that were handed to this worker while it was idle")
IN_FLIGHT = Gauge("pillarbox_sends_in_flight", "Calls that are out now")
DOOR = Gauge("pillarbox_door_depth", "Elements that wait in a door", ["door"])
WAITING = Gauge("pillarbox_lanes_depth", "Messages in lanes", ["bot", "kind"])
DELAYED = Gauge("pillarbox_delayed_depth", "Messages that are not due yet", ["bot"])
OLDEST = Gauge("pillarbox_oldest_waiting_seconds", "The longest wait among the lanes next in turn", ["bot"])
UNSERVED = Gauge("pillarbox_bot_unserved", "1: messages wait, and no sender has the bot's token", ["bot"])
DEAD = Gauge("pillarbox_dead_messages", "Dead messages that are kept", ["bot"])
BURIED = Gauge("pillarbox_messages_died", "Messages that died, ever, by reason", ["reason"])
ACTS = Gauge("pillarbox_message_acts", "Messages that people acted on, ever, by act", ["act"])
TRIMMED = Gauge("pillarbox_dead_trimmed", "Dead messages that were forgotten, ever")


def show(found: Depths) -> None:
    for door, length in found.doors.items():
        DOOR.labels("bulk" if door.endswith(":bulk") else "main").set(length)
    for bot, depth in found.bots.items():
        for kind, waiting in depth.waiting.items():
            WAITING.labels(bot, kind).set(waiting)
        DELAYED.labels(bot).set(depth.delayed)
        OLDEST.labels(bot).set(depth.oldest)
        DEAD.labels(bot).set(depth.dead)
    for reason, count in found.buried.items():
        BURIED.labels(reason).set(count)
    for act, count in found.acts.items():
        ACTS.labels(act).set(count)
    TRIMMED.set(found.trimmed)
