"""Frames -> events."""

import json

import pytest

from interlingua.dialects.openai_responses import stream_decoder
from interlingua.spec.content import Opaque, Refusal, Text
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import (
    ContentFilterError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamError,
)
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import Grammar

NAME = "openai_responses"
BARE = {"id": "resp_1", "object": "response", "model": "gpt", "output": []}
CREATED = {"type": "response.created", "response": {**BARE, "status": "in_progress"}}


def message(text, ident="msg_1", **fields):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": ident, "role": "assistant", "content": content, **fields}


def call(arguments, ident="fc_1", call_id="call_1", name="f"):
    return {
        "type": "function_call",
        "id": ident,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def added(index, item):
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index, item):
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def text(index, delta, **fields):
    return {
        "type": "response.output_text.delta",
        "output_index": index,
        "content_index": 0,
        "delta": delta,
        **fields,
    }


def arguments(index, delta):
    kind = "response.function_call_arguments.delta"
    return {"type": kind, "output_index": index, "delta": delta}


def end(*output, kind="completed", **fields):
    response = {**BARE, "status": kind, "output": list(output), **fields}
    return {"type": f"response.{kind}", "response": response}


def frame(data):
    return Frame(data=data if isinstance(data, str) else json.dumps(data))


def decode(*payloads, finish=True):
    decoder = stream_decoder()
    grammar = Grammar()
    events = [event for data in payloads for event in decoder.feed(frame(data))]
    for event in events:
        grammar.feed(event)
    return events + (decoder.finish() if finish else [])


def fold(events):
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.response()


def said(events, kind):
    return [event.delta for event in events if isinstance(event, kind)]


def test_text():
    """A message is a start, its deltas and an end; the last event is the whole answer."""
    events = decode(
        CREATED,
        {"type": "response.in_progress", "response": BARE},
        added(0, {**message(""), "content": [], "status": "in_progress"}),
        {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": {}},
        text(0, "H"),
        text(0, "i\n"),
        {
            "type": "response.output_text.done",
            "output_index": 0,
            "content_index": 0,
            "text": "Hi\n",
        },
        done(0, message("Hi\n", status="completed")),
        end(message("Hi\n", status="completed"), usage={"input_tokens": 3, "output_tokens": 2}),
    )

    assert [StreamStart, TextStart, TextDelta, TextDelta, TextEnd, Finish] == list(
        map(type, events)
    )
    assert (events[0].id, events[0].model) == ("resp_1", "gpt")
    assert events[1].extra[NAME] == {"~item": {"id": "msg_1", "status": "in_progress"}}
    assert events[4].part.extra[NAME]["~item"] == {"id": "msg_1", "status": "completed"}
    assert events[5].usage.input_tokens == 3
    assert fold(events).text == "Hi\n"


def test_two_texts_of_one_message():
    """Each content part is a part, in its own segment."""
    item = message("a")
    item["content"].append({"type": "output_text", "text": "b"})

    events = decode(
        CREATED,
        added(0, message("")),
        text(0, "a"),
        text(0, "b", content_index=1),
        done(0, item),
        end(item),
    )

    assert [part.text for part in fold(events).message.content] == ["a", "b"]
    assert [event.index for event in events if isinstance(event, TextStart)] == [0, 1]


def test_tool_call():
    """Fragments are passed on as they came, and the call is whole at its end."""
    events = decode(
        CREATED,
        added(0, call("")),
        arguments(0, '{"a":'),
        arguments(0, " 1}"),
        {
            "type": "response.function_call_arguments.done",
            "output_index": 0,
            "arguments": '{"a": 1}',
        },
        done(0, call('{"a": 1}')),
        end(call('{"a": 1}')),
    )

    start = next(event for event in events if isinstance(event, ToolCallStart))
    assert (start.tool_call_id, start.name) == ("call_1", "f")
    assert said(events, ToolCallDelta) == ['{"a":', " 1}"]
    assert events[-2].tool_call.arguments == {"a": 1}
    assert events[-1].finish_reason.reason == "tool_calls"


def test_custom_tool_call():
    """Free text is streamed as it is."""
    item = {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": ""}
    kind = "response.custom_tool_call_input"

    events = decode(
        CREATED,
        added(0, item),
        {"type": f"{kind}.delta", "output_index": 0, "delta": "ls"},
        {"type": f"{kind}.done", "output_index": 0, "input": "ls -l"},
        done(0, {**item, "input": "ls -l"}),
        end({**item, "input": "ls -l"}),
    )

    assert said(events, ToolCallDelta) == ["ls", " -l"]
    assert (events[-2].tool_call.type, events[-2].tool_call.raw_arguments) == ("custom", "ls -l")


def test_fragments_of_interleaved_calls_go_each_to_its_own():
    """Fragments are routed by their place, also when items end out of order (field bug 3)."""
    one, two = call('{"a":1}', "fc_1", "c1"), call('{"b":2}', "fc_2", "c2")

    events = decode(
        CREATED,
        added(0, call("", "fc_1", "c1")),
        added(1, call("", "fc_2", "c2")),
        arguments(0, '{"a":'),
        arguments(1, '{"b":'),
        arguments(0, "1}"),
        arguments(1, "2}"),
        done(1, two),
        done(0, one),
        end(one, two),
    )

    calls = [event.tool_call for event in events if isinstance(event, ToolCallEnd)]
    assert {call.id: call.arguments for call in calls} == {"c1": {"a": 1}, "c2": {"b": 2}}
    assert [call.id for call in fold(events).tool_calls] == ["c1", "c2"]


def test_two_calls_with_one_number_are_two_calls():
    """Two calls with one number are two calls (field bug 1)."""
    one, two = call('{"a":1}', "fc_1", "c1"), call('{"b":2}', "fc_2", "c2")

    events = decode(
        CREATED,
        added(0, call("", "fc_1", "c1")),
        arguments(0, '{"a":1}'),
        added(0, call("", "fc_2", "c2")),
        arguments(0, '{"b":2}'),
        done(0, two),
        end(),
    )

    assert [one["call_id"], two["call_id"]] == [call.id for call in fold(events).tool_calls]
    assert [call.arguments for call in fold(events).tool_calls] == [{"a": 1}, {"b": 2}]


def test_ids_that_change():
    """Some proxies give each event another item id."""
    events = decode(
        CREATED,
        added(0, message("", "a")),
        text(0, "H", item_id="b"),
        text(0, "i", item_id="c"),
        done(0, message("Hi", "d")),
        end(message("Hi", "e")),
    )

    assert said(events, TextDelta) == ["H", "i"]
    assert fold(events).text == "Hi"


def test_events_without_numbers():
    """Without an `output_index` the item id tells items apart."""
    item = message("Hi")
    events = decode(
        CREATED,
        {"type": "response.output_item.added", "item": message("")},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "H"},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "i"},
        {"type": "response.output_item.done", "item": item},
        end(),
    )

    assert said(events, TextDelta) == ["H", "i"]
    assert fold(events).text == "Hi"


@pytest.mark.parametrize(
    "late",
    [
        [{"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{}"}],
        [],
    ],
)
def test_calls_without_deltas(late):
    """Some servers send the arguments only at the end: they still come as a delta."""
    events = decode(CREATED, added(0, call("")), *late, done(0, call("{}")), end(call("{}")))

    assert said(events, ToolCallDelta) == ["{}"]


def test_items_without_any_event_before_they_are_done():
    """An item that comes whole has a start, a delta and an end all the same."""
    items = [message("Hi"), call("{}")]

    events = decode(CREATED, done(0, items[0]), done(1, items[1]), end(*items))

    assert said(events, TextDelta) == ["Hi"]
    assert said(events, ToolCallDelta) == ["{}"]


def test_items_only_the_last_event_has():
    """What was never streamed is told before the end."""
    search = {"type": "mcp_list_tools", "id": "m", "tools": []}

    events = decode(CREATED, added(0, search), end(search, message("Hi")))

    assert said(events, TextDelta) == ["Hi"]
    assert [Opaque(dialect=NAME, data=search, tool="mcp", tool_call_id="m", output=[])] == [
        event.part for event in events if isinstance(event, ProviderEvent) and event.part
    ]


def test_last_event_without_output():
    """Some servers leave out of the last event what they have streamed."""
    events = decode(
        CREATED,
        done(1, call("{}")),
        done(0, message("Hi")),
        added(2, call("")),
        arguments(2, "{"),
        end(),
    )

    response = fold(events)

    assert [part.kind for part in response.message.content] == ["text", "tool_call", "tool_call"]
    assert response.finish_reason.reason == "tool_calls"
    assert response.tool_calls[1].raw_arguments == "{"


def test_done_item_that_leaves_out_its_text():
    """What was streamed is not lost when the finished item is empty."""
    events = decode(
        CREATED,
        added(0, message("")),
        text(0, "Hi"),
        done(0, {**message(""), "content": []}),
        end(),
    )

    assert fold(events).text == "Hi"


def reasoning(*summary, encrypted=None):
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": part} for part in summary],
    }
    return {**item, "encrypted_content": encrypted} if encrypted else item


def thought(summary_index, delta):
    kind = "response.reasoning_summary_text.delta"
    return {"type": kind, "output_index": 0, "summary_index": summary_index, "delta": delta}


def test_reasoning():
    """The parts of a summary are one thought, with a blank line between them."""
    item = reasoning("One.", "Two.", encrypted="E")

    events = decode(
        CREATED,
        added(0, reasoning(encrypted="PARTIAL")),
        thought(0, "One"),
        thought(0, "."),
        thought(1, "Two."),
        done(0, item),
        end(item),
    )

    assert said(events, ReasoningDelta) == ["One", ".", "\n\n", "Two."]
    part = next(event.part for event in events if isinstance(event, ReasoningEnd))
    assert (part.text, part.data) == ("One.\n\nTwo.", "E")


def test_raw_thoughts():
    """A server that shows the thoughts themselves streams those."""
    item = {**reasoning(), "content": [{"type": "reasoning_text", "text": "hm"}]}
    kind = "response.reasoning_text.delta"

    events = decode(
        CREATED,
        added(0, reasoning()),
        {"type": kind, "output_index": 0, "content_index": 0, "delta": "hm"},
        thought(0, "not this too"),
        done(0, item),
        end(item),
    )

    assert said(events, ReasoningDelta) == ["hm"]
    assert fold(events).reasoning == "hm"


def test_the_last_encrypted_content_counts():
    """Encrypted again between the item's end and the last event: the last is kept.

    Field bugs 41 and 96.
    """
    events = decode(
        CREATED,
        added(0, reasoning(encrypted="FIRST")),
        done(0, reasoning(encrypted="SECOND")),
        end(reasoning(encrypted="THIRD")),
    )

    ended = next(event for event in events if isinstance(event, ReasoningEnd))
    assert ended.part.data == "SECOND"
    assert fold(events).message.content[0].data == "THIRD"


def test_refusal():
    """It comes whole, when its item is done."""
    item = {**message(""), "content": [{"type": "refusal", "refusal": "No."}]}

    events = decode(
        CREATED,
        added(0, message("")),
        {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "No."},
        done(0, item),
        end(item),
    )

    part = events[-2].part
    assert isinstance(part, Refusal)
    assert events[-1].finish_reason.reason == "content_filter"


def test_server_tools():
    """Their progress is passed on as it is, and the item is a part when it is done."""
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    progress = {"type": "response.web_search_call.searching", "output_index": 0}

    events = decode(CREATED, added(0, search), progress, done(0, search), end(search))

    assert [added(0, search), progress] == [event.data for event in events[1:3]]
    assert events[3].part == Opaque(
        dialect=NAME, data=search, tool="web_search", tool_call_id="ws", input={}
    )


@pytest.mark.parametrize("kind", ["keepalive", "response.output_text.annotation.added"])
def test_events_that_say_nothing_new(kind):
    """They are not passed on."""
    assert [StreamStart, Finish] == list(map(type, decode(CREATED, {"type": kind}, end())))


def test_unknown_event():
    """It is passed on as it is."""
    events = decode(CREATED, {"type": "response.brand_new", "x": [1]}, end())

    assert (
        ProviderEvent(
            dialect=NAME, name="response.brand_new", data={"type": "response.brand_new", "x": [1]}
        )
        == events[1]
    )


def test_an_incomplete_response_is_a_result():
    """A stop by length is a success with its text (field bug 87)."""
    events = decode(
        CREATED,
        done(0, message("Hi")),
        end(message("Hi"), kind="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )

    assert (fold(events).text, events[-1].finish_reason.reason) == ("Hi", "length")


@pytest.mark.parametrize(
    ("data", "cls"),
    [
        (
            {
                "type": "error",
                "error": {
                    "type": "insufficient_quota",
                    "code": "insufficient_quota",
                    "message": "m",
                },
            },
            QuotaExceededError,
        ),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "m"}, RateLimitError),
        ({"type": "error", "message": "m"}, ServerError),
        ({"type": "error", "error": {"message": "m"}, "status": 429}, RateLimitError),
        ({"error": {"code": "rate_limit_exceeded", "message": "m"}}, RateLimitError),
        (
            end(kind="failed", error={"code": "rate_limit_exceeded", "message": "m"}),
            RateLimitError,
        ),
        (end(kind="failed", error={"code": "bio_policy", "message": "m"}), ContentFilterError),
        (end(kind="failed"), ServerError),
    ],
)
def test_errors_in_a_stream_have_their_true_class(data, cls):
    """They are raised with their true class, whichever form they have (field bug 54)."""
    decoder = stream_decoder()
    decoder.feed(frame(CREATED))

    with pytest.raises(cls) as caught:
        decoder.feed(frame(data))

    assert cls is type(caught.value)


def test_a_stream_without_its_last_event_is_an_error():
    """A body that ends without the last event is an error (field bug 52)."""
    with pytest.raises(StreamError, match=r"before response\.completed"):
        decode(CREATED, done(0, message("Hi")))


def test_what_follows_the_end_is_ignored():
    """`[DONE]`, and whatever else follows the last event, is ignored (field bugs 55 and 93)."""
    events = decode(CREATED, end(), "[DONE]", {"type": "error", "message": "late"}, "{broken")

    assert [StreamStart, Finish] == list(map(type, events))


def test_stream_without_a_beginning():
    """A delta alone opens what it needs."""
    events = decode(text(0, "Hi"), end(message("Hi")))

    assert [StreamStart, TextStart, TextDelta, TextEnd, Finish] == list(map(type, events))


def test_last_event_without_a_response():
    """The items that came are the answer, and the start has its name."""
    events = decode(CREATED, done(0, message("Hi")), {"type": "response.completed"})

    response = fold(events)

    assert (response.text, response.id, response.model) == ("Hi", "resp_1", "gpt")


def test_a_made_id_is_the_same_in_the_events_and_in_the_answer():
    """The id a call is given is the same in the events and in the answer (field bug 7)."""
    item = {"type": "function_call", "name": "f", "arguments": ""}

    events = decode(CREATED, added(0, item), done(0, item), end(item))

    start = next(event for event in events if isinstance(event, ToolCallStart))
    assert start.tool_call_id
    assert [start.tool_call_id] == [call.id for call in fold(events).tool_calls]


@pytest.mark.parametrize(
    "data",
    [
        "{broken",
        "[]",
        {"type": "response.output_item.added"},
        {"type": "response.output_item.done", "item": []},
        text(0, None),
        text([], "x"),
        {"type": "response.reasoning_summary_text.delta", "output_index": 0},
        {"type": "response.function_call_arguments.delta", "delta": 5},
    ],
)
def test_frames_that_make_no_sense(data):
    """They are a stream error."""
    decoder = stream_decoder()
    decoder.feed(frame(CREATED))

    with pytest.raises(StreamError):
        decoder.feed(frame(data))


def test_start_does_not_change_later():
    """An event that was handed out stays as it was."""
    decoder = stream_decoder()
    decoder.feed(frame(CREATED))
    first = decoder.feed(frame(added(0, call(""))))[0]
    before = dict(first.extra[NAME])

    decoder.feed(frame(done(0, {**call("{}"), "status": "completed"})))

    assert before == first.extra[NAME]


def test_text_part_is_final():
    """The end has the text of the finished item, whatever the deltas said."""
    events = decode(CREATED, text(0, "Hx"), done(0, message("Hi")), end(message("Hi")))

    ended = next(event for event in events if isinstance(event, TextEnd))
    assert isinstance(ended.part, Text)
    assert ended.part.text == "Hi"


def test_deltas_without_their_item():
    """Reasoning opens its own item; the arguments of a call wait for theirs."""
    late = call('{"a": 1}')
    events = decode(
        CREATED,
        thought(0, "hm"),
        arguments(1, '{"a"'),
        {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{}"},
        done(1, late),
        end(),
    )

    assert said(events, ReasoningDelta) == ["hm"]
    assert said(events, ToolCallDelta) == ['{"a": 1}']
    assert fold(events).reasoning == "hm"


def test_deltas_of_the_wrong_kind():
    """A delta that does not fit its item changes nothing."""
    search = {"type": "web_search_call", "id": "ws"}
    events = decode(
        CREATED,
        added(0, search),
        text(0, "x"),
        thought(0, "y"),
        arguments(0, "z"),
        done(0, search),
        end(),
    )

    assert [part.kind for part in fold(events).message.content] == ["opaque"]


def test_item_that_becomes_another():
    """An item that ends as another kind than it began still ends."""
    search = {"type": "web_search_call", "id": "ws"}
    refused = {**message(""), "content": [{"type": "refusal", "refusal": "No."}]}

    events = decode(
        CREATED, added(0, call("")), done(0, search), text(1, "x"), done(1, refused), end()
    )

    assert [part.kind for part in fold(events).message.content] == ["opaque", "refusal"]


def test_an_unknown_item_that_is_only_done_is_no_call():
    """An item of an unknown kind that was never announced arrives whole, as itself."""
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}

    events = decode(done(0, item), end(item))

    assert [ProviderEvent] == [type(event) for event in events[1:-1]]
    assert events[1].part.data == item


def test_texts_that_come_only_whole_are_numbered_without_gaps():
    """Items of several texts without deltas have the next index each; so has what follows them."""
    two = message("a") | {"content": [*message("a")["content"], *message("b")["content"]]}
    events = decode(
        CREATED, done(0, two), done(1, call("{}")), done(2, message("c", "msg_2")), finish=False
    )

    starts = [event for event in events if isinstance(event, TextStart | ToolCallStart)]
    assert [event.index for event in starts] == [0, 1, 2, 3]
