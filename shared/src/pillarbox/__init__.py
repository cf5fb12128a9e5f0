"""Pillarbox: a durable inbox and outbox for Telegram bots. This package holds what its services share."""

__version__ = "0.1.0"
