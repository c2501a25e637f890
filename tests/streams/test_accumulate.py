"""Events into responses, and back."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_objects, media, names, responses, words
from interlingua.spec.content import Image, Opaque, Refusal, Text, Thinking, ToolCall
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    StepFinish,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.response import (
    FinishReason,
    Response,
    Usage,
    Warning,
)
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.grammar import Grammar

SLOW = settings(deadline=None)
STOP = FinishReason(reason="stop", raw="end_turn")
WARNING = Warning(code="seed_dropped", message="no seed")

extras = st.just({}) | st.builds(lambda kept: {"openai_chat": kept}, json_objects)
odd_parts = st.one_of(
    media(),
    st.builds(Text, text=st.text(max_size=5), extra=extras),
    st.builds(Thinking, text=st.text(max_size=5), signature=st.none() | words, extra=extras),
    st.builds(Thinking, redacted=st.just(value=True), data=words, extra=extras),
    st.builds(Thinking, data=words),
    st.builds(ToolCall, id=names, name=names, raw_arguments=st.text(max_size=5)),
    st.builds(
        ToolCall, id=names, name=names, raw_arguments=words, type=st.just("custom"), extra=extras
    ),
    st.builds(Opaque, dialect=names, data=json_objects),
    st.builds(Refusal, text=words),
)


any_response = responses()


@st.composite
def odd_responses(draw):
    """Responses with parts, extras and warnings that only some wires have."""
    response = draw(any_response)
    content = draw(st.permutations([*response.message.content, *draw(st.lists(odd_parts))]))
    return msgspec.structs.replace(
        response,
        message=Message(role="assistant", content=content, extra=draw(extras)),
        provider=draw(names),
        request_id=draw(st.none() | names),
        warnings=draw(st.lists(st.just(WARNING), max_size=2)),
        extra=draw(extras),
    )


def fold(events):
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator


@SLOW
@given(responses() | odd_responses())
def test_replay_adds_up_to_the_response(response):
    """The replay of a response obeys the grammar and gives the same response."""
    grammar, events = Grammar(), events_from_response(response)

    for event in events:
        grammar.feed(event)
    grammar.finish()

    assert fold(events).response() == response


@SLOW
@given(odd_responses())
def test_partial_at_every_moment(response):
    """`partial` answers after any event, and only ever grows."""
    accumulator, text, parts = StreamAccumulator(), "", 0
    assert accumulator.partial() == Response()
    for event in events_from_response(response):
        accumulator.feed(event)
        partial = accumulator.partial()
        assert partial.text.startswith(text)
        assert len(partial.message.content) >= parts
        text, parts = partial.text, len(partial.message.content)
    assert accumulator.partial() == accumulator.response()


@SLOW
@given(odd_responses(), st.integers(0, 30), st.randoms(use_true_random=False))
def test_cut_anywhere_can_be_closed(response, length, random):
    """After any cut the open segments close legally, and the partial stays the same."""
    events = interleave(events_from_response(response), random)[: length + 1]
    grammar, accumulator = Grammar(), StreamAccumulator()
    for event in events:
        grammar.feed(event)
        accumulator.feed(event)
    before = accumulator.partial()

    closing = accumulator.end_segments()

    for event in closing:
        grammar.feed(event)
    if not grammar.finished:
        grammar.feed(ErrorEvent(error=StreamError("cut"), response=before))
        grammar.feed(Finish(finish_reason=FinishReason(reason="error"), response=before))
    grammar.finish()
    assert accumulator.end_segments() == []
    assert accumulator.partial() == before


@SLOW
@given(odd_responses(), st.randoms(use_true_random=False))
def test_interleaving_never_shows(response, random):
    """Segments that run at the same time add up to the same response."""
    assert fold(interleave(events_from_response(response), random)).response() == response


@SLOW
@given(odd_responses())
def test_every_prefix_has_no_response_yet(response):
    """Before `Finish`, asking for the whole is an error with the partial attached."""
    accumulator = StreamAccumulator()
    for event in events_from_response(response)[:-1]:
        accumulator.feed(event)
        with pytest.raises(StreamError, match="has not finished") as caught:
            accumulator.response()
        assert caught.value.partial == accumulator.partial()


def interleave(events, random):
    """The same events with ends and deltas put off, starts in their order."""
    first, *middle, last = events
    done, waiting = [first], []
    for event in middle:
        if event.type.endswith(("_start", "_event")):
            done.append(event)
            continue
        waiting.append(event)
        while waiting and random.random() < 0.5:
            done.append(waiting.pop(0))
    return [*done, *waiting, last]


def test_response():
    """What the start, the parts and the finish say is in the response."""
    accumulator = fold(
        [
            StreamStart(
                id="r",
                model="m",
                provider="p",
                request_id="req_1",
                warnings=(WARNING,),
                usage=Usage(input_tokens=3),
                extra={"openai_chat": {"created": 5, "object": "chunk"}},
            ),
            TextStart(id="a", index=1),
            TextDelta(id="a", index=1, delta="Hel"),
            ProviderEvent(part=Image(data=b"x"), index=2),
            ProviderEvent(dialect="openai_chat", name="ping", data={}),
            TextDelta(id="a", index=1, delta="lo"),
            TextEnd(id="a", index=1, part=Text(text="Hello", extra={"openai_chat": {"x": 1}})),
            Finish(
                finish_reason=STOP,
                usage=Usage(input_tokens=3, output_tokens=2),
                extra={"openai_chat": {"created": None, "tier": "flex"}, "gemini_generate": 1},
                message_extra={"openai_chat": {"refusal": None}},
            ),
        ]
    )

    assert accumulator.response() == Response(
        id="r",
        model="m",
        provider="p",
        message=Message(
            role="assistant",
            content=(Text(text="Hello", extra={"openai_chat": {"x": 1}}), Image(data=b"x")),
            extra={"openai_chat": {"refusal": None}},
        ),
        finish_reason=STOP,
        usage=Usage(input_tokens=3, output_tokens=2),
        warnings=(WARNING,),
        request_id="req_1",
        extra={
            "openai_chat": {"created": 5, "object": "chunk", "tier": "flex"},
            "gemini_generate": 1,
        },
    )


def test_the_end_of_a_segment_has_the_last_word():
    """The part of an end event counts, not the deltas before it."""
    accumulator = fold(
        [
            TextStart(id="a", index=0),
            TextDelta(id="a", index=0, delta="draft"),
            TextEnd(id="a", index=0, part=Text(text="final")),
        ]
    )

    assert accumulator.partial().text == "final"


def test_partial_has_open_parts():
    """What has come of an open part is in the partial, in its place."""
    accumulator = fold(
        [
            StreamStart(id="r"),
            TextStart(id="a", index=0, extra={"openai_chat": 1}),
            ToolCallStart(id="b", index=1, tool_call_id="1", name="look"),
            TextDelta(id="a", index=0, delta="so f"),
            ToolCallDelta(id="b", index=1, delta='{"at": "sky", "for'),
        ]
    )

    assert accumulator.partial().message.content == (
        Text(text="so f", extra={"openai_chat": 1}),
        ToolCall(id="1", name="look", arguments={"at": "sky"}, raw_arguments='{"at": "sky", "for'),
    )
    assert accumulator.partial().finish_reason == FinishReason(reason="other")
    assert not accumulator.partial().tool_calls[0].is_valid


def test_partial_knows_the_usage_of_the_start():
    """What the start said of the usage is known before the finish."""
    usage = Usage(input_tokens=12, cache_read_tokens=0)

    assert fold([StreamStart(usage=usage)]).partial().usage == usage
    assert fold([StreamStart()]).partial().usage == Usage()


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ("{", {}),
        ('{"a"', {}),
        ('{"a": ', {}),
        ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ('{"a": 12', {}),
        ("oops", {}),
    ],
)
def test_unfinished_call_has_what_parses(text, arguments):
    """An unfinished call has the arguments that can be read, else none, and its raw text."""
    accumulator = fold(
        [
            ToolCallStart(id="b", index=0, tool_call_id="1", name="look"),
            ToolCallDelta(id="b", index=0, delta=text),
        ]
    )
    expected = ToolCall(
        id="1", name="look", arguments=arguments, raw_arguments=text, is_cut=not text
    )

    assert accumulator.partial().tool_calls == (expected,)
    assert accumulator.end_segments() == [ToolCallEnd(id="b", index=0, tool_call=expected)]
    assert accumulator.partial().tool_calls == (expected,)


def test_arguments_of_open_calls_may_stay_text():
    """For what only counts them; the partial response has them as before."""
    accumulator = fold(
        [
            ToolCallStart(id="b", index=0, tool_call_id="1", name="look"),
            ToolCallDelta(id="b", index=0, delta='{"a": "b'),
        ]
    )
    text = ToolCall(id="1", name="look", raw_arguments='{"a": "b')

    assert accumulator.partial(parse=False).tool_calls == (text,)
    assert accumulator.partial().tool_calls[0].arguments == {"a": "b"}


def test_step_finish_begins_a_new_message():
    """After a step the next one's parts stand alone; the last one's are the response."""
    first, second = Response(message=Message.assistant("one")), Message.assistant("two")
    accumulator = fold(events_from_response(first)[:-1])
    assert accumulator.partial().text == "one"

    accumulator.feed(StepFinish(step=0, response=first))
    assert accumulator.partial().message.content == ()
    for event in events_from_response(Response(message=second))[1:]:
        accumulator.feed(event)

    assert accumulator.response().message == second


def test_response_of_the_finish_is_authoritative():
    """A whole response at the end wins over the events, with what the start alone knew."""
    whole = Response(id="final", message=Message.assistant("final"), warnings=[WARNING])
    started = Warning(code="clamped", message="x")
    accumulator = fold(
        [
            StreamStart(id="first", provider="p", request_id="req_1", warnings=(started,)),
            TextStart(id="a", index=0),
            TextEnd(id="a", index=0, part=Text(text="draft")),
            Finish(finish_reason=STOP, response=whole),
        ]
    )

    assert accumulator.response() == msgspec.structs.replace(
        whole, provider="p", request_id="req_1", warnings=(started, WARNING)
    )


def test_failed_stream():
    """An error told in the stream adds nothing; the finish after it has the partial."""
    partial = Response(id="r", message=Message.assistant("so far"))
    accumulator = fold(events_from_response(partial)[:-1])

    accumulator.feed(ErrorEvent(error=StreamError("cut"), response=partial))
    assert accumulator.partial() == partial
    accumulator.feed(Finish(finish_reason=FinishReason(reason="error"), response=partial))

    assert accumulator.response() == partial


def test_response_of_the_finish_keeps_its_own():
    """The start does not overwrite what the whole response says."""
    whole = Response(provider="mine", request_id="mine")
    start = StreamStart(provider="p", request_id="req_1")

    assert fold([start, Finish(finish_reason=STOP, response=whole)]).response() == whole


@pytest.mark.parametrize(
    "event",
    [TextDelta(id="a", index=0, delta="x"), TextEnd(id="a", index=0, part=Text(text="x"))],
    ids=lambda event: event.type,
)
def test_event_of_no_open_segment(event):
    """A delta or an end without a start is refused, and what came is kept."""
    accumulator = fold(events_from_response(Response(message=Message.assistant("kept")))[:-1])

    with pytest.raises(StreamError, match="not open"):
        accumulator.feed(event)
    assert accumulator.partial().text == "kept"


def test_replay_of_each_kind_of_part():
    """Text, thinking and calls are told in segments, everything else whole."""
    response = Response(
        message=Message.assistant(
            [
                Thinking(text="hm"),
                Thinking(redacted=True, data="x"),
                Text(text=""),
                ToolCall(id="1", name="n", arguments={"a": 1}),
                Refusal(text="no"),
            ]
        )
    )

    events = events_from_response(response)

    assert [event.type for event in events] == [
        "stream_start",
        "reasoning_start", "reasoning_delta", "reasoning_end",
        "provider_event",
        "text_start", "text_delta", "text_end",
        "tool_call_start", "tool_call_delta", "tool_call_end",
        "provider_event",
        "finish",
    ]  # fmt: skip
    assert events[9].delta == '{"a":1}'


def test_a_restart_begins_anew():
    """Only the answer after it counts, with its own start."""
    accumulator = StreamAccumulator()
    first, second = (
        events_from_response(
            Response(
                model=model,
                message=Message.assistant(model),
                finish_reason=FinishReason(reason="stop"),
            )
        )
        for model in ("one", "two")
    )
    for event in (*first[:-1], StreamRestart(start=second[0]), *second[1:]):
        accumulator.feed(event)

    response = accumulator.response()
    assert (response.text, response.model) == ("two", "two")
