"""Streams a client receives."""

import json

import pytest

from interlingua.dialects.openai_chat import stream_decoder
from interlingua.dialects.openai_chat.decoder import PartAssembler
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.spec.content import Opaque, Refusal, Text
from interlingua.spec.contracts import Frame, Profile
from interlingua.spec.errors import InvalidRequestError, RateLimitError, StreamError
from interlingua.spec.events import Finish, ProviderEvent, StreamStart, TextDelta
from interlingua.spec.response import FinishReason
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import Grammar
from interlingua.wire.tool_calls import counting_ids

NAME = "openai_chat"
DONE = "[DONE]"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta=None, finish=None, *, choice=None, **fields):
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    one = {"index": 0, "delta": delta or {}, "finish_reason": finish, **(choice or {})}
    return {**base, "choices": [one], **fields}


def bare(**fields):
    return {**chunk(), "choices": [], **fields}


def events_of(*chunks, quirks=None, done=True):
    decoder = stream_decoder(profile=Profile(quirks=quirks))
    frames = [Frame(data=item if isinstance(item, str) else json.dumps(item)) for item in chunks]
    if done:
        frames.append(Frame(data=DONE))
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish()


def fold(events):
    grammar, accumulator = Grammar(), StreamAccumulator()
    for event in events:
        grammar.feed(event)
        accumulator.feed(event)
    grammar.finish()
    return accumulator.response()


def response_of(*chunks, **options):
    return fold(events_of(*chunks, **options))


def test_text():
    """Deltas of content are one text."""
    events = events_of(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "He"}),
        chunk({"content": "llo"}),
        chunk({}, "stop"),
        bare(usage=USAGE),
    )

    assert [event.type for event in events] == [
        "stream_start",
        "text_start",
        "text_delta",
        "text_delta",
        "text_end",
        "finish",
    ]
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["He", "llo"]
    response = fold(events)
    assert (response.id, response.model, response.text) == ("c1", "m", "Hello")
    assert response.finish_reason == FinishReason(reason="stop", raw="stop")
    assert response.usage.total_tokens == 15
    assert response.extra == {NAME: {"created": 1}}


def test_content_that_never_has_a_word():
    """Empty content is empty text, as in a whole answer; null is none."""
    assert response_of(chunk({"content": ""}), chunk({}, "stop")).message.content == (
        Text(text=""),
    )
    assert response_of(chunk({"content": None}), chunk({}, "stop")).message.content == ()


def test_refusal():
    """A refusal arrives whole, as a part."""
    events = events_of(chunk({"refusal": "n"}), chunk({"refusal": "o"}), chunk({}, "stop"))

    assert [event.part for event in events if isinstance(event, ProviderEvent)] == [
        Refusal(text="no")
    ]


# The end.


def test_done_is_the_end():
    """What follows is ignored."""
    decoder = stream_decoder()
    decoder.feed(Frame(data=json.dumps(chunk({"content": "a"}, "stop"))))

    assert isinstance(decoder.feed(Frame(data=DONE))[-1], Finish)
    assert decoder.feed(Frame(data=json.dumps(chunk({"content": "b"})))) == []
    assert decoder.feed(Frame(data=DONE)) == []
    assert decoder.finish() == []


def test_a_body_without_a_finish_reason_is_an_error():
    """A body that just stops is an error (field bug 52)."""
    with pytest.raises(StreamError, match="DONE"):
        events_of(chunk({"content": "a"}), done=False)


def test_a_finish_reason_alone_is_no_end():
    """The usage may have been cut off."""
    with pytest.raises(StreamError):
        events_of(chunk({"content": "a"}), chunk({}, "stop"), done=False)


def test_usage_before_the_finish_reason_is_no_end():
    """Some servers tell it all along."""
    with pytest.raises(StreamError):
        events_of(chunk({"content": "a"}, usage=USAGE), chunk({}, "stop"), done=False)


@pytest.mark.parametrize(
    "ending",
    [[chunk({}, "stop", usage=USAGE)], [chunk({}, "stop"), bare(usage=USAGE)]],
    ids=["together", "after"],
)
def test_finish_reason_with_usage_is_an_end(ending):
    """Servers that never send `[DONE]` end so."""
    assert response_of(chunk({"content": "a"}), *ending, done=False).text == "a"


def test_other_choices_must_have_ended_too():
    """Usage with the first choice's end is not the end of the others."""
    other = chunk(choice={"index": 1, "delta": {"content": "b"}})
    with pytest.raises(StreamError):
        events_of(other, chunk({}, "stop", usage=USAGE), done=False)


def test_servers_without_done():
    """With the quirk, a finish reason is enough."""
    quirks = ChatQuirks(done_sentinel=False)

    assert response_of(chunk({"content": "a"}, "stop"), quirks=quirks, done=False).text == "a"
    with pytest.raises(StreamError):
        events_of(chunk({"content": "a"}), quirks=quirks, done=False)


def test_done_without_a_reason():
    """The server said that it ended, not why."""
    response = response_of(chunk({"content": "a"}))

    assert response.finish_reason == FinishReason(reason="other")


def test_a_repeated_finish_reason_is_one_value():
    """It is one value (field bug 86)."""
    response = response_of(chunk({"content": "a"}), chunk({}, "stop"), chunk({}, "stop"))

    assert response.finish_reason.raw == "stop"


# Envelopes, usage, choices.


def test_envelope():
    """The first word goes to the start, later ones to the end; padding is nothing."""
    events = events_of(
        chunk({"content": "a"}, service_tier=None, x_groq={"id": "r"}, obfuscation="x"),
        chunk({"content": "b"}, service_tier="default", obfuscation="yy", p="ab"),
        chunk({}, "stop", x_groq={"usage": USAGE}),
    )
    start, finish = events[0], events[-1]

    assert start == StreamStart(
        id="c1",
        model="m",
        extra={NAME: {"created": 1, "service_tier": None, "x_groq": {"id": "r"}}},
    )
    assert finish.extra == {NAME: {"service_tier": "default", "x_groq": {"usage": USAGE}}}
    assert fold(events).extra[NAME]["x_groq"] == {"id": "r", "usage": USAGE}
    assert finish.usage.total_tokens == 15


def test_chunks_without_choices_are_nothing():
    """A filter's report comes before the id is known; null and missing choices are nothing.

    Field bug 51.
    """
    early = {"choices": [], "id": "", "model": "", "object": "", "created": 0, "filter": [1]}
    late = {**chunk(), "choices": None}
    response = response_of(early, late, chunk({"content": "a"}), chunk({}, "stop"))

    assert (response.id, response.model, response.text) == ("c1", "m", "a")
    assert response.extra == {NAME: {"created": 1, "filter": [1]}}


def test_usage_in_a_chunk_of_its_own_counts():
    """A chunk with usage and no choices counts (field bug 61)."""
    assert response_of(chunk({}, "stop"), bare(usage=USAGE)).usage.input_tokens == 10


def test_the_last_of_repeated_usages_counts():
    """The last one counts; they are not added up (field bug 85)."""
    more = {**USAGE, "completion_tokens": 6}
    response = response_of(chunk({"content": "a"}, usage=USAGE), chunk({}, "stop", usage=more))

    assert response.usage.output_tokens == 6


def test_usage_in_the_choice_is_read():
    """One server puts it there (field bug 62)."""
    response = response_of(chunk({}, "stop", choice={"usage": USAGE}))

    assert response.usage.input_tokens == 10


def test_logprobs_are_joined():
    """Each chunk has those of its own tokens."""
    response = response_of(
        chunk({"content": "a"}, choice={"logprobs": {"content": [1], "refusal": None}}),
        chunk({"content": "b"}, choice={"logprobs": {"content": [2], "refusal": None}}),
        chunk({}, "stop", choice={"logprobs": None}),
    )

    assert response.extra[NAME]["choice"] == {"logprobs": {"content": [1, 2], "refusal": None}}


def test_other_choices_are_passed_on():
    """Their chunks are events as they came; the answer is the first choice."""
    other = chunk(choice={"index": 1, "delta": {"content": "b"}})
    events = events_of(chunk({"content": "a"}), other, chunk({}, "stop"))

    assert ProviderEvent(dialect=NAME, name="choice", data=other) in events
    assert fold(events).text == "a"


def test_other_choices_that_are_whole_are_kept():
    """All of a choice in one chunk is kept as in a whole answer."""
    whole = {"index": 1, "delta": {"role": "assistant", "content": "b"}, "finish_reason": "stop"}
    response = response_of({**chunk({"content": "a"}, "stop")}, bare(choices=[whole]))

    assert response.extra[NAME]["choices"] == [
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "b"}}
    ]


def test_message_so_far_is_not_added():
    """One server repeats all of the message in each chunk."""
    response = response_of(
        chunk({"content": "a"}, choice={"message": {"content": "a"}}),
        chunk({"content": "b"}, "stop", choice={"message": {"content": "ab"}}),
    )

    assert response.text == "ab"


def test_an_answer_that_came_whole():
    """A server that cannot stream may send its message in one chunk."""
    one = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}

    assert response_of(bare(choices=[one], usage=USAGE)).text == "a"


# Errors and the unknown.


def test_errors_are_raised():
    """An error object in a stream is the provider's error."""
    decoder = stream_decoder()
    decoder.feed(Frame(data=json.dumps(chunk({"content": "a"}))))
    with pytest.raises(RateLimitError):
        decoder.feed(Frame(data=json.dumps(chunk(error={"code": 429, "message": "slow"}))))


def test_error_events_are_raised():
    """Some servers name the event instead."""
    data = {"type": "invalid_request_error", "message": "bad"}
    with pytest.raises(InvalidRequestError):
        stream_decoder().feed(Frame(event="error", data=json.dumps(data)))


def test_null_error_is_no_error():
    """A field that says nothing."""
    assert response_of(chunk({"content": "a"}, "stop", error=None)).text == "a"


def test_unknown_events_are_passed_on():
    """Named events that are no chunks wait for the start, and are kept."""
    decoder = stream_decoder()
    strange = Frame(event="progress", data='{"n": 1}')

    assert decoder.feed(strange) == []
    events = decoder.feed(Frame(data=json.dumps(chunk({"content": "a"}))))
    passed = ProviderEvent(dialect=NAME, name="progress", data={"n": 1})
    assert events[:2] == [events[0], passed]
    assert decoder.feed(strange) == [passed]


@pytest.mark.parametrize("data", ["{", "[]", "5", "NaN"])
def test_frames_that_cannot_be_read(data):
    """They break the stream with a typed error."""
    with pytest.raises(StreamError):
        stream_decoder().feed(Frame(data=data))


# Parts out of deltas.


def assemble(*deltas):
    """The parts that deltas add up to, and the message's other fields."""
    assembler = PartAssembler(counting_ids(), think_tags=False)
    accumulator = StreamAccumulator()
    for delta in deltas:
        for event in assembler.feed(delta):
            accumulator.feed(event)
    for event in assembler.finish():
        accumulator.feed(event)
    return accumulator.partial().message.content, assembler.extra


def test_unknown_content_parts():
    """They arrive whole."""
    strange = {"type": "reference", "ids": [1]}
    parts, _ = assemble({"content": "a"}, {"content": [strange]}, {"content": "b"})

    assert parts == (Text(text="a"), Opaque(dialect=NAME, data=strange), Text(text="b"))


def test_empty_content_before_calls():
    """It is empty text, in its place; after a call it says nothing."""
    call = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}
    before, _ = assemble({"content": ""}, {"tool_calls": [call]}, {"content": ""})
    after, _ = assemble({"tool_calls": [call]}, {"content": ""})

    assert [part.kind for part in before] == ["text", "tool_call"]
    assert [part.kind for part in after] == ["tool_call"]


def test_other_fields_of_the_message():
    """Lists grow, objects merge, sound is joined, anything else is the last word."""
    _, extra = assemble(
        {
            "role": "assistant",
            "annotations": [1],
            "channel": "a",
            "refusal": None,
            "meta": {"a": 1},
        },
        {"role": "", "annotations": [2], "channel": "b", "refusal": None, "meta": {"b": 2}},
        {"audio": {"id": "s", "data": "aa", "transcript": "x"}},
        {"audio": {"data": "bb", "transcript": "y"}, "channel": None},
        {"content": "a", "tool_calls": None, "reasoning": ""},
    )

    assert extra == {
        "annotations": [1, 2],
        "channel": "b",
        "refusal": None,
        "meta": {"a": 1, "b": 2},
        "audio": {"id": "s", "data": "aabb", "transcript": "xy"},
        "tool_calls": None,
        "reasoning": "",
    }


def test_empty_fields_that_are_filled_later():
    """Null says nothing once there is something."""
    _, extra = assemble({"refusal": None, "reasoning": None}, {"refusal": "no", "reasoning": "hm"})

    assert extra == {}


def test_a_call_without_a_word_is_none():
    """One server sends the older form empty beside every answer."""
    empty = {"name": "", "arguments": ""}

    assert assemble({"content": "a", "function_call": empty}) == (
        (Text(text="a"),),
        {"function_call": empty},
    )


def test_roles_of_their_own():
    """A role that is not the assistant's is kept."""
    assert assemble({"role": "model", "content": "a"})[1] == {"role": "model"}


def test_odd_calls_are_kept():
    """What is no call is carried as it is."""
    parts, _ = assemble({"tool_calls": [5, {"index": 0, "type": "mcp", "id": "x"}]})

    assert [part.data for part in parts] == [5, {"type": "mcp", "id": "x"}]


def test_a_chunk_between_two_parts_loses_nothing():
    """A chunk that ends one part and begins others loses nothing of any (field bug 49)."""
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
    rest = {"index": 0, "function": {"arguments": "}"}}

    response = response_of(
        chunk({"role": "assistant", "reasoning_content": "Hm"}),
        chunk({"reasoning_content": ".", "content": "Let me see.", "tool_calls": [call]}),
        chunk({"tool_calls": [rest]}, "tool_calls"),
    )

    assert (response.reasoning, response.text) == ("Hm.", "Let me see.")
    assert [(made.name, made.arguments) for made in response.tool_calls] == [("f", {})]


def test_a_thought_and_its_signature_may_come_in_one_chunk():
    """Text and signature of a thought may come together; both are kept for the next turn.

    Field bug 50.
    """
    detail = {"type": "reasoning.text", "text": "Hm.", "signature": "s", "index": 0}

    response = response_of(
        chunk({"role": "assistant", "reasoning": "Hm.", "reasoning_details": [detail]}),
        chunk({"content": "Yes."}, "stop"),
    )

    thought = response.message.content[0]
    assert thought.text == "Hm."
    assert thought.extra[NAME]["reasoning_details"] == [detail]
    assert response.text == "Yes."
