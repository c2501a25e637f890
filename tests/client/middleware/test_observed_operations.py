"""Observers see what every operation used and cost: call events, `Logging` and `Telemetry`."""

import logging
from contextlib import aclosing

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from interlingua import (
    Client,
    HttpAdapter,
    batch,
    embed,
    embed_many,
    files,
    generate_image,
    generate_video,
    speak,
    transcribe,
)
from interlingua.client.middleware import telemetry_names as names
from interlingua.client.middleware.logging import CALLS
from interlingua.errors import NotFoundError
from interlingua.media import (
    moderate,
    rerank,
    stream_image,
    stream_speech,
    stream_transcription,
)
from interlingua.middleware import Logging, Telemetry
from interlingua.runtime.cancel import Scopes
from interlingua.simulator import Simulator
from interlingua.transport import AsgiTransport
from interlingua.wire.wav import wrap_samples
from support import virtual_time

KEY = "sk-planted-key-of-a-test"
WAV = wrap_samples(bytes(2 * 24_000), 24_000)
PRICES = {
    "gpt-image-1": {"input": 5.0, "output": 40.0},
    "rank-1": {"input": 2.0},
    "omni-moderation-latest": {"input": 1.0},
    "gpt-5.2": {"input": 1.0, "output": 2.0},
}


async def read(stream):
    """The result of a stream that is read to its end."""
    async with stream:
        async for _ in stream:
            pass
    return stream.result()


async def submit_and_read(client):
    job = await batch.submit(["one", "two"], "openai:gpt-5.2", client=client)
    while not job.is_ended:
        job = await batch.status(job, client=client)
    async with aclosing(batch.results(job, client=client)) as results:
        answers = [result.unwrap() async for result in results]
    return sum(answer.cost.total for answer in answers)


async def store_and_read(client):
    stored = await files.upload("anthropic", b"%PDF-1.7", file_name="a.pdf", client=client)
    await files.delete(stored, client=client)
    return 0.0


def cost_of(make):
    async def work(client):
        result = await make(client)
        return 0.0 if result.cost is None else result.cost.total

    return work


SPEECH = "openai:gpt-4o-mini-tts-2025-12-15"
VIDEO = {"seconds": 8, "size": "1280x720", "poll_interval": 0.01}
OPERATIONS = {
    "embed": cost_of(lambda client: embed("openai:text-embedding-3-small", "Hi.", client=client)),
    "embed_many": cost_of(
        lambda client: embed_many("openai:text-embedding-3-small", ["a", "b"], client=client)
    ),
    "generate_image": cost_of(
        lambda client: generate_image("openai:gpt-image-1", "A cat.", client=client)
    ),
    "stream_image": cost_of(
        lambda client: read(stream_image("openai:gpt-image-1", "A cat.", client=client))
    ),
    "speak": cost_of(lambda client: speak(SPEECH, "one two", client=client)),
    "stream_speech": cost_of(lambda client: read(stream_speech(SPEECH, "one two", client=client))),
    "transcribe": cost_of(lambda client: transcribe("openai:whisper-1", WAV, client=client)),
    "stream_transcription": cost_of(
        lambda client: read(stream_transcription("openai:gpt-4o-transcribe", WAV, client=client))
    ),
    "generate_video": cost_of(
        lambda client: generate_video("xai:grok-imagine-video", "A sea.", client=client, **VIDEO)
    ),
    "rerank": cost_of(
        lambda client: rerank("voyage:rank-1", "red", ["a red car", "a cat"], client=client)
    ),
    "moderate": cost_of(
        lambda client: moderate("openai:omni-moderation-latest", "Hi.", client=client)
    ),
    "batch": submit_and_read,
    "upload": store_and_read,
}


def make_client(*layers):
    transport = AsgiTransport(Simulator(key=KEY))
    bases = dict.fromkeys(("openai", "anthropic"), "http://simulator.invalid")
    bases |= dict.fromkeys(("voyage", "xai"), "http://simulator.invalid/v1")
    adapters = {
        name: HttpAdapter(name, KEY, base_url=base, transport=transport)
        for name, base in bases.items()
    }
    return Client(adapters, middleware=layers, prices=PRICES)


def by_events(work, _):
    """The cost and the number of attempts of each call, as subscribers are told."""
    client, ended = make_client(), []
    client.subscribe(lambda event: ended.append(event) if event.type != "call_started" else None)
    expected = virtual_time.run(work(client))
    assert all(event.operation != "generate" for event in ended)
    return expected, [(event.cost and event.cost.total, 1, event.usage) for event in ended]


def by_logging(work, caplog):
    """The same, as the log tells."""
    caplog.set_level(logging.INFO, CALLS)
    expected = virtual_time.run(work(make_client(Logging())))
    records = [record for record in caplog.records if record.name == CALLS]
    return expected, [(record.cost, record.attempts, record) for record in records]


def by_telemetry(work, _):
    """The same, as the spans tell."""
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    expected = virtual_time.run(work(make_client(Telemetry(tracer_provider=tracers))))
    spans = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.CLIENT]
    facts = [dict(span.attributes) for span in spans]
    return expected, [(each.get(names.COST), each.get(names.ATTEMPTS), each) for each in facts]


OBSERVERS = {"events": by_events, "logging": by_logging, "telemetry": by_telemetry}
every_observer = pytest.mark.parametrize("observer", OBSERVERS)


@every_observer
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_an_operation_cost_is_what_observers_see(observer, operation, caplog):
    """All calls of a function together cost what its result says; each had one attempt."""
    expected, calls = OBSERVERS[observer](OPERATIONS[operation], caplog)

    assert calls
    assert sum(cost or 0.0 for cost, _, _ in calls) == pytest.approx(expected)
    assert expected > 0 or operation in ("moderate", "upload")
    assert {attempts for _, attempts, _ in calls} == {1}


async def begin_and_read(client, seen):
    """What observers have seen when a stream has begun, and at its end."""
    stream = stream_speech(SPEECH, "one two three", client=client)
    async with stream:
        await anext(aiter(stream))
        begun = len(seen())
        async for _ in stream:
            pass
    return begun, len(seen())


@every_observer
def test_a_streamed_operation_completes_when_its_stream_ends(observer, caplog):
    """Not when it begins."""
    caplog.set_level(logging.INFO, CALLS)
    exporter, tracers, ended = InMemorySpanExporter(), TracerProvider(), []
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    client = make_client(Logging(), Telemetry(tracer_provider=tracers))
    client.subscribe(lambda event: ended.append(event) if event.type != "call_started" else None)
    seen = {
        "events": lambda: ended,
        "logging": lambda: [each for each in caplog.records if each.name == CALLS],
        "telemetry": exporter.get_finished_spans,
    }[observer]

    begun, whole = virtual_time.run(begin_and_read(client, seen))

    assert begun == 0
    assert whole == (2 if observer == "telemetry" else 1)  # the call and its attempt


@every_observer
def test_a_stream_that_is_left_is_told_as_cancelled(observer, caplog):
    """The reader has taken one item."""
    caplog.set_level(logging.INFO, CALLS)
    exporter, tracers, ended = InMemorySpanExporter(), TracerProvider(), []
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    client = make_client(Logging(), Telemetry(tracer_provider=tracers))
    client.subscribe(lambda event: ended.append(event) if event.type != "call_started" else None)

    async def work():
        async with stream_speech(SPEECH, "one two three", client=client) as stream:
            await anext(aiter(stream))

    virtual_time.run(work())

    if observer == "events":
        assert [(event.type, event.finish_reason) for event in ended] == [
            ("call_completed", "cancelled")
        ]
    elif observer == "logging":
        (record,) = [each for each in caplog.records if each.name == CALLS]
        assert (record.error_class, record.attempts) == ("cancelled", 1)
    else:
        (span,) = [each for each in exporter.get_finished_spans() if each.kind is SpanKind.CLIENT]
        assert span.attributes[names.FINISH_REASONS] == ("cancelled",)


def test_one_id_has_one_scope(monkeypatch):
    """However many parts of the library an operation passes through."""
    registered, add = [], Scopes.add

    def note(self, request_id, scope):
        registered.append((request_id, scope))
        add(self, request_id, scope)

    monkeypatch.setattr(Scopes, "add", note)
    virtual_time.run(OPERATIONS["embed"](make_client()))
    virtual_time.run(OPERATIONS["stream_speech"](make_client()))

    assert len(registered) == len({request_id for request_id, _ in registered}) == 2


def test_a_failed_operation_is_told_with_its_attempts(caplog):
    """The error of the provider ends it."""
    caplog.set_level(logging.INFO, CALLS)

    async def work(client):
        with pytest.raises(NotFoundError):
            await files.get("file-none", provider="anthropic", client=client)

    virtual_time.run(work(make_client(Logging())))
    (record,) = [each for each in caplog.records if each.name == CALLS]
    assert (record.operation, record.error, record.attempts) == (
        "retrieve_file",
        "NotFoundError",
        1,
    )
