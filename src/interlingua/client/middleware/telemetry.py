"""`Telemetry`: spans and metrics of calls, attempts and tools, for OpenTelemetry."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

from interlingua.client.middleware import telemetry_names as names
from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    StreamNext,
    ToolNext,
)
from interlingua.client.middleware.operation_meter import metered
from interlingua.client.middleware.telemetry_content import (
    input_attributes,
    output_attributes,
    result_text,
    safe_json,
)
from interlingua.lazy import Remade
from interlingua.runtime.fold import close_stream
from interlingua.runtime.items import ItemsEnd, WatchedItems
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import AbortError, ConfigurationError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, Response, Usage
from interlingua.streams.grammar import DELTAS
from interlingua.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanContext, TracerProvider

_MAX_RUNS = 1024
Finisher: TypeAlias = Callable[["Usage | None", "Cost | None"], None]
"""Called with what an operation used and cost."""


class Telemetry(Remade):
    """
    Reports calls to OpenTelemetry, by its conventions for generative AI.

        client = Client.from_env(middleware=[Telemetry()])

    A span for each request to a model, with a child for each attempt and for each tool that its
    answer calls; metrics of durations, tokens and the time to the first chunk. The providers are
    the global ones unless others are given. Spans contain nothing of what was said, unless
    `content` is true. It needs the extra `telemetry`.
    """

    def __init__(
        self,
        *,
        content: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._api = _Api(tracer_provider, meter_provider)
        self._content = content
        self._runs: OrderedDict[str, tuple[SpanContext, SpanContext]] = OrderedDict()
        self.attempt_layer: AttemptTelemetry = AttemptTelemetry(self._api)
        """The layer that runs once per attempt."""

    async def complete(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """Return the answer of the next layer, in a span."""
        watch = self._start(request, call, is_stream=False)
        with watch.ending(), watch.current():
            response = await call_next(request)
            self._finish(watch, request, response, call)
            return response

    async def stream(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the next layer, in a span that ends with them."""
        watch = self._start(request, call, is_stream=True)
        with watch.ending():
            async with aclosing(watch.iterate(call_next(request))) as events:
                async for event in events:
                    if type(event) in DELTAS:
                        watch.note_chunk()
                    elif type(event) is Finish and event.response is not None:
                        self._finish(watch, request, event.response, call)
                        watch.end()
                    yield event

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Return the result of the next layer, in a span."""
        name = names.OPERATIONS.get(operation.name, operation.name)
        facts = _facts(name, operation.provider, getattr(value, "model", None), operation.adapter)
        own = {names.REQUEST_ID: operation.request_id}
        watch = _Watch(self._api, facts, {**own, **_conversation(value)})

        def finish(usage: Usage | None, cost: Cost | None) -> None:
            watch.note_amounts(usage, cost, operation.attempts())

        return await watch.perform(value, call_next, finish)

    async def run_tool(self, call: ToolCall, request: Request, call_next: ToolNext) -> ToolResult:
        """Return the result of a tool, in a span: a child of the span of its answer."""
        facts = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: call.name,
            names.TOOL_TYPE: "function",
        }
        own = {names.TOOL_CALL_ID: call.id, **_conversation(request)}
        if self._content:
            own[names.TOOL_ARGUMENTS] = safe_json(call.arguments)
        known = self._runs.get(request.request_id or "")
        parent = None if known is None else self._api.child_of(known[1])
        watch = _Watch(self._api, facts, own, parent=parent)
        with watch.ending(), watch.current():
            result = await call_next()
            if self._content:
                watch.span.set_attribute(names.TOOL_RESULT, result_text(result))
            return result

    def _start(self, request: Request, call: Call, *, is_stream: bool) -> _Watch:
        adapter = call.adapters.get(request.provider or "")
        facts = _facts(names.CHAT, request.provider or "", request.model, adapter)
        parent = None
        if call.step and not self._api.has_span():  # the steps of a run belong to one trace
            known = self._runs.get(request.request_id or "")
            parent = None if known is None else self._api.child_of(known[0])
        own: dict[str, Any] = {
            names.REQUEST_ID: request.request_id or "",
            names.STEP: call.step,
            **_conversation(request),
        }
        if is_stream:
            own[names.STREAM] = True
        for field, name in names.REQUEST_FIELDS.items():
            value = getattr(request, field)
            if value is not None:
                own[name] = value
        watch = _Watch(self._api, facts, own, parent=parent)
        if self._content and watch.span.is_recording():
            watch.span.set_attributes(input_attributes(request))
        return watch

    def _finish(self, watch: _Watch, request: Request, response: Response, call: Call) -> None:
        """Add what the answer tells to span and metrics."""
        span = watch.span
        watch.metric_facts[names.RESPONSE_MODEL] = response.model
        watch.note_amounts(response.usage, response.cost, call.attempts())
        if response.tool_calls:
            self._remember(request.request_id or "", span.get_span_context())
        if not span.is_recording():
            return
        facts: dict[str, Any] = {
            names.RESPONSE_ID: response.id or None,
            names.RESPONSE_MODEL: response.model or None,
            names.FINISH_REASONS: [response.finish_reason.reason],
        }
        if self._content:
            facts |= output_attributes(response)
        span.set_attributes({name: value for name, value in facts.items() if value is not None})

    def _remember(self, request_id: str, context: SpanContext) -> None:
        """Note the span of an answer that calls tools, and the first one of its run."""
        runs = self._runs
        known = runs.pop(request_id, None)
        runs[request_id] = (context if known is None else known[0], context)
        while len(runs) > _MAX_RUNS:
            runs.popitem(last=False)


class AttemptTelemetry:
    """A span for each attempt, inside of the one of the request."""

    per_attempt: ClassVar[bool] = True

    def __init__(self, api: _Api) -> None:
        self._api = api

    async def complete(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """The answer of one attempt, in a span."""
        watch = self._start(request, call)
        with watch.ending(), watch.current():
            return await call_next(request)

    async def stream(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of one attempt, in a span."""
        watch = self._start(request, call)
        with watch.ending():
            async with aclosing(watch.iterate(call_next(request))) as events:
                async for event in events:
                    if type(event) is Finish:
                        watch.end()
                    yield event

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """The result of one attempt of an operation, in a span."""
        model = getattr(value, "model", None)
        facts = _facts(None, operation.provider, model, operation.adapter)
        watch = _Watch(self._api, facts, {names.ATTEMPT: operation.attempt or 0}, name="attempt")
        return await watch.perform(value, call_next)

    def _start(self, request: Request, call: Call) -> _Watch:
        adapter = call.adapters.get(request.provider or "")
        facts = _facts(None, request.provider or "", request.model, adapter)
        return _Watch(self._api, facts, {names.ATTEMPT: call.attempt or 0}, name="attempt")


class _Api:
    """The parts of OpenTelemetry's API that are used; imported when a `Telemetry` is made."""

    def __init__(
        self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None
    ) -> None:
        try:
            from opentelemetry import context, metrics, trace
        except ImportError as error:
            raise ConfigurationError(
                "Telemetry needs OpenTelemetry. Install it: pip install 'interlingua[telemetry]'."
            ) from error
        self.trace = trace
        self.context = context
        self.tracer: Any = trace.get_tracer("interlingua", __version__, tracer_provider)
        meter = metrics.get_meter("interlingua", __version__, meter_provider)

        def histogram(name: str, unit: str, buckets: tuple[float, ...], text: str) -> Any:
            return meter.create_histogram(
                name, unit, text, explicit_bucket_boundaries_advisory=buckets
            )

        seconds, buckets = names.SECONDS, names.SECONDS_BUCKETS
        self.duration: Any = histogram(names.DURATION, seconds, buckets, "Duration of a request.")
        self.tool_duration: Any = histogram(
            names.TOOL_DURATION, seconds, buckets, "Duration of a tool."
        )
        self.first_chunk: Any = histogram(
            names.TIME_TO_FIRST_CHUNK, seconds, buckets, "Time until the first chunk of a stream."
        )
        self.tokens: Any = histogram(
            names.TOKEN_USAGE, names.TOKENS, names.TOKEN_BUCKETS, "Input and output tokens."
        )

    def has_span(self) -> bool:
        """Whether the program is in a span."""
        return self.trace.get_current_span().get_span_context().is_valid

    def child_of(self, parent: SpanContext) -> Context:
        """The current context, with this span as the current one."""
        return self.trace.set_span_in_context(self.trace.NonRecordingSpan(parent))


class _Watch:
    """A span that is under way, and what its metrics say."""

    def __init__(
        self,
        api: _Api,
        facts: Mapping[str, Any],
        own: Mapping[str, Any],
        *,
        name: str | None = None,
        parent: Context | None = None,
    ) -> None:
        self._api = api
        self._began = perf_counter()
        self._has_chunk = False
        self._is_over = False
        self._is_attempt = name is not None
        self.metric_facts: dict[str, Any] = dict(facts)
        operation = name or facts[names.OPERATION]
        self._is_tool = operation == names.EXECUTE_TOOL
        is_inner = self._is_attempt or self._is_tool
        kind = api.trace.SpanKind.INTERNAL if is_inner else api.trace.SpanKind.CLIENT
        target_names = (names.TOOL_NAME, names.REQUEST_MODEL, names.ATTEMPT_MODEL)
        target = next((facts[each] for each in target_names if facts.get(each)), None)
        self.span: Span = api.tracer.start_span(
            f"{operation} {target}" if target else operation,
            context=parent,
            kind=kind,
            attributes={**facts, **own},
        )
        self._context = api.trace.set_span_in_context(self.span, parent)

    @contextmanager
    def current(self) -> Iterator[None]:
        """A block in which the span is the current one."""
        token = self._api.context.attach(self._context)
        try:
            yield
        finally:
            self._api.context.detach(token)

    async def iterate(
        self, events: AsyncIterator[StreamEvent]
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The events; while one is awaited, the span is the current one.

        It is not while the reader of the stream works: that is no part of the call.
        """
        attach, detach, context = self._api.context.attach, self._api.context.detach, self._context
        try:
            while True:
                token = attach(context)
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
                finally:
                    detach(token)
                yield event
        finally:
            with self.current():
                await close_stream(events)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """A block at whose end the span ends."""
        try:
            yield
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self.end()

    async def perform(
        self, value: Any, call_next: PerformNext, finish: Finisher | None = None
    ) -> Any:
        """
        The result of an operation; the span ends with it, or with the last item of a stream.

        `finish` is called before that with what the operation used and cost.
        """
        try:
            with self.current():
                result = await call_next(value)
        except BaseException as error:
            self.fail(error)
            self.end()
            raise

        async def end(items: ItemsEnd) -> None:
            if items.error is not None:
                self.fail(items.error)
            elif finish is not None:
                finish(items.usage, items.cost)
            self.end()

        if isinstance(result, AsyncGenerator):
            return WatchedItems(result, end)
        usage, cost = metered(result)
        await end(ItemsEnd(None, usage, cost))
        return result

    def note_amounts(
        self, usage: Usage | None, cost: Cost | None, attempts: tuple[Attempt, ...]
    ) -> None:
        """Add what a call used and cost to span and metrics."""
        is_cached = cost is not None and cost.source == "cache"
        if usage is not None and not is_cached:
            self.add_tokens({"input": usage.input_tokens, "output": usage.output_tokens})
        if not self.span.is_recording():
            return
        facts: dict[str, Any] = {
            names.ATTEMPTS: len(attempts),
            names.CACHED: is_cached or None,
            names.COST: None if cost is None else cost.total,
            names.CURRENCY: None if cost is None else cost.currency,
        }
        if usage is not None:
            facts |= {name: getattr(usage, field) for field, name in names.USAGE_FIELDS.items()}
            facts[names.CACHE_CREATION] = usage.cache_write_tokens
        known = {name: value for name, value in facts.items() if value is not None}
        self.span.set_attributes(known)

    def note_chunk(self) -> None:
        """The first content of a stream has arrived."""
        if not self._has_chunk:
            self._has_chunk = True
            seconds = perf_counter() - self._began
            self.span.set_attribute(names.FIRST_CHUNK, seconds)
            self._api.first_chunk.record(seconds, self.metric_facts, self._context)

    def add_tokens(self, counts: Mapping[str, int]) -> None:
        """Count tokens by their type."""
        for kind, count in counts.items():
            facts = {**self.metric_facts, names.TOKEN_TYPE: kind}
            self._api.tokens.record(count, facts, self._context)

    def fail(self, error: BaseException) -> None:
        """
        The error that ends the span. To cancel a call, or to leave a stream, is none.

        Only its class is told: its message may repeat what was said.
        """
        if self._is_over:
            return
        if isinstance(error, (asyncio.CancelledError, GeneratorExit, AbortError)):
            self.span.set_attribute(names.FINISH_REASONS, ["cancelled"])
            return
        kind = type(error).__name__
        self.metric_facts[names.ERROR_TYPE] = kind
        self.span.set_attribute(names.ERROR_TYPE, kind)
        if isinstance(error, SDKError) and error.status_code is not None:
            self.span.set_attribute(names.STATUS_CODE, error.status_code)
        self.span.set_status(self._api.trace.StatusCode.ERROR, kind)

    def end(self) -> None:
        """End the span; idempotent."""
        if self._is_over:
            return
        self._is_over = True
        if not self._is_attempt:
            metric = self._api.tool_duration if self._is_tool else self._api.duration
            metric.record(perf_counter() - self._began, self.metric_facts, self._context)
        self.span.end()


def _facts(
    operation: str | None, provider: str, model: str | None, adapter: object
) -> dict[str, Any]:
    """What a span and its metrics have in common; without an operation it is an attempt."""
    facts: dict[str, Any] = {}
    provider = names.PROVIDERS.get(provider, provider)
    if operation is None:
        # Langfuse and Phoenix take each span with a model of the conventions for a generation.
        facts |= {names.ATTEMPT_PROVIDER: provider, names.ATTEMPT_MODEL: model}
    else:
        facts |= {names.PROVIDER: provider, names.OPERATION: operation}
        facts[names.REQUEST_MODEL] = model
    facts = {name: value for name, value in facts.items() if value}
    address = urlsplit(getattr(adapter, "base_url", "") or "")
    if address.hostname:
        facts[names.SERVER_ADDRESS] = address.hostname
        facts[names.SERVER_PORT] = address.port or (443 if address.scheme == "https" else 80)
    return facts


def _conversation(value: object) -> dict[str, str]:
    session_id = getattr(value, "session_id", None)
    return {names.CONVERSATION: session_id} if session_id else {}
