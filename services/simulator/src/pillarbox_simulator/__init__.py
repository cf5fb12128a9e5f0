"""Telegram's Bot API for demo, tests and load: real HTTP, webhooks with retries, faults, and a ledger."""

from pillarbox_simulator.running import Running, running
from pillarbox_simulator.simulator import Simulator

__all__ = ["Running", "Simulator", "running"]
