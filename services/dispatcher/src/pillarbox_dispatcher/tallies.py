"""Metrics that are written for every update: by the loop's thread alone, so without the locks of others.

Three observations by prometheus_client cost as much as a tenth of what aiogram needs for an update.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class Seconds(Collector):
    """A histogram."""

    def __init__(
        self, name: str, meaning: str, bounds: Sequence[float], registry: CollectorRegistry = REGISTRY
    ) -> None:
        self._name = name
        self._meaning = meaning
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def collect(self) -> Iterator[Metric]:
        names = (*(str(float(bound)) for bound in self._bounds), "+Inf")
        buckets = list(zip(names, accumulate(self._counts), strict=True))
        yield HistogramMetricFamily(self._name, self._meaning, buckets=buckets, sum_value=self._sum)


class Tally(Collector):
    """A counter with labels."""

    def __init__(
        self, name: str, meaning: str, labels: Sequence[str], registry: CollectorRegistry = REGISTRY
    ) -> None:
        self._name = name
        self._meaning = meaning
        self._labels = tuple(labels)
        self._counts: Counter[tuple[str | int, ...]] = Counter()
        registry.register(self)

    def add(self, *labels: str | int) -> None:
        self._counts[labels] += 1

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._meaning, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric([str(label) for label in labels], count)
        yield family
