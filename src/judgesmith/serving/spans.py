"""OpenTelemetry spans of a server, when they are asked for: of each request, each row in it, each call of a model, and
each run of a batch job. They name judges, fingerprints, kinds of failures and tokens; no text of a row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .. import __version__
from ..programs.models.lm import LanguageModel
from ..programs.models.transport import Reply, Request
from ..signatures.values import Verdict
from .metrics import reason


def exporting() -> TracerProvider:
    """Spans go by OTLP over HTTP to where the OTEL_EXPORTER_OTLP_… variables say, by default port 4318 of this machine;
    OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and the others of OpenTelemetry hold."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    resource = Resource.create({"service.version": __version__})
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "judgesmith"}))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Spans:
    """The spans of a server. provider: what makes and keeps them."""

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self._tracer = provider.get_tracer("judgesmith", __version__)

    def close(self) -> None:
        """Send what is not sent yet."""
        self.provider.shutdown()

    @contextmanager
    def _span(self, name: str, kind: SpanKind = SpanKind.INTERNAL, context: Any = None) -> Iterator[Span]:
        # An exception's message may hold a text, so that only its type is given.
        quiet = {"record_exception": False, "set_status_on_exception": False}
        with self._tracer.start_as_current_span(name, context, kind, **quiet) as span:  # type: ignore[arg-type]
            try:
                yield span
            except BaseException as error:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", getattr(error, "code", None) or type(error).__name__)
                raise

    @contextmanager
    def request(self, method: str, headers: Mapping[bytes, bytes]) -> Iterator[Span]:
        """Of a request, in the trace of its `traceparent`. End it with `answered`."""
        given = {name: headers[name.encode()].decode("latin-1") for name in ("traceparent", "tracestate")
                 if name.encode() in headers}  # fmt: skip
        above = TraceContextTextMapPropagator().extract(given)
        with self._span(method, SpanKind.SERVER, above) as span:
            span.set_attribute("http.request.method", method)
            yield span

    def answered(self, span: Span, method: str, route: str, told: Mapping[str, Any]) -> None:
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.route": route, "http.response.status_code": told["status"]})
        span.set_attributes({f"judgesmith.{name}": told[name] for name in ("judge", "rows") if name in told})
        if told["status"] >= 500:
            span.set_status(StatusCode.ERROR)

    @contextmanager
    def row(self, name: str, mark: str) -> Iterator[Callable[[Verdict], None]]:
        """Of a row, to be told its verdict."""
        with self._span(f"judge {name}") as span:
            span.set_attributes({"judgesmith.judge": name, "judgesmith.fingerprint": mark})

            def judged(verdict: Verdict) -> None:
                usage = verdict.usage
                span.set_attributes({
                    "judgesmith.calls": usage.calls, "judgesmith.cached_calls": usage.cached,
                    "gen_ai.usage.input_tokens": usage.prompt_tokens,
                    "gen_ai.usage.output_tokens": usage.completion_tokens,
                })  # fmt: skip
                if verdict.failure:
                    span.set_attribute("judgesmith.failure", reason(verdict.failure))
                    span.set_status(StatusCode.ERROR)

            yield judged

    @contextmanager
    def job(self, name: str, mark: str, rows: int) -> Iterator[None]:
        """Of a run of a batch job; its calls are its children, its rows have none of their own."""
        with self._span(f"job of {name}") as span:
            span.set_attributes({"judgesmith.judge": name, "judgesmith.fingerprint": mark, "judgesmith.rows": rows})
            yield

    def trace_calls(self, lm: LanguageModel) -> None:
        """Have each call that is sent to a model make a span."""

        def traced(send: Callable[[Request], Awaitable[Reply]]) -> Callable[[Request], Awaitable[Reply]]:
            async def call(request: Request) -> Reply:
                with self._span(f"chat {lm.name}", SpanKind.CLIENT) as span:
                    span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": lm.name})
                    reply = await send(request)
                    span.set_attributes({
                        "gen_ai.usage.input_tokens": reply.prompt_tokens,
                        "gen_ai.usage.output_tokens": reply.completion_tokens,
                    })  # fmt: skip
                    return reply

            return call

        lm.around_calls(traced)
