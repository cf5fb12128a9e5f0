"""The settings of whoever runs the tests must not leak into them."""

import os

from pillarbox.settings import Settings

SERVICES = ("INGEST", "DISPATCHER", "SENDER", "ADMIN", "SIMULATOR")
NAMES = {
    "DATABASE_URL", "DATABASE_DIRECT_URL", "STORAGE", "ALLOW_UNSAFE_DURABILITY", "REDIS_URL", "BOT_TOKENS",
    "RECEIVE", "WEBHOOK_URL", "WEBHOOK_SECRET", "ALLOWED_UPDATES", "WEBHOOK_MAX_CONNECTIONS", "POLL_TIMEOUT",
    "DELETE_WEBHOOK", "LANE_BY",
    "TELEGRAM_API_BASE", "TELEGRAM_PROXY", "HANDLERS", "MAX_HANDLER_RUNS", "HANDLER_TIMEOUT", "CONCURRENCY",
    "LEASE", "ANSWERS", "MAX_FAILED", "MAX_MALFORMED", "MAX_DEAD", "SEEN_FOR", "PIN_KEYS",
    "REDIS_MESSAGES_KEY", "DELIVERY", "BLPOP_TIMEOUT", "REDIS_TIMEOUT", "WORKER_NAME", "ALLOW_PICKLE",
    "MAX_RETRIES", "SEND_TIMEOUT", "SEND_CONCURRENCY", "STOP_TIMEOUT", "LIMIT_CHAT", "LIMIT_GROUP",
    "LIMIT_BULK", "LIMIT_PAID", "MAX_MESSAGE", "ADMIN_TOKENS", "VALKEY_FOLDER", "VALKEY_PORT",
}  # fmt: skip


def scrub() -> None:
    """Takes every setting of ours, and its `_FILE` form, out of this process's environment."""
    names = NAMES | {f"{service}_{what}" for service in SERVICES for what in ("HOST", "PORT")}
    names |= {field.upper() for field in Settings.model_fields}
    for name in names | {f"{name}_FILE" for name in names}:
        os.environ.pop(name, None)
