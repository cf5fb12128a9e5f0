"""What ingest counts. Kinds that are newer than our table are counted together, so that labels stay few."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from pillarbox.ids import BotId
from pillarbox.inbox import Accepted, Incoming
from pillarbox_ingest.lanes import KINDS

UPDATES = Counter(
    "pillarbox_updates_received", "Updates by what accepting them said", ["bot", "kind", "outcome"]
)
MALFORMED = Counter("pillarbox_updates_malformed", "Bodies without a readable update", ["bot"])
ANSWERS = Counter("pillarbox_webhook_answers", "Answers of the webhook other than 200", ["status"])
COMMIT = Histogram(
    "pillarbox_accept_seconds",
    "One batch, from the statement to its commit",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
BATCH = Histogram(
    "pillarbox_accept_batch", "Updates of one batch", buckets=(1, 2, 5, 10, 25, 50, 100, 250, 500)
)
WAITING = Gauge("pillarbox_accept_waiting", "Updates that wait for a commit")
WAITING_BYTES = Gauge("pillarbox_accept_waiting_bytes", "Bytes of the updates that wait for a commit")
WEBHOOK = Gauge("pillarbox_webhook_registered", "Whether Telegram took our webhook's address", ["bot"])

POLLS = Counter("pillarbox_polls", "Calls of getUpdates by what came", ["bot", "outcome"])
POLL = Histogram(
    "pillarbox_poll_seconds",
    "One getUpdates that was answered with updates or none; most of it is waiting for the first",
    buckets=(0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 65),
)
POLLING = Gauge("pillarbox_polling", "Whether this process asks for the bot's updates, or stands by", ["bot"])
LAG = Gauge("pillarbox_poll_lag_seconds", "Age of the last update with a date, when it was stored", ["bot"])


def kind_label(kind: str) -> str:
    return kind if kind in KINDS else "other"


def count(answers: Iterable[tuple[BotId, str, Accepted]]) -> None:
    tally = Tally((bot_id, kind_label(kind), answer) for bot_id, kind, answer in answers)
    for (bot_id, kind, answer), times in tally.items():
        UPDATES.labels(bot_id, kind, answer.value).inc(times)


def count_batch(batch: Iterable[Incoming], answers: Iterable[Accepted]) -> None:
    count((update.bot_id, update.kind, answer) for update, answer in zip(batch, answers, strict=True))
