"""Pillarbox: a durable inbox and outbox for Telegram bots. This package holds what its services share."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pillarbox.client import Client, SyncClient

__all__ = ["Client", "SyncClient"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Loaded when asked for: no service needs them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pillarbox import client

    return getattr(client, name)
