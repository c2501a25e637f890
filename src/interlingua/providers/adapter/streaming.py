"""Streams of a model through one provider: the half of `Generation` that reads events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from time import perf_counter

from msgspec.structs import replace

from interlingua.providers.adapter.configuration import Configuration
from interlingua.providers.frame_batches import (
    HELD,
    FrameBatches,
    WholeBody,
    WholeDecoder,
    collect,
    feed_rest,
)
from interlingua.providers.http_requests import Ready
from interlingua.providers.replies import (
    STEP,
    UNREADABLE,
    answer_headers,
    check_body,
    find_request_id,
    read_error,
    unreadable,
)
from interlingua.providers.tariffs import price_finish
from interlingua.runtime.cancel import CancelScope
from interlingua.runtime.fold import ClosedStream, in_steps
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import Part
from interlingua.spec.contracts import HttpReply, StreamDecoder
from interlingua.spec.errors import SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS
from interlingua.streams.reader import FrameDecoder, StreamReader
from interlingua.wire.framing import AWS_EVENT_STREAM
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.sse import SSEDecoder


class Streaming:
    """Sends a request that is ready, and reads its answer as events; `decode` is for whole ones."""

    def __init__(self, configuration: Configuration, decode: Callable[..., Response]) -> None:
        self._configuration = configuration
        self._decode = decode

    async def joined(self, ready: Ready) -> Response:
        """
        The response of a stream, for an answer that was asked for as a whole.

        The timeouts are those of a stream. `raw` is the body that a whole answer would have had.
        """

        async def make_ready() -> Ready:
            return ready

        accumulator = StreamAccumulator()
        async with ClosedStream(self.events(make_ready, CancelScope())) as events:
            try:
                async for event in events:
                    accumulator.feed(event)
                join = partial(self._join, accumulator, ready.request)
                return await asyncio.to_thread(join) if accumulator.is_large else join()
            except SDKError as error:
                if accumulator.has_begun:
                    cut = partial(self._cut, accumulator, ready.request)
                    so_far = await asyncio.to_thread(cut) if accumulator.is_large else cut()
                    error.add_facts(partial=so_far)
                raise

    def _cut(self, accumulator: StreamAccumulator, request: Request) -> Response:
        """What has arrived; the provider bills it, and has not said how much it is."""
        from interlingua.tokens.estimate import estimate_usage

        so_far, family = accumulator.partial(), self._configuration.dialect.FACTS.token_family
        return replace(so_far, usage=estimate_usage(so_far.usage, request, so_far.message, family))

    def _join(self, accumulator: StreamAccumulator, request: Request) -> Response:
        response = accumulator.response()
        body = self._configuration.dialect.encode_response(response, request)
        return replace(response, raw=body)

    async def events(  # noqa: C901, PLR0912 -- one function: a generator would cost each delta
        self, make_ready: Callable[[], Awaitable[Ready]], scope: CancelScope
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send, read and decode: one attempt at a stream. A failure is raised, without events."""
        own, ready, began = self._configuration, await make_ready(), perf_counter()
        reader: StreamReader | None = None
        try:
            async with own.transport.send(ready.http) as reply:
                if reply.status >= 300:
                    raise await read_error(reply, own.dialect)
                scope.replies = (*scope.replies, reply)
                try:
                    reader = self._reader(ready, reply, began)
                    feed = reader.decoder.feed
                    batches = FrameBatches(reply, reader.frames, own.stream_content)
                    next_check, in_thread = STEP, False
                    async for frames in batches:
                        has_content = False
                        if batches.size > next_check:  # not for each frame, which would cost
                            next_check = batches.size + STEP
                            in_thread = getattr(reader.decoder, "held", 0) > HELD
                        for frame in frames:
                            if in_thread or len(frame.data) > STEP:
                                decoded = await asyncio.to_thread(feed_rest, feed, frames, frame)
                                async for event in in_steps(*decoded):
                                    has_content = has_content or type(event) in DELTAS
                                    yield await _label(reader, event, batches.size)
                                if reader.is_finished:
                                    return
                                next_check = 0
                                break
                            for event in feed(frame):
                                if type(event) in DELTAS:
                                    has_content = True
                                    yield event
                                elif type(event) is Finish:
                                    yield await _label(reader, event, batches.size)
                                else:
                                    yield reader.label(event)
                            if reader.is_finished:
                                return
                        if has_content:
                            batches.content_at = perf_counter()
                    end = partial(collect, reader.finish())
                    decoded = await asyncio.to_thread(end) if batches.size > STEP else end()
                    async for event in in_steps(*decoded):
                        yield event
                finally:
                    scope.replies = tuple(other for other in scope.replies if other is not reply)
        except SDKError as failure:
            is_unread = reader is not None and not reader.is_started
            is_unread = is_unread and isinstance(failure, UNREADABLE)
            error = unreadable(failure, reply.headers) if is_unread else failure
            own.label_error(error, ready.request.request_id, ready.request.model)
            if error is failure:
                raise
            raise error from None

    def _reader(self, ready: Ready, reply: HttpReply, began: float) -> StreamReader:
        """The reader for a reply, chosen by its content type."""
        own, request, profile = self._configuration, ready.request, ready.profile
        dialect, limits = own.dialect, own.reply_limits
        known = Response(
            provider=own.name,
            request_id=request.request_id,
            provider_request_id=find_request_id(reply.headers),
            model=request.model,
            warnings=ready.warnings,
            rate_limit=parse_rate_limit(answer_headers(reply.headers)),
        )
        frames: FrameDecoder = SSEDecoder(limits.event, limits.events)
        decoder: StreamDecoder
        content_type = reply.headers.get("content-type", "")
        is_json = not ready.stream or "json" in content_type
        given = {"request": request} if own.streams_take_request else {}
        if not is_json:
            if content_type.startswith(AWS_EVENT_STREAM):
                from interlingua.wire.aws_event_stream import ChunkDecoder, EventDecoder

                has_events = "aws-event-stream" in dialect.FACTS.framings
                split = EventDecoder if has_events else ChunkDecoder
                frames = split(limits.event, limits.events)
            decoder = dialect.stream_decoder(new_id=new_ulid, profile=profile, **given)
        elif ready.stream and "json-array" in dialect.FACTS.framings:
            from interlingua.wire.json_array import JSONArrayDecoder

            frames = JSONArrayDecoder(limits.event, limits.events)
            decoder = dialect.stream_decoder(new_id=new_ulid, profile=profile, **given)
        else:  # the server does not stream: one JSON body
            frames = WholeBody()
            decoder = WholeDecoder(
                partial(self._decode, request=request, profile=profile, headers=reply.headers)
            )
        edit: Callable[[StreamEvent], StreamEvent] | None = None
        if request.tools:
            from interlingua.prepare.schema.restore import restore_event

            edit = partial(restore_event, request=request)
        return StreamReader(
            decoder,
            known,
            lambda: round((perf_counter() - began) * 1000),
            frames=frames,
            edit=edit,
            check=lambda response: check_body(response, request, dialect.NAME),
            estimate=partial(_estimate, request=request, family=dialect.FACTS.token_family),
            price=partial(price_finish, ready.tariffs, own.seller, request),
            keep_raw=request.keep_raw,
        )


def _estimate(finish: Finish, parts: tuple[Part, ...], request: Request, family: str) -> Finish:
    from interlingua.providers.usage import estimate_finish  # most providers report their usage

    return estimate_finish(finish, parts, request, family)


async def _label(reader: StreamReader, event: StreamEvent, size: int) -> StreamEvent:
    """As `StreamReader.label`; the end of a large stream is read in a thread."""
    if type(event) is Finish and size > STEP:
        return await asyncio.to_thread(reader.label, event)
    return event if type(event) in DELTAS else reader.label(event)
