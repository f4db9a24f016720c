"""Spans and metrics of OpenTelemetry: an attempt, its model calls, its steps and its restores.

They follow the conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/), version 1.41. They hold names, numbers
and kinds only: no text of a page, a prompt or an answer. A program that has set up OpenTelemetry gets them; otherwise they are exported
where the standard environment variables say so. OpenTelemetry is imported only then.

A structured log of attempts: one JSON object a line, for collectors of logs.

The environment variable EXACT_LOG names a file, to which all processes append, or `-` for standard error. Lines hold names, numbers and
kinds only: no text of a page, a prompt or an answer. Warnings of this package stand in it too.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from exact.config import Config
from exact.errors import UsageError
from exact.models.open import model_for
from exact.models.providers import provider_name
from exact.runs.journal import events as ev
from exact.text import inert
from exact.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Span


ADDRESSES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Environment variables that name a collector: https://opentelemetry.io/docs/specs/otel/protocol/exporter/."""
LOG = "EXACT_LOG"
"""Environment variable that names the structured log."""
FLUSH = 5.0
"""Seconds in which a collector must take what is left at the end."""
_log = logging.getLogger(__name__)


class AttemptTelemetry:
    """A listener to the journal of one attempt."""

    def __init__(self, config: Config, task: str) -> None:
        from opentelemetry import metrics, trace

        self._config = config
        self._trace, self._tracer = trace, trace.get_tracer("exact", __version__)
        meter = metrics.get_meter("exact", __version__)
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Number of tokens of a model call.")
        self._durations = meter.create_histogram("gen_ai.client.operation.duration", "s", "Duration of a model call.")
        self._dollars = meter.create_counter("exact.cost", "USD", "Cost of the model calls whose price is known.")
        self._ends = meter.create_counter("exact.attempts", "{attempt}", "Number of attempts that ended, by status.")
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": config.name, "exact.task": task}
        self._root = self._tracer.start_span(f"invoke_agent {config.name}", attributes=named)

    def __call__(self, event: ev.AnyEvent) -> None:
        """Record an event that has just been written."""
        match event:
            case ev.Called():
                self._called(event)
            case ev.Acted() | ev.RolledStep() | ev.Committed():
                tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": verb_of(event.action)}
                more = {"exact.committed": isinstance(event, ev.Committed), "exact.refused": bool(event.refused)}
                self._span(f"execute_tool {verb_of(event.action)}", event.seconds, tool | more)
            case ev.Arrived():
                here = {"exact.route": event.route, "exact.match": event.match, "exact.transitions": event.transitions}
                self._span(f"restore {event.route}", event.seconds, here)
            case ev.SnapshotTaken():
                self._span("snapshot", event.seconds, {"exact.fidelity": event.fidelity, "exact.bytes": event.bytes})
            case ev.Failed():
                self._root.add_event("failed", {"exact.what": event.what, "exact.node": event.node})
            case ev.Scored():
                self._root.set_attribute("exact.score", event.score.value)
            case ev.Finished():
                self._root.set_attribute("exact.status", event.status)
                self._ends.add(1, {"exact.status": event.status, "gen_ai.agent.name": self._config.name})
                if event.status == "failed":
                    self._root.set_attribute("error.type", event.missing or "infrastructure")
                    self._root.set_status(self._trace.StatusCode.ERROR)
            case _:
                pass

    def close(self) -> None:
        """End the span of the attempt."""
        self._root.end()

    def _called(self, event: ev.Called) -> None:
        usage, common = event.usage, {"gen_ai.operation.name": "chat", **self._model(event), "gen_ai.response.model": event.model}
        counts: dict[str, Any] = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        }
        own: dict[str, Any] = {"exact.role": event.role, "exact.node": event.node, "exact.replayed": event.replayed}
        if usage.cost is not None:
            own["exact.cost"] = usage.cost
            self._dollars.add(usage.cost, {"gen_ai.request.model": common["gen_ai.request.model"], "exact.role": event.role})
        self._span(f"chat {common['gen_ai.request.model']}", event.seconds, {**common, **counts, **own}, client=True)
        for kind, amount in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(amount, {**common, "gen_ai.token.type": kind})
        self._durations.record(event.seconds, common)

    def _model(self, event: ev.Called) -> dict[str, str]:
        """Return the provider and the model of a call. A program may give an agent models that no configuration names."""
        try:
            settings = model_for(self._config.models, event.role)
        except UsageError:
            return {"gen_ai.provider.name": "unknown", "gen_ai.request.model": event.model}
        return {"gen_ai.provider.name": provider_name(settings), "gen_ai.request.model": settings.model}

    def _span(self, name: str, seconds: float, attributes: dict[str, Any], *, client: bool = False) -> Span:
        """Record a span that ends now and took `seconds`."""
        end = time.time_ns()
        span = self._tracer.start_span(
            name,
            context=self._trace.set_span_in_context(self._root),
            kind=self._trace.SpanKind.CLIENT if client else self._trace.SpanKind.INTERNAL,
            attributes=attributes,
            start_time=end - int(seconds * 1e9),
        )
        span.end(end)
        return span


@contextmanager
def listeners(config: Config, task: str) -> Iterator[list[Callable[[ev.AnyEvent], None]]]:
    """Yield what listens to the journal of one attempt: its log if one is named, and telemetry if this process has loaded OpenTelemetry."""
    logs = list[Callable[[ev.AnyEvent], None]]()
    if os.environ.get(LOG):
        logs.append(AttemptLogger(config.name, task))
    if "opentelemetry.trace" not in sys.modules:
        yield logs
        return
    telemetry = AttemptTelemetry(config, task)
    try:
        yield [*logs, telemetry]
    finally:
        telemetry.close()


@asynccontextmanager
async def exporting() -> AsyncIterator[None]:
    """Write to the log that the environment names, and export to its collector unless this program has set up OpenTelemetry itself.

    Raises UsageError where the log cannot be written.
    """
    end = _set_up() if any(map(os.environ.get, ADDRESSES)) else None
    try:
        with _logging():
            yield
    finally:
        if end is not None:
            await asyncio.to_thread(end)


def _logging() -> AbstractContextManager[None]:
    if not os.environ.get(LOG):
        return nullcontext()

    return logging_attempts()


def _set_up() -> Callable[[], None] | None:
    """Install providers that export, once in a process. Return what sends the rest of their data."""
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _log.warning(
            "%s is set, but OpenTelemetry is not installed: run `pip install 'exact-agent[otel]'`; nothing is exported", ADDRESSES[0]
        )
        return None
    spans = trace.get_tracer_provider()
    if not isinstance(spans, TracerProvider | trace.ProxyTracerProvider):
        return None
    if isinstance(spans, trace.ProxyTracerProvider):
        resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "exact"), "service.version": __version__})
        spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(spans)
        metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource, shutdown_on_exit=False))
    figures = metrics.get_meter_provider()
    parts = [spans.force_flush, *([figures.force_flush] if isinstance(figures, MeterProvider) else [])]
    return lambda: _within(FLUSH, parts)


def _within(seconds: float, parts: Sequence[Callable[[], object]]) -> None:
    """Call functions side by side and wait for them for some seconds. An exporter tries again for longer than it was told to."""
    threads = [threading.Thread(target=part, daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))


def verb_of(action: str) -> str:
    """Return the name of an action without its arguments, which a page or a person may have written."""
    found = re.match(r"\w+", action)
    return found[0] if found else "unknown"


class AttemptLogger:
    """A listener to the journal of one attempt."""

    def __init__(self, agent: str, task: str) -> None:
        self._named = {"agent": agent, "task": task}

    def __call__(self, event: ev.AnyEvent) -> None:
        """Write a line about an event that has just been written, if it is one of those that are logged."""
        match event:
            case ev.Opened() | ev.Resumed():
                write("info", type(event).__name__.lower(), **self._named)
            case ev.Called():
                cost = {} if event.usage.cost is None else {"cost": event.usage.cost}
                tokens = {"input_tokens": event.usage.input_tokens, "output_tokens": event.usage.output_tokens}
                write("debug", "called", **self._named, node=event.node, role=event.role, seconds=event.seconds, **tokens, **cost)
            case ev.Arrived():
                write("debug", "arrived", **self._named, node=event.node, route=event.route, match=event.match, seconds=event.seconds)
            case ev.Committed():
                refused = {"refused": True} if event.refused else {}
                write("info", "committed", **self._named, step=event.step, action=verb_of(event.action), **refused)
            case ev.Failed():
                write("warning", "failed", **self._named, node=event.node, what=event.what)
            case ev.Scored():
                write("info", "scored", **self._named, score=event.score.value)
            case ev.Finished():
                level = "error" if event.status == "failed" else "info"
                missing = {"missing": event.missing} if event.missing else {}
                write(level, "finished", **self._named, status=event.status, **missing)
            case _:
                pass


def write(level: str, event: str, **fields: Any) -> None:
    """Append a whole line to the log. What cannot be written any more is left out: a full disk ends no attempt."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event, "process": os.getpid(), **fields}
    with suppress(OSError):
        _append(msgspec.json.encode(line) + b"\n")


@contextmanager
def logging_attempts() -> Iterator[None]:
    """Check that the log can be written, and write this package's warnings to it while the block runs. Raises UsageError."""
    try:
        _append(b"")
    except OSError as error:
        raise UsageError(f"{LOG}={os.environ[LOG]}: {error.strerror}: name a file that can be written, or - for standard error") from error
    handler, logger = _WarningHandler(logging.WARNING), logging.getLogger("exact")
    if not any(isinstance(each, _WarningHandler) for each in logger.handlers):  # another run of this process may have begun
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _append(data: bytes) -> None:
    if (target := os.environ[LOG]) == "-":
        sys.stderr.write(data.decode())
        sys.stderr.flush()
        return
    file = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)  # no wait for a pipe's reader
    try:
        os.write(file, data)
    finally:
        os.close(file)


class _WarningHandler(logging.Handler):
    """Writes records as lines."""

    def emit(self, record: logging.LogRecord) -> None:
        write(record.levelname.lower(), "warning", logger=record.name, message=inert(record.getMessage())[:2000])
