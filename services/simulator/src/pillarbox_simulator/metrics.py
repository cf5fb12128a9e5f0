"""Figures for `/metrics`, counted where they happen and only gathered here."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from pillarbox_simulator.simulator import Simulator


class Metrics(Collector):
    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "pillarbox_simulator_calls", "Bot API calls by status; 0: no answer", labels=["status"]
        )
        for status, count in self._simulator.ledger.statuses.items():
            calls.add_metric([str(status)], count)
        yield calls
        yield from self._updates()

    def _updates(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily(
            "pillarbox_simulator_updates_pending", "updates not taken yet", labels=["bot"]
        )
        lost = CounterMetricFamily(
            "pillarbox_simulator_updates_lost", "updates too old, or too many", labels=["bot", "reason"]
        )
        for bot in self._simulator.bots:
            pending.add_metric([str(bot.id)], len(bot.updates.pending))
            lost.add_metric([str(bot.id), "expired"], bot.updates.expired)
            lost.add_metric([str(bot.id), "overflowed"], bot.updates.overflowed)
        yield pending
        yield lost
