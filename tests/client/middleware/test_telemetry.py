"""`Telemetry`: spans and metrics by OpenTelemetry's conventions."""

import asyncio
import json
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from interlingua import RetryPolicy, generate, stream, sync, tool
from interlingua.client.middleware import telemetry_names as names
from interlingua.client.middleware.cache import Cache
from interlingua.client.middleware.telemetry import Telemetry
from interlingua.simulator import error, text, tool_call
from interlingua.spec.content import Image
from interlingua.spec.errors import ServerError
from interlingua.spec.events import TextDelta
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from support.simulated import KEY, settled, simulated


class Recorder:
    """A `Telemetry` with exporters in memory."""

    def __init__(self, **settings):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader])
        self.layer = Telemetry(tracer_provider=self.tracers, meter_provider=meters, **settings)
        self.tracer = self.tracers.get_tracer("program")

    @property
    def spans(self):
        """The spans that have ended, in the order of their start."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def named(self, start):
        return [span for span in self.spans if span.name.startswith(start)]

    def points(self, name):
        """The points of a metric: attributes, count and sum."""
        data = self.reader.get_metrics_data()
        metrics = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return [
            (dict(point.attributes), point.count, point.sum)
            for metric in metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


async def whole(client, request, **options):
    return await client.complete(request, **options)


async def streamed(client, request, **options):
    return [event async for event in client.stream(request, **options)][-1].response


both = pytest.mark.parametrize("ask", [whole, streamed])


def record(work, *answers, layers=(), **settings):
    """What `work` does with a client, in a recorder."""
    recorder = Recorder(**settings)
    with simulated(*answers) as peer:
        client = peer.client.with_middleware(recorder.layer, *layers)

        async def main():
            try:
                await work(client, peer)
            finally:
                await client.close()

        asyncio.run(main())
    return recorder


def parent_of(span):
    return None if span.parent is None else span.parent.span_id


@both
def test_a_call_is_a_client_span_with_a_child_for_its_attempt(ask):
    """The same whole and streamed; nothing of what was said."""

    async def work(client, peer):
        request = peer.ask("gemini", "My secret", temperature=0, max_tokens=50, session_id="s1")
        await ask(client, request)

    recorder = record(work, text("The answer"))
    span, attempt = recorder.spans
    found = dict(span.attributes)

    assert (span.name, span.kind) == ("chat gemini-2.5-flash", SpanKind.CLIENT)
    assert (
        found.items()
        >= {
            names.OPERATION: "chat",
            names.PROVIDER: "gcp.gemini",
            names.REQUEST_MODEL: "gemini-2.5-flash",
            names.CONVERSATION: "s1",
            names.SERVER_ADDRESS: "127.0.0.1",
            names.FINISH_REASONS: ("stop",),
            names.ATTEMPTS: 1,
            "gen_ai.request.temperature": 0,
            "gen_ai.request.max_tokens": 50,
        }.items()
    )
    assert found[names.INPUT_TOKENS] > 0
    assert found[names.OUTPUT_TOKENS] > 0
    assert found.get(names.CACHE_CREATION) == found.get(names.USAGE_FIELDS["cache_write_tokens"])
    assert (names.STREAM in found) == (names.FIRST_CHUNK in found) == (ask is streamed)
    assert span.status.status_code is StatusCode.UNSET
    assert attempt.name == "attempt gemini-2.5-flash"
    assert parent_of(attempt) == span.context.span_id
    assert attempt.attributes[names.ATTEMPT] == 0
    assert not any(name.startswith("gen_ai.") for name in attempt.attributes)  # no generation
    shown = "".join(each.to_json() for each in recorder.spans)
    for secret in ("My secret", "The answer", KEY):
        assert secret not in shown


@both
def test_metrics_have_durations_and_tokens(ask):
    """With the time to the first chunk of a stream."""

    async def work(client, peer):
        for _ in range(2):
            await ask(client, peer.ask("anthropic"))

    recorder = record(work, text("The answer"))
    ((facts, count, seconds),) = recorder.points(names.DURATION)
    tokens = recorder.points(names.TOKEN_USAGE)
    chunks = recorder.points(names.TIME_TO_FIRST_CHUNK)

    assert (facts[names.OPERATION], facts[names.PROVIDER], count) == ("chat", "anthropic", 2)
    assert names.RESPONSE_MODEL in facts
    assert 0 < seconds < 60
    assert {facts[names.TOKEN_TYPE]: count for facts, count, _ in tokens} == {
        "input": 2,
        "output": 2,
    }
    assert sum(total for _, _, total in tokens) > 0
    assert [count for _, count, _ in chunks] == ([2] if ask is streamed else [])


@both
def test_each_attempt_is_a_span_and_a_failed_one_tells_its_error(ask):
    """The request itself did not fail."""

    async def work(client, peer):
        await ask(client, peer.ask("openai"), retry=RetryPolicy(max_retries=2, base_delay=0))

    recorder = record(work, error(503), text("ok"))
    span, first, second = recorder.spans

    assert span.status.status_code is StatusCode.UNSET
    assert [parent_of(each) for each in (first, second)] == [span.context.span_id] * 2
    assert [each.attributes[names.ATTEMPT] for each in (first, second)] == [0, 1]
    assert first.status.status_code is StatusCode.ERROR
    assert first.attributes[names.STATUS_CODE] == 503
    assert second.status.status_code is StatusCode.UNSET


@both
def test_a_call_that_fails_has_an_error_type(ask):
    """In the span and in the metric."""

    async def work(client, peer):
        with pytest.raises(ServerError):
            await ask(client, peer.ask("openai", "My secret"))

    recorder = record(work, error(500))
    span, _ = recorder.spans

    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes[names.ERROR_TYPE] == "ServerError"
    assert recorder.points(names.DURATION)[0][0][names.ERROR_TYPE] == "ServerError"
    assert "My secret" not in span.to_json()


def test_a_stream_that_is_left_ends_its_spans():
    """That is no error."""

    async def work(client, peer):
        events = client.stream(peer.ask("anthropic"))
        async for event in events:
            if type(event) is TextDelta:
                break
        await events.aclose()

    span, attempt = record(work, text("a long answer of many words")).spans

    assert span.attributes[names.FINISH_REASONS] == ("cancelled",)
    assert span.status.status_code is attempt.status.status_code is StatusCode.UNSET


@both
def test_a_call_that_is_cancelled_ends_its_spans(ask):
    """Its task is cancelled while it waits."""

    async def work(client, peer):
        task = asyncio.create_task(ask(client, peer.ask("anthropic")))
        await settled(lambda: peer.app.script.received)
        task.cancel()
        await asyncio.wait({task})

    from interlingua.simulator import latency

    recorder = record(work, text("late") + latency(first=60))

    assert [span.name.split()[0] for span in recorder.spans] == ["chat", "attempt"]


INNER = "in the tool"


def run_of(recorder):
    @tool
    def weather(city: str) -> str:
        """The weather in a city."""
        with recorder.tracer.start_as_current_span(INNER):
            return f"rain in {city}"

    @tool
    async def broken(city: str) -> str:
        """Never works."""
        raise ValueError(city)

    return [weather, broken]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("is_in_span", [False, True])
def test_a_run_is_one_trace(is_stream, is_in_span):
    """Tools are children of the answer that called them; spans in tools are children of those."""
    recorder = Recorder()
    answers = (
        tool_call("weather", {"city": "Oslo"}) + tool_call("broken", {"city": "Bergen"}),
        text("Rain."),
    )
    with simulated(*answers) as peer:
        client = peer.client.with_middleware(recorder.layer)
        options = {"tools": run_of(recorder), "client": client, "session_id": "s1"}

        async def run():
            if is_stream:
                async for _ in stream("anthropic:claude-haiku-4-5", "Hi.", **options):
                    pass
            else:
                await generate("anthropic:claude-haiku-4-5", "Hi.", **options)

        async def main():
            if is_in_span:
                with recorder.tracer.start_as_current_span("program"):
                    await run()
            else:
                await run()
            await client.close()

        asyncio.run(main())
    first, second = recorder.named("chat")
    (weather,) = recorder.named("execute_tool weather")
    (broken,) = recorder.named("execute_tool broken")
    (inner,) = recorder.named(INNER)

    assert len({span.context.trace_id for span in recorder.spans}) == 1
    assert parent_of(weather) == parent_of(broken) == first.context.span_id
    assert parent_of(inner) == weather.context.span_id
    assert weather.kind is SpanKind.INTERNAL
    assert weather.attributes[names.CONVERSATION] == "s1"
    assert broken.attributes[names.ERROR_TYPE] == "ValueError"
    assert "Oslo" not in weather.to_json()
    if is_in_span:
        (program,) = recorder.named("program")
        assert parent_of(first) == parent_of(second) == program.context.span_id
    else:
        assert first.parent is None
        assert parent_of(second) == first.context.span_id
    found = {facts[names.TOOL_NAME] for facts, _, _ in recorder.points(names.TOOL_DURATION)}
    assert found == {"weather", "broken"}


def test_the_reader_of_a_stream_is_not_in_the_span():
    """And two streams that are read in turns have their own children."""
    recorder = Recorder()
    seen = []

    async def note(request, call_next):
        seen.append((request.model, trace.get_current_span().get_span_context().span_id))
        async for event in call_next(request):
            yield event

    with simulated(text("one two three four")) as peer:
        client = peer.client.with_middleware(recorder.layer, note)

        async def main():
            streams = [client.stream(peer.ask(name)) for name in ("openai", "anthropic")]
            for _ in range(3):
                for each in streams:
                    await anext(each)
                    assert not trace.get_current_span().get_span_context().is_valid
            for each in streams:
                async for _ in each:
                    pass
            await client.close()

        asyncio.run(main())
    spans = {span.attributes[names.REQUEST_MODEL]: span for span in recorder.named("chat")}

    assert {model: spans[model].context.span_id for model, _ in seen} == dict(seen)
    for attempt in recorder.named("attempt"):
        model = attempt.attributes[names.ATTEMPT_MODEL]
        assert parent_of(attempt) == spans[model].context.span_id


@both
def test_content_is_told_on_request(ask):
    """In the form of the conventions, without keys."""
    request = Request(
        model="anthropic:claude-haiku-4-5",
        messages=[
            Message.system("Be kind."),
            Message.user(f"My key is sk-{'a' * 40}", Image(url="https://a.example/b.png")),
        ],
    )

    async def work(client, _):
        await ask(client, request)

    span, _ = record(work, text("Hello!"), content=True).spans
    found = dict(span.attributes)

    assert json.loads(found[names.SYSTEM_INSTRUCTIONS]) == [{"type": "text", "content": "Be kind."}]
    (message,) = json.loads(found[names.INPUT_MESSAGES])
    assert message["parts"][0] == {"type": "text", "content": "My key is [redacted]"}
    assert message["parts"][1]["type"] == "uri"
    assert json.loads(found[names.OUTPUT_MESSAGES]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Hello!"}],
            "finish_reason": "stop",
        }
    ]


def test_operations_are_spans():
    """With attempts, like calls."""

    async def work(client, peer):
        await client.count_tokens(peer.ask("anthropic", session_id="s1"))

    span, attempt = record(work).spans

    assert span.name == "count_tokens claude-haiku-4-5"
    assert span.attributes[names.CONVERSATION] == "s1"
    assert parent_of(attempt) == span.context.span_id


def test_an_answer_from_the_cache_counts_no_tokens():
    """It has no attempts either."""

    async def work(client, peer):
        for ask in (whole, whole, streamed):
            await ask(client, peer.ask("openai"))

    recorder = record(work, text("ok"), layers=[Cache()])

    assert [span.attributes.get(names.CACHED) for span in recorder.named("chat")] == [
        None,
        True,
        True,
    ]
    assert len(recorder.named("attempt")) == 1
    assert [count for _, count, _ in recorder.points(names.TOKEN_USAGE)] == [1, 1]


def test_blocking_calls_are_children_of_the_callers_span():
    """The context of the thread that calls is used."""
    recorder = Recorder()
    with simulated(text("ok")) as peer:
        blocking = sync.Client.wrap(peer.client.with_middleware(recorder.layer))
        with recorder.tracer.start_as_current_span("program") as program:
            blocking.complete(peer.ask("openai"))
            list(blocking.stream(peer.ask("openai")))
        blocking.close()

    assert [parent_of(span) for span in recorder.named("chat")] == [program.context.span_id] * 2


# The conventions.


def test_names_are_those_of_the_conventions():
    """Every name, unit and boundary is one that `opentelemetry-util-genai` writes."""
    from opentelemetry.util.genai import types
    from opentelemetry.util.genai.handler import TelemetryHandler

    recorder = Recorder()
    meters = MeterProvider([reader := InMemoryMetricReader()])
    handler = TelemetryHandler(tracer_provider=recorder.tracers, meter_provider=meters)
    mode = types.ContentCapturingMode.SPAN_ONLY
    with handler.inference("openai", request_model="m", server_address="a", server_port=1) as call:
        call._content_capturing_mode = mode
        for field in vars(call.data):
            if field.startswith(("usage_", "request_", "response_")) and field != "request_stream":
                setattr(call.data, field, getattr(call.data, field) or 1)
        call.data.response_finish_reasons = ["stop"]
        call.data.request_stream = True
        call.data.conversation_id = "s"
        call.input_messages = [types.InputMessage(role="user", parts=[types.TextPart(content="a")])]
        call.output_messages = [types.OutputMessage(role="assistant", parts=[])]
        call.system_instruction = [types.TextPart(content="a")]
        call.tool_definitions = [types.FunctionToolDefinition("a", None, None)]
        call._on_stream_chunk(1.0)
    with handler.tool("a", tool_type="function") as run:
        run._content_capturing_mode = mode
        run.tool_call_id, run.arguments, run.tool_result = "1", {"a": 1}, "b"
    written = {name for span in recorder.spans for name in span.attributes}
    metrics = {
        metric.name: metric
        for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    }
    written |= {
        name
        for metric in metrics.values()
        for point in metric.data.data_points
        for name in point.attributes
    }
    ours = {value for value in vars(names).values() if isinstance(value, str) and "." in value}
    ours |= {*names.REQUEST_FIELDS.values(), *names.USAGE_FIELDS.values()}
    ours = {name for name in ours if name.startswith(("gen_ai.", "server."))}
    ours.remove(names.CACHE_CREATION)  # the name before it was changed

    assert ours <= written | metrics.keys()
    buckets = {
        names.DURATION: names.SECONDS_BUCKETS,
        names.TIME_TO_FIRST_CHUNK: names.SECONDS_BUCKETS,
        names.TOOL_DURATION: names.SECONDS_BUCKETS,
        names.TOKEN_USAGE: names.TOKEN_BUCKETS,
    }
    for name, bounds in buckets.items():
        (point, *_) = metrics[name].data.data_points
        assert point.explicit_bounds == pytest.approx(bounds)
        assert metrics[name].unit == (names.TOKENS if name == names.TOKEN_USAGE else names.SECONDS)
    kinds = {span.name: span.kind for span in recorder.spans}
    assert kinds == {"chat m": SpanKind.CLIENT, "execute_tool a": SpanKind.INTERNAL}


def test_values_are_those_of_the_conventions():
    """Names of providers, operations and finish reasons."""
    from typing import get_args

    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as known
    from opentelemetry.util.genai.types import FinishReason

    providers = {each.value for each in known.GenAiProviderNameValues}
    operations = {each.value for each in known.GenAiOperationNameValues}

    assert set(names.PROVIDERS.values()) <= providers
    assert {names.CHAT, names.EXECUTE_TOOL, *names.OPERATIONS.values()} <= operations
    assert set(names.REASONS.values()) <= set(get_args(FinishReason))


def test_opentelemetry_is_imported_only_by_the_constructor():
    """A program without it can import everything else, and is told what to install."""
    code = (
        "import sys\n"
        "import interlingua.middleware\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
        "sys.modules['opentelemetry'] = None\n"
        "try:\n"
        "    interlingua.middleware.Telemetry()\n"
        "except interlingua.errors.ConfigurationError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "interlingua[telemetry]" in done.stdout
