"""Spans and metrics of OpenTelemetry reach a collector, and hold no text of pages, prompts or answers."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import parse
from exact.models.base import Sampling, Usage
from exact.runs.journal import events as ev
from exact.runs.telemetry import AttemptTelemetry, verb_of

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PROGRAM = Path(__file__).with_name("traced.py")


def attributes(span: Span) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


class Collector:
    """A collector that keeps what it is sent."""

    def __init__(self, server: HTTPServer) -> None:
        self.spans, self.metrics, self.raw = list[Span](), dict[str, object](), b""
        server.expect_request("/v1/traces", method="POST").respond_with_handler(self.traces)
        server.expect_request("/v1/metrics", method="POST").respond_with_handler(self.figures)

    def traces(self, request: Request) -> Response:
        data = self.body(request)
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return Response(b"", content_type="application/x-protobuf")

    def figures(self, request: Request) -> Response:
        for resource in ExportMetricsServiceRequest.FromString(self.body(request)).resource_metrics:
            self.metrics |= {each.name: each for scope in resource.scope_metrics for each in scope.metrics}
        return Response(b"", content_type="application/x-protobuf")

    def body(self, request: Request) -> bytes:
        data = request.get_data()
        data = gzip.decompress(data) if request.headers.get("Content-Encoding") == "gzip" else data
        self.raw += data
        return data


def attempt(tmp_path: Path, how: str, *, endpoint: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])}
    if endpoint:
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    command = [sys.executable, str(PROGRAM), how, str(tmp_path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)


def test_an_attempt_its_calls_and_its_steps_are_spans_of_one_trace(tmp_path: Path, httpserver: HTTPServer) -> None:
    collector = Collector(httpserver)
    attempt(tmp_path, "solved", endpoint=httpserver.url_for("").rstrip("/"))
    by_operation: dict[str, list[Span]] = {}
    for span in collector.spans:
        by_operation.setdefault(str(attributes(span).get("gen_ai.operation.name", "")), []).append(span)
    (root,) = by_operation["invoke_agent"]
    assert attributes(root)["exact.status"] == "scored" and attributes(root)["gen_ai.agent.name"] == "traced"
    assert {span.trace_id for span in collector.spans} == {root.trace_id}
    assert all(span.parent_span_id == root.span_id for span in collector.spans if span is not root)
    chat = attributes(by_operation["chat"][0])
    assert chat["gen_ai.request.model"] == "scripted" and chat["exact.role"] == "policy"
    assert chat["gen_ai.usage.input_tokens"] and chat["gen_ai.provider.name"]
    tools = [attributes(span) for span in by_operation["execute_tool"]]
    assert {each["gen_ai.tool.name"] for each in tools} >= {"go"} and {each["exact.committed"] for each in tools} == {True, False}
    assert {"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "exact.attempts"} <= collector.metrics.keys()


def test_no_text_of_pages_prompts_or_answers_is_sent(tmp_path: Path, httpserver: HTTPServer) -> None:
    collector = Collector(httpserver)
    attempt(tmp_path, "solved", endpoint=httpserver.url_for("").rstrip("/"))
    for text in (b"Hansel", b"THE GOAL", b"because of the crumbs"):
        assert text not in collector.raw


def test_a_failed_attempt_is_an_error_with_its_cause(tmp_path: Path, httpserver: HTTPServer) -> None:
    collector = Collector(httpserver)
    attempt(tmp_path, "failed", endpoint=httpserver.url_for("").rstrip("/"))
    (root,) = [span for span in collector.spans if span.name.startswith("invoke_agent")]
    assert root.status.code == 2 and attributes(root)["exact.status"] == "failed" and attributes(root)["error.type"] == "environment"


def test_a_collector_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    assert attempt(tmp_path, "solved", endpoint="http://127.0.0.1:9").stdout.endswith("scored\n")


def test_without_an_address_the_library_is_not_even_imported(tmp_path: Path) -> None:
    assert attempt(tmp_path, "solved").stdout == "OpenTelemetry was not imported\nscored\n"


def test_a_program_that_has_set_up_tracing_itself_gets_the_spans(tmp_path: Path) -> None:
    assert "own: invoke_agent traced" in attempt(tmp_path, "own").stdout


def test_a_missing_library_is_said_once_and_nothing_fails(tmp_path: Path) -> None:
    done = attempt(tmp_path, "missing", endpoint="http://127.0.0.1:9")
    assert done.stderr.count("pip install 'exact-agent[otel]'") == 1 and done.stdout.endswith("scored\n")


@pytest.mark.parametrize("role", ["value", "mine"])
def test_a_call_of_a_model_that_no_configuration_names_is_recorded_too(role: str) -> None:
    call = ev.Called(
        key="k", role=role, node=0, attempt=0, prompt="p", model="m", sampling=Sampling(), request="", answer="", usage=Usage(cost=0.1)
    )
    telemetry = AttemptTelemetry(parse({}), "task")
    telemetry(call)
    telemetry.close()


@pytest.mark.parametrize(("action", "verb"), [("click [3]", "click"), ("fill('a', 'secret')", "fill"), ("stop", "stop"), ("", "unknown")])
def test_only_the_name_of_an_action_is_given(action: str, verb: str) -> None:
    assert verb_of(action) == verb
