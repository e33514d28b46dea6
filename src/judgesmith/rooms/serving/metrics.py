"""Metrics of a server of judges for Prometheus."""

from __future__ import annotations

import os
from typing import Any, Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.price import price
from judgesmith.signatures.values import Verdict

#: Names the folder in which the processes of one server count together.
SHARED = "PROMETHEUS_MULTIPROC_DIR"
LATENCIES = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"judgesmith_{name}", about, labels, registry=self.registry)

        self.rows = counter("rows", "Rows that were judged.", "judge", "outcome")
        self.tokens = counter(
            "tokens", "Tokens of calls that were sent.", "judge", "kind"
        )
        self.cost = counter(
            "cost_dollars",
            "Dollars for calls that were sent, where the price is known.",
            "judge",
        )
        self.calls = counter("calls", "Calls that were sent to the model.", "judge")
        self.retries = counter("retries", "Calls that were sent again.", "judge")
        self.hits = counter(
            "cache_hits", "Calls that were answered from the disk.", "judge"
        )
        self.requests = counter(
            "http_requests", "Requests by route and status.", "route", "status"
        )
        self.deaths = counter(
            "worker_deaths", "Processes of this server that died and were replaced."
        )
        self.latency = Histogram(
            "judgesmith_row_seconds",
            "From a row's acceptance to its verdict.",
            ("judge",),
            buckets=LATENCIES,
            registry=self.registry,
        )

        def gauge(
            name: str, about: str, together: Literal["livesum", "livemin"], *labels: str
        ) -> Gauge:
            return Gauge(
                f"judgesmith_{name}",
                about,
                labels,
                registry=self.registry,
                multiprocess_mode=together,
            )

        self.queue = gauge(
            "queue_rows", "Rows accepted and not answered yet.", "livesum"
        )
        self.ready = gauge(
            "ready", "Whether the judge's model answers.", "livemin", "judge"
        )
        # Prometheus' look-up of a series by its labels is a tenth of what answering a row costs beside judging it.
        self._series: dict[tuple[Any, ...], Any] = {}

    def of(self, metric: Any, *labels: Any) -> Any:
        """Return the series of a metric with these labels."""
        key = (metric, *labels)
        if key not in self._series:
            self._series[key] = metric.labels(*labels)
        return self._series[key]

    def judged(self, name: str, model: str, verdict: Verdict, seconds: float) -> None:
        """Count a verdict."""
        self.of(self.latency, name).observe(seconds)
        self.of(self.rows, name, "failed" if verdict.failure else "scored").inc()
        usage = verdict.usage
        if usage.cached:
            self.of(self.hits, name).inc(usage.cached)
        if usage.calls:
            self.of(self.calls, name).inc(usage.calls)
            self.of(self.tokens, name, "prompt").inc(usage.prompt_tokens)
            self.of(self.tokens, name, "completion").inc(usage.completion_tokens)
            self.of(self.retries, name).inc(usage.retries)
            tokens = (usage.prompt_tokens, usage.completion_tokens)
            paid = price(model, Reply("", None, *tokens, usage.prefix_tokens))
            self.of(self.cost, name).inc(paid or 0.0)

    def unready(self) -> set[str]:
        """Return the judges whose models do not answer, here or in another process of the server."""
        return {
            sample.labels["judge"]
            for metric in self._together().collect()
            for sample in metric.samples
            if sample.name == "judgesmith_ready" and not sample.value
        }

    def text(self) -> bytes:
        """Prometheus' text format, of all processes of the server."""
        return generate_latest(self._together())

    def _together(self) -> CollectorRegistry:
        if not os.environ.get(SHARED):
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry
