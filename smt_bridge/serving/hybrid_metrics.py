"""Prometheus metrics of hybrids: the state of their Moses, and what was translated without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from smt_bridge.hybrid.chooser import GIVEN_UP, UNTRANSLATED
from smt_bridge.serving.moses_queue import MosesQueue

WITHOUT_GRAPH = "without_graph"
"""What sentences count as that have a list of Moses, but none of its search graph."""


class HybridMetrics(Collector):
    """Sums over ``queues``, and ``degraded`` sentences by model and reason, as they are when somebody asks."""

    def __init__(self, queues: Sequence[MosesQueue], degraded: Mapping[str, Counter[str]]) -> None:
        self._queues, self._degraded = queues, degraded

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        queues = list(self._queues)
        yield CounterMetricFamily(
            "moses_restarts", "Moses started in place of one that ended or hung", sum(one.restarts for one in queues)
        )
        yield CounterMetricFamily(
            "moses_given_up_sentences", "Sentences that ended Moses twice", sum(one.given_up for one in queues)
        )
        yield CounterMetricFamily(
            "moses_failures", "Times that Moses could not be used at all", sum(one.failures for one in queues)
        )
        yield GaugeMetricFamily(
            "moses_waiting_sentences", "Sentences that Moses does not have yet", sum(one.waiting for one in queues)
        )
        family = CounterMetricFamily(
            "hybrid_degraded_sentences", "Sentences translated without Moses", labels=["model", "reason"]
        )
        for model, reasons in self._degraded.items():
            for reason in ("failed", GIVEN_UP, UNTRANSLATED):
                family.add_metric([model, reason], reasons[reason])
        yield family
        family = CounterMetricFamily(
            "hybrid_sentences_without_graph", "Sentences whose search graph could not be used", labels=["model"]
        )
        for model, reasons in self._degraded.items():
            family.add_metric([model], reasons[WITHOUT_GRAPH])
        yield family
