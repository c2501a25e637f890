"""The trace of a client's request: passed on to the provider, and the parent of our spans."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from interlingua.simulator import Script, Simulator, echo, serve_in_thread
from support.gateways import file_text, gateway_of_file
from support.wire_requests import ask

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
HELLO = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def sent_headers(tmp_path, path, **headers):
    """The headers that the provider got."""
    script = Script(echo)
    with (
        serve_in_thread(Simulator(script)) as upstream,
        gateway_of_file(tmp_path, file_text(upstream.url)) as front,
    ):
        reply = ask(front, path, HELLO, **headers)
    assert reply.status == 200
    assert (
        "x-interlingua-warnings" not in reply.headers
        or "options" not in reply.headers["x-interlingua-warnings"]
    )
    return script.received[0].call.headers


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_the_trace_is_passed_on(tmp_path, path):
    """Whatever dialects the client and the provider speak."""
    headers = sent_headers(tmp_path, path, traceparent=PARENT, tracestate="a=1,b=2")

    assert headers["traceparent"] == PARENT
    assert headers["tracestate"] == "a=1,b=2"


@pytest.mark.parametrize("parent", [None, "no trace", "00-xyz-b7ad6b7169203331-01"])
def test_what_is_no_trace_is_not_passed_on(tmp_path, parent):
    """Nor a state without a trace."""
    given = {"tracestate": "a=1"} if parent is None else {"traceparent": parent}
    headers = sent_headers(tmp_path, CHAT, **given)

    assert "traceparent" not in headers
    assert "tracestate" not in headers


def test_the_spans_of_a_call_belong_to_the_trace_of_the_client(tmp_path, monkeypatch):
    """With `telemetry: true`."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda name, *_: provider.get_tracer(name))
    with (
        serve_in_thread(Simulator(Script(echo))) as upstream,
        gateway_of_file(tmp_path, file_text(upstream.url, "  telemetry: true\n")) as front,
    ):
        first = ask(front, CHAT, HELLO, traceparent=PARENT)
        second = ask(front, CHAT, {**HELLO, "stream": True}, traceparent=PARENT)

    assert (first.status, second.status) == (200, 200)
    spans = exporter.get_finished_spans()
    assert len(spans) == 4  # a call and an attempt of each
    assert {f"{span.context.trace_id:032x}" for span in spans} == {PARENT.split("-")[1]}
