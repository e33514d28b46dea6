"""Spans of requests, for who starts the server with OpenTelemetry: `opentelemetry-instrument judgesmith serve …`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: Requests without a span: those of probes and of Prometheus.
UNTRACED = "healthz,readyz,metrics"


def traced(app: Callable[..., Any]) -> Callable[..., Any]:
    """Return the application with a span for each request, which follows its `traceparent`.

    It is returned unchanged if no tracer is set up, or OpenTelemetry's instrumentation of ASGI is not installed. It
    stands before the gate, so that no request passes it by.
    """
    try:
        trace = import_module("opentelemetry.trace")
        asgi = import_module("opentelemetry.instrumentation.asgi")
    except ImportError:
        return app
    if not hasattr(
        trace.get_tracer_provider(), "force_flush"
    ):  # the one that stands for none
        return app
    middleware: Callable[..., Any] = asgi.OpenTelemetryMiddleware(
        app, excluded_urls=UNTRACED, exclude_spans=["receive", "send"]
    )
    return middleware
